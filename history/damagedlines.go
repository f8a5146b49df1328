package history

import (
	"errors"
	"slices"

	"decree/disk"
	"decree/project"
)

// DamagedLines are those that SetLinesAside took out of the log.
type DamagedLines struct {
	Path    string   // where they are now
	Lines   int      // how many there are
	Records []string // whose they were, as far as they say it
}

// linesAside is the name of damaged lines below aside.
const linesAside = logFile + "-damaged"

// SetLinesAside moves the lines of the log beside which it is not known what records need into a file of their own: those of
// which nothing can be read, and those of records whose trees and files cannot. What .decree/runs has of such a
// record is foreign from then on, and what that names is kept. It returns nil where there are none. Before anything is moved it
// calls first: from then on nothing in the log tells of these records.
func (h *History) SetLinesAside(first func(records []string) error) (*DamagedLines, error) {
	h.CatchUp()
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	moved, rest := &DamagedLines{}, l.clone()
	lines := rest.broken
	rest.broken = brokenLines{}
	rest.rows = slices.DeleteFunc(rest.rows, func(r row) bool {
		_, err := r.head()
		if !errors.As(err, new(*LineError)) {
			return false
		}
		lines.add(r.at, r.line)
		moved.Records = append(moved.Records, r.id())
		rest.given = append(rest.given, r.id()) // it must not be given twice
		return true
	})
	if moved.Lines = lines.n; moved.Lines == 0 {
		return nil, nil
	}
	if err := first(moved.Records); err != nil {
		return nil, err
	}
	err = disk.Replace(h.p.Store, linesAside, disk.Replacement{Perm: project.PrivateFile, Flush: true}, func(f disk.File) error {
		return l.copyParts(h.p.Store, lines.parts, f)
	})
	if err == nil {
		moved.Path, err = h.p.StoreAside(linesAside)
	}
	if err == nil {
		err = rest.compact(h.p.Store)
	}
	h.Refresh()
	return moved, err
}
