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

	"decree/disk"
	"decree/manifest"
	"decree/patch"
)

// Remove takes records out of the history: out of the log first, which is the
// moment they are gone, then the audit lines are written, then their labels and
// run directories go. After a death in between FinishRemove does the rest. Trees
// of theirs that others rest on stay kept until Rebase. Objects are not touched.
func (h *History) Remove(ids []string, audit ...Operation) error {
	var lines []*line
	for _, id := range ids {
		l, err := h.line(id)
		if err != nil {
			return err
		}
		if l != nil {
			lines = append(lines, &line{key: l.key, gone: true, tree: l.tree, afterTree: l.afterTree})
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
		if errors.Is(err, fs.ErrPermission) && h.note != nil { // another user's: the others go nevertheless
			h.note(fmt.Sprintf("record %s is removed, but its directory stays: %v; it may be another user's", id, err))
		} else if err != nil {
			return err
		}
	}
	h.saveIndex()
	return runs.Sync()
}

// removeRun moves the directory away before it is emptied: half a run
// directory would look like a damaged record.
func (h *History) removeRun(runs disk.Dir, id string) error {
	tmp, err := h.tmp()
	if err != nil {
		return removeTree(runs, id)
	}
	defer tmp.Close()
	name := h.p.TmpName("gone-" + id)
	if err := removeTree(tmp, name); err != nil {
		return err
	}
	st, err := runs.Stat(id)
	switch {
	case err != nil: // told by the rename
	case st.Kind != disk.Directory:
		return h.p.PutAside(runs, id)
	case st.Mode&0o700 != 0o700: // one that may not be written cannot be moved either
		if err := runs.Chmod(id, st.Mode|0o700); err != nil {
			return err
		}
	}
	if err := runs.Rename(id, tmp, name); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return removeTree(tmp, name)
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

// heads decodes all lines without their records: those that count, and those of
// removed records that keep trees.
func (h *History) heads() (live, gone []*line, err error) {
	l, err := h.rows()
	if err != nil {
		return nil, nil, err
	}
	for i, r := range slices.Concat(l.rows, l.gone) {
		e, err := r.head()
		if err != nil {
			return nil, nil, err
		}
		if i < len(l.rows) {
			live = append(live, e)
		} else {
			gone = append(gone, e)
		}
	}
	return live, gone, nil
}

// FinishRemove takes away the run directories of removed records that a death
// left between the log's lines and the last of them: they would look like
// records that the log does not know. It returns their ids; audit, if it has an
// op, is written with them as its detail, unless it stands there already.
func (h *History) FinishRemove(audit Operation) ([]string, error) {
	l, err := h.rows()
	if err != nil || len(l.gone) == 0 {
		return nil, err
	}
	names, err := h.runNames(l)
	if err != nil || len(names.others) == 0 {
		return nil, err
	}
	var left []string
	for _, r := range l.gone {
		if slices.Contains(names.others, r.id()) {
			left = append(left, r.id())
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	audit.Detail = strings.Join(left, " ")
	return left, h.removeRest(left, []Operation{audit})
}

// Removed is how many removed records still keep trees that others may rest on,
// until Rebase, and how many records there are.
func (h *History) Removed() (gone, live int, err error) {
	l, err := h.rows()
	if err != nil {
		return 0, 0, err
	}
	return len(l.gone), len(l.rows), nil
}

// Logged returns the records of the log, oldest first, as they stand there. A
// line that cannot be decoded is left out.
func (h *History) Logged() ([]*Record, error) {
	l, err := h.rows()
	if err != nil {
		return nil, err
	}
	var out []*Record
	for part := range slices.Chunk(l.rows, treeChunk) {
		for _, r := range loadRows(part) {
			if rec, err := r.record(); err == nil {
				out = append(out, rec)
			}
		}
	}
	return out, nil
}

// MoreThan says whether the log has more than most records of a reason. It
// decodes none, and where there are not that many records at all it reads none.
func (h *History) MoreThan(most int, reason Reason) (bool, error) {
	l, err := h.rows()
	if err != nil || len(l.rows) <= most {
		return false, err
	}
	needle := appendText([]byte(`,"reason":`), string(reason))
	n := 0
	for end := len(l.rows); end > 0; {
		from := max(0, end-treeChunk)
		for _, r := range loadRows(l.rows[from:end]) {
			b, err := r.bytes()
			if err != nil || !bytes.Contains(b, needle) {
				continue
			}
			if n++; n > most {
				return true, nil
			}
		}
		end = from
	}
	return false, nil
}

// Span is the start of the oldest and of the newest record in the log, in ns.
func (h *History) Span() (oldest, newest int64, err error) {
	l, err := h.rows()
	if err != nil || len(l.rows) == 0 {
		return 0, 0, err
	}
	return l.rows[0].key.at, l.rows[len(l.rows)-1].key.at, nil
}

// Rebase writes anew the trees that rest on trees of removed records alone, so
// that those need not be kept any longer: as a delta against the nearest tree
// below that stays, else as a keyframe. flush makes what was put durable; it is
// called before the log or an open record says anything of it. Where one of bases,
// on which trees rest that are in neither, would go, nothing is done.
func (h *History) Rebase(w Putter, flush func() error, bases ...patch.Hash) error {
	live, gone, err := h.heads()
	if err != nil || len(gone) == 0 {
		return err
	}
	kept := map[patch.Hash]bool{}
	for _, e := range live {
		for _, t := range e.trees() {
			kept[t.ID] = true
		}
	}
	open, _, err := h.ListOpen()
	if err != nil {
		return err
	}
	resting := slices.Clone(live)
	for _, o := range open {
		if o.Tree != nil {
			h.remember(o.Tree)
			kept[o.Tree.ID] = true
			resting = append(resting, &line{tree: o.Tree})
		}
	}
	for _, b := range bases {
		if !b.IsZero() && !kept[b] {
			return nil
		}
	}
	fresh, err := h.rebased(w, resting, kept)
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	for _, o := range open {
		if o.Tree != nil && fresh[o.Tree.ID] != nil {
			o.Tree = fresh[o.Tree.ID]
			if err := h.Begin(o); err != nil {
				return err
			}
		}
	}
	return h.writeRebased(live, gone, fresh)
}

// rebased puts the new forms of the trees that need one. All are read before the
// first is put: what is put cannot be read before it is flushed.
func (h *History) rebased(w Putter, live []*line, kept map[patch.Hash]bool) (map[patch.Hash]*TreeSpec, error) {
	type loose struct {
		NewTree
		depth int
	}
	var todo []loose
	fresh := map[patch.Hash]*TreeSpec{}
	for _, e := range live {
		for _, t := range e.trees() {
			if _, known := fresh[t.ID]; known || t.Base.IsZero() || kept[t.Base] {
				continue
			}
			n, err := h.detached(t.ID, kept)
			if err != nil {
				return nil, err
			}
			fresh[t.ID] = nil
			todo = append(todo, loose{n, t.Depth})
		}
	}
	// What others rest on comes first: their depth counts from it.
	slices.SortStableFunc(todo, func(a, b loose) int { return cmp.Compare(a.depth, b.depth) })
	for _, t := range todo {
		s, err := h.saveDelta(w, t.NewTree)
		if err == nil && s == nil {
			s, err = h.saveKeyframe(w, t.NewTree)
		}
		if err != nil {
			return nil, err
		}
		h.remember(s)
		fresh[t.ID] = s
	}
	return fresh, nil
}

// detached is a kept tree as one to be saved again, relative to the nearest tree
// below it that stays.
func (h *History) detached(id patch.Hash, kept map[patch.Hash]bool) (n NewTree, err error) {
	n.ID = id
	if n.Entries, n.Partial, err = h.Tree(id); err != nil {
		return n, err
	}
	chain, err := h.chain(id)
	if err != nil {
		return n, err
	}
	for _, s := range chain[1:] {
		if !kept[s.ID] {
			continue
		}
		below, _, err := h.Tree(s.ID)
		if err != nil {
			return n, err
		}
		n.Base = s.ID
		n.Changes, err = manifest.Compare(below, n.Entries)
		return n, err
	}
	return n, nil
}

// writeRebased appends the lines whose trees have a new spec, then the removed
// records' lines without trees.
func (h *History) writeRebased(live, gone []*line, fresh map[patch.Hash]*TreeSpec) error {
	var lines []*line
	for _, e := range live {
		if !slices.ContainsFunc(e.trees(), func(t *TreeSpec) bool { return fresh[t.ID] != nil }) {
			continue
		}
		whole, err := h.line(e.id())
		if err != nil {
			return err
		}
		for _, t := range []**TreeSpec{&whole.tree, &whole.afterTree} {
			if *t != nil && fresh[(*t).ID] != nil {
				*t = fresh[(*t).ID]
			}
		}
		lines = append(lines, whole)
	}
	for _, e := range gone {
		lines = append(lines, &line{key: e.key, gone: true})
	}
	h.mu.Lock()
	h.saved = nil // a spec that rests on what is gone now must not be found again
	h.mu.Unlock()
	return h.write(lines...)
}

// Resave keeps trees again, whole, whose objects the store has lost: their entries come
// from elsewhere, such as a plain manifest.json, and are those of the tree's id. flush
// makes what was put durable; it is called before the log says anything of it. A tree
// that no record of the log has is passed over.
func (h *History) Resave(w Putter, flush func() error, trees map[patch.Hash]manifest.Seq) error {
	live, _, err := h.heads()
	if err != nil {
		return err
	}
	fresh := map[patch.Hash]*TreeSpec{}
	for _, e := range live {
		for _, t := range e.trees() {
			entries := trees[t.ID]
			if entries == nil || fresh[t.ID] != nil {
				continue
			}
			if fresh[t.ID], err = h.saveKeyframe(w, NewTree{ID: t.ID, Entries: entries, Partial: t.Partial}); err != nil {
				return err
			}
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := flush(); err != nil {
		return err
	}
	return h.writeRebased(live, nil, fresh)
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
	case diffName, OutsideFile, "routine.log":
		return true
	}
	return false
}

// ThinRuns removes manifest.json and the large diffs and logs from the run directories
// of all but the newest records, where the store has them. Unless all are to be looked
// at it stops when it has come upon twice as many in a row with nothing to remove: the
// older ones were thinned before.
func (h *History) ThinRuns(all bool) error {
	l, err := h.rows()
	if err != nil {
		return err
	}
	runs, err := h.runs()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
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
	if st, err := dir.Stat(manifestJSON); err == nil && st.Kind == disk.Regular && e.tree != nil && h.hasObject(e.tree.Object) {
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
func (h *History) thinFile(dir disk.Dir, name string, sum patch.Hash) (gone bool, err error) {
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
		if !h.hasRunDir(id) {
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
	if l.tree != nil && !h.hasFile(l.id(), manifestJSON) {
		if err := h.ReplaceFile(l.id(), manifestJSON, func(w io.Writer) error { return h.WriteManifest(l.tree.ID, w) }); err != nil {
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

// OpenManifest returns a record's tree before it: the kept tree, as it is surer
// than the plain file.
func (h *History) OpenManifest(r *Record) (entries manifest.Seq, partial bool, err error) {
	return h.Tree(r.Before)
}
