package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

// Remove takes records out of the history: out of the log first, which is the
// moment they are gone, then the audit lines are written, then their labels and
// run directories go. After a death in between FinishRemove does the rest. Objects
// are not touched. Ids are the oldest first; each has a line of its own, the newest first: where a death
// tears the append no record is gone of which one that is still there, as its revert, has changed the status.
func (h *History) Remove(ids []string, audit ...Operation) error {
	var lines []*line
	for _, id := range slices.Backward(ids) {
		l, err := h.line(id)
		if err != nil {
			return err
		}
		if l != nil {
			lines = append(lines, &line{key: l.key, gone: true, left: true})
		}
	}
	if err := h.putOthersAside(ids); err != nil {
		return err
	}
	if len(lines) > 0 {
		if err := h.write(lines...); err != nil {
			return err
		}
	}
	return h.removeRest(ids, audit)
}

func (h *History) removeRest(ids []string, audit []Operation) error {
	for _, o := range audit {
		if err := h.auditOnce(o); err != nil {
			return err
		}
	}
	if err := h.dropLabels(ids); err != nil {
		return err
	}
	runs, err := h.runsIfAny()
	if runs == nil || err != nil {
		return err
	}
	defer runs.Close()
	for _, id := range ids {
		err := h.removeRun(runs, id)
		if staysThere(err) && h.note != nil { // another user's, or a mount: the others go nevertheless
			why := cmp.Or(project.SealedAdvice(err), "it may be another user's")
			h.note(fmt.Sprintf("record %s is removed, but its directory stays: %v; %s", id, err, why))
		} else if err != nil {
			return err
		}
	}
	return runs.Sync()
}

// staysThere says whether an error is that a run directory cannot be removed as things are. The record is gone by then,
// and no later command may end with that.
func staysThere(err error) bool { return KeepsOut(err) || errors.Is(err, syscall.EBUSY) }

// removeRun moves the directory away before it is emptied: half a run
// directory would look like a damaged record.
func (h *History) removeRun(runs disk.Dir, id string) error {
	tmp, err := h.tmp()
	if err != nil {
		return disk.RemoveTree(runs, id)
	}
	defer tmp.Close()
	name := h.p.TmpName("gone-" + id)
	if err := disk.RemoveTree(tmp, name); err != nil {
		return err
	}
	st, err := runs.Stat(id)
	switch {
	case err != nil: // told by the rename
	case st.Kind != disk.Directory:
		return h.p.PutAside(runs, id)
	case st.Mode&0o700 != 0o700: // one that may not be written cannot be moved either
		if err := runs.Chmod(id, st, st.Mode|0o700); err != nil {
			return err
		}
	}
	if err := runs.Rename(id, tmp, name); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return disk.RemoveTree(tmp, name)
}

func (h *History) dropLabels(ids []string) error {
	all, err := h.Labels()
	if err != nil {
		return err
	}
	moves := map[string]string{}
	for name, id := range all {
		if slices.Contains(ids, id) {
			moves[name] = ""
		}
	}
	return h.moveLabels(moves)
}

// FinishRemove takes away the run directories of removed records that a death
// left between the log's lines and the last of them: they would look like
// records that the log does not know. It returns their ids; audit, if it has an
// op, is written with them as its detail, unless it stands there already.
func (h *History) FinishRemove(audit Operation) ([]string, error) {
	l, err := h.readOn()
	if err != nil || len(l.gone) == 0 {
		return nil, err
	}
	names, err := h.runNames(l)
	if err != nil || len(names.others) == 0 {
		return nil, err
	}
	open, err := h.openNames()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, r := range l.gone {
		if slices.Contains(names.others, r.id()) && !slices.Contains(open, r.id()) { // its id may be that of a record that has begun since
			left = append(left, r.id())
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	audit.Detail = strings.Join(left, " ")
	return left, h.removeRest(left, []Operation{audit})
}

// Removed is how many records were removed since Settle, and how many there are.
func (h *History) Removed() (gone, live int, err error) {
	l, err := h.readOn()
	if err != nil {
		return 0, 0, err
	}
	return len(l.gone), len(l.rows), nil
}

// Logged returns the records of the log, oldest first, as they stand there. A
// line that cannot be decoded is left out.
func (h *History) Logged() ([]*Record, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	var out []*Record
	for _, r := range l.rows {
		if rec, err := r.record(); err == nil {
			out = append(out, rec)
		}
	}
	return out, nil
}

// MoreThan says whether the log has more than most records of a reason. It
// decodes none, and where there are not that many records at all it reads none.
func (h *History) MoreThan(most int, reason Reason) (bool, error) {
	l, err := h.readOn()
	if err != nil || len(l.rows) <= most {
		return false, err
	}
	needle := appendText([]byte(`,"reason":`), string(reason))
	n := 0
	for _, r := range slices.Backward(l.rows) {
		if bytes.Contains(r.line, needle) {
			if n++; n > most {
				return true, nil
			}
		}
	}
	return false, nil
}

// Span is the start of the oldest and of the newest record in the log, in ns.
func (h *History) Span() (oldest, newest int64, err error) {
	l, err := h.readOn()
	if err != nil || len(l.rows) == 0 {
		return 0, 0, err
	}
	return l.rows[0].key.at, l.rows[len(l.rows)-1].key.at, nil
}

// Settle writes down that nothing is left of the records that were removed, after
// FinishRemove.
func (h *History) Settle() error {
	l, err := h.readOn()
	if err != nil || len(l.gone) == 0 {
		return err
	}
	var lines []*line
	for _, r := range l.gone {
		lines = append(lines, &line{key: r.key, gone: true})
	}
	return h.write(lines...)
}

// PlainManifests is how many of the newest records keep a plain manifest.json, and
// their diffs and logs whatever their size.
const PlainManifests = 20

// plainSize is up to how many bytes the diffs and logs of older records stay plain.
const plainSize = 64 << 10

// Thinned says whether a file of an older record lies in the store alone.
func Thinned(name string, size int64) bool { return size > plainSize && thinnable(name) }

func thinnable(name string) bool {
	switch path.Base(name) {
	case ChangesFile, OutsideFile, RoutineLog, JudgeLog:
		return true
	}
	return false
}

// ThinRuns removes manifest.json and the large diffs and logs from the run directories
// of all but the newest records, where the store has them. Unless all are to be looked
// at it stops when it has come upon twice as many in a row with nothing to remove: the
// older ones were thinned before.
func (h *History) ThinRuns(all bool) error {
	l, err := h.readOn()
	if err != nil {
		return err
	}
	runs, err := h.runs()
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer runs.Close()
	bare := 0
	for i := len(l.rows) - 1 - PlainManifests; i >= 0 && (all || bare < 2*PlainManifests); i-- {
		thinned, err := h.thin(runs, l.rows[i])
		if err != nil {
			return err
		}
		if bare++; thinned {
			bare = 0
		}
	}
	return nil
}

func (h *History) thin(runs disk.Dir, r row) (thinned bool, err error) {
	dir, err := runs.OpenDir(r.id())
	if err != nil {
		return false, nil
	}
	defer dir.Close()
	e, err := r.head()
	if err != nil {
		return false, nil
	}
	if st, err := dir.Stat(manifestJSON); err == nil && st.Kind == disk.Regular && h.hasObject(e.trees[0]) {
		if own, err := likeOwn(dir, manifestJSON); err != nil || !own {
			return false, err
		}
		thinned = true
		if err := dir.Remove(manifestJSON); err != nil {
			return false, err
		}
	}
	for name, sum := range e.files {
		if !thinnable(name) {
			continue
		}
		gone, err := h.thinFile(dir, name, sum)
		if err != nil {
			return false, err
		}
		thinned = thinned || gone
	}
	return thinned, nil
}

// thinFile removes a large file that the store has whole: that is read first, since
// the plain one may be the last that is sound. One with another content is somebody's.
func (h *History) thinFile(dir disk.Dir, name string, sum tree.Hash) (gone bool, err error) {
	if sub, rest, below := strings.Cut(name, "/"); below {
		next, err := dir.OpenDir(sub)
		if err != nil {
			return false, nil
		}
		defer next.Close()
		return h.thinFile(next, rest, sum)
	}
	st, err := dir.Stat(name)
	if err != nil || st.Kind != disk.Regular || !Thinned(name, st.Size) || h.objects == nil {
		return false, nil
	}
	r, size, err := h.objects.Open(sum)
	if err != nil {
		return false, nil
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil || size != st.Size {
		return false, nil
	}
	if has, err := sumOf(dir, name); err != nil || has != sum {
		return false, nil
	}
	return true, dir.Remove(name)
}

// UnthinRuns writes the plain files of ids again that they lack: older records that
// become ones of the newest when others are removed.
func (h *History) UnthinRuns(ids []string) error {
	for _, id := range ids {
		if !h.HasRun(id) {
			continue
		}
		l, err := h.line(id)
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		if err := h.unthin(l); err != nil {
			return err
		}
	}
	return nil
}

func (h *History) unthin(l *line) error {
	if (!l.record.Before.IsZero() || l.record.Isolated != "") && !h.hasFile(l.id(), manifestJSON) {
		if err := h.ReplaceFile(l.id(), manifestJSON, func(w io.Writer) error { return h.WriteManifest(l.record, w) }); err != nil {
			return err
		}
	}
	for name, sum := range l.files {
		if !thinnable(name) || h.hasFile(l.id(), name) || !h.hasObject(sum) {
			continue
		}
		if err := h.ReplaceFile(l.id(), name, h.copyObject(sum)); err != nil {
			return err
		}
	}
	return nil
}
