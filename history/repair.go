package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"decree/tree"
)

// repairBatch is how many records a repair writes with one flush of the log.
const repairBatch = 128

// Repaired is what Repair did.
type Repaired struct {
	Rewritten []string            // run.json written again
	Restored  []string            // run directories brought back
	Lost      map[string][]string // files whose objects the store lacks, by record
	Left      []Damage            // could not be written, have no copy in the store, or are of a newer version
}

// Repair makes .decree/runs agree with the store: a damaged or outdated run.json
// is written again, a missing run directory brought back. It deletes nothing.
func (h *History) Repair() (*Repaired, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	names, err := h.runNames(l)
	if err != nil {
		return nil, err
	}
	states, err := h.inspect(l, names)
	if err != nil {
		return nil, err
	}
	rep := &Repaired{Lost: map[string][]string{}}
	newest := len(states) - PlainManifests
	for from := 0; from < len(states); from += repairBatch {
		if err := rep.rows(h, l.rows[from:], states[from:min(from+repairBatch, len(states))], newest-from); err != nil {
			return rep, err
		}
	}
	strays := &Listing{}
	if _, err := h.openRecords(l, strays); err != nil {
		return rep, err
	}
	rep.Left = slices.Concat(rep.Left, strays.Damaged, strays.Newer)
	return rep, nil
}

// rows repairs records with one line of the log. From newest on they have a plain
// manifest.json.
func (rep *Repaired) rows(h *History, rows []row, states []runState, newest int) error {
	t := &commit{h: h, line: &line{op: opRunFiles}, quiet: true}
	defer t.drop()
	for i, s := range states {
		rep.row(t, rows[i], s, i >= newest)
	}
	if err := t.write(); err != nil {
		return err
	}
	rep.without(t.keptOut)
	return nil
}

// without tells of records whose files could not be written that they are left.
func (rep *Repaired) without(list []Damage) {
	for _, d := range list {
		is := func(id string) bool { return id == d.ID }
		rep.Restored, rep.Rewritten = slices.DeleteFunc(rep.Restored, is), slices.DeleteFunc(rep.Rewritten, is)
	}
	rep.Left = append(rep.Left, list...)
}

// row prepares what one record needs.
func (rep *Repaired) row(t *commit, r row, s runState, plainManifest bool) {
	if s.state == sound {
		return
	}
	if s.state == newer || s.state == unparsed {
		rep.Left = append(rep.Left, Damage{r.id(), s.err})
		return
	}
	l, err := r.parse()
	var lost []string
	if err == nil {
		lost, err = t.restore(l, plainManifest)
	}
	switch {
	case err != nil:
		rep.Left = append(rep.Left, Damage{r.id(), err})
	case s.state == missing:
		rep.Restored = append(rep.Restored, r.id())
	default:
		rep.Rewritten = append(rep.Rewritten, r.id())
	}
	if len(lost) > 0 {
		rep.Lost[r.id()] = lost
	}
}

func (h *History) copyOf(id string) (*line, error) {
	l, err := h.line(id)
	if err == nil && l == nil {
		err = fmt.Errorf("record %s: the store has no copy of it", id)
	}
	return l, err
}

// RestoreRun brings back a record's run directory from the store: run.json, its
// files, and manifest.json with plainManifest. Files that are there stay as they
// are. The names of files whose objects are gone are returned. An error that [KeepsOut] has left
// .decree/runs as it was.
func (h *History) RestoreRun(id string, plainManifest bool) (lost []string, err error) {
	t := &commit{h: h, line: &line{op: opRunFiles}, quiet: true}
	defer t.drop()
	l, err := h.copyOf(id)
	if err == nil {
		lost, err = t.restore(l, plainManifest)
	}
	if err != nil {
		return lost, err
	}
	if err = t.write(); err == nil && len(t.keptOut) > 0 {
		err = t.keptOut[0].Err
	}
	return lost, err
}

// restore prepares a run directory: a missing one is built whole, in one that is
// there the missing files are written.
func (t *commit) restore(l *line, plainManifest bool) (lost []string, err error) {
	files, lost := t.h.storedFiles(l, plainManifest)
	if err := t.h.clearRun(l.id()); err != nil {
		return nil, err
	}
	dir, err := t.h.OpenRun(l.id())
	switch {
	case err == nil:
		dir.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	default:
		err := t.build(l, files)
		if !errors.As(err, new(*unreadable)) {
			return lost, t.orNote(l.id(), err)
		}
		// The others shall come back without the one that cannot be read.
	}
	for _, f := range files {
		if t.h.hasFile(l.id(), f.Name) {
			continue
		}
		err := t.h.ReplaceFile(l.id(), f.Name, f.Write)
		if errors.As(err, new(*unreadable)) {
			lost = append(lost, f.Name)
		} else if err != nil {
			return lost, t.orNote(l.id(), err)
		}
	}
	return lost, t.orNote(l.id(), t.restage(l))
}

// storedFiles are the files that the store has of a record; but for the newest ones,
// without those that lie there alone.
func (h *History) storedFiles(l *line, plainManifest bool) (files []RunFile, lost []string) {
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		sum := l.files[name]
		if !plainManifest && h.inStoreAlone(name, sum) {
			continue
		}
		if h.hasObject(sum) {
			files = append(files, RunFile{Name: name, Write: stored(h.copyObject(sum))})
		} else {
			lost = append(lost, name)
		}
	}
	if plainManifest && (!l.record.Before.IsZero() || l.record.Isolated != "") {
		files = append(files, RunFile{Name: manifestJSON, Write: stored(func(w io.Writer) error { return h.WriteManifest(l.record, w) })})
	}
	return files, lost
}

// inStoreAlone says whether a file of an older record is one that ThinRuns removes.
func (h *History) inStoreAlone(name string, sum tree.Hash) bool {
	if !thinnable(name) || h.objects == nil {
		return false
	}
	r, size, err := h.objects.Open(sum)
	if err != nil {
		return false
	}
	r.Close()
	return Thinned(name, size)
}

// unreadable is the cause of a file that was not written: its content in the store.
type unreadable struct{ error }

func (e *unreadable) Unwrap() error { return e.error }

// stored tells an error of what write reads from one of the file that it writes to.
func stored(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		to := &erring{w: w}
		err := write(to)
		if err != nil && to.err == nil {
			return &unreadable{err}
		}
		return err
	}
}

// erring keeps the error of a Writer.
type erring struct {
	w   io.Writer
	err error
}

func (s *erring) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.err = err
	return n, err
}

func (h *History) hasFile(id, name string) bool {
	f, err := h.OpenPlain(id, name)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

func (h *History) copyObject(sum tree.Hash) func(io.Writer) error {
	return func(w io.Writer) error {
		r, err := h.openObject(sum)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(w, r)
		return err
	}
}
