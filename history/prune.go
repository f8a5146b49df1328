package history

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"decree/disk"
	"decree/manifest"
	"decree/patch"
)

// Remove takes records out of the history: out of the log first, which is the
// moment they are gone, then their run directories and labels. Trees of theirs
// that others rest on stay kept until Rebase. Objects are not touched.
func (h *History) Remove(ids []string) error {
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
	if len(lines) > 0 {
		if err := h.write(lines...); err != nil {
			return err
		}
	}
	if err := h.dropLabels(ids); err != nil {
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
	for _, id := range ids {
		if err := h.removeRun(runs, id); err != nil {
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
	name := "gone-" + id
	if err := removeTree(tmp, name); err != nil {
		return err
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

// Rebase writes anew, as keyframes, the trees that rest on trees of removed
// records alone, so that those need not be kept any longer. flush makes what was
// put durable; it is called before the log says anything of it.
func (h *History) Rebase(w Putter, flush func() error) error {
	live, gone, err := h.heads()
	if err != nil || len(gone) == 0 {
		return err
	}
	kept := map[patch.Hash]*TreeSpec{}
	for _, e := range live {
		for _, t := range e.trees() {
			kept[t.ID] = t
		}
	}
	open, _, err := h.ListOpen()
	if err != nil {
		return err
	}
	for _, o := range open {
		// An open record's tree cannot be rewritten here: what it rests on stays.
		if o.Tree != nil && !o.Tree.Base.IsZero() && kept[o.Tree.Base] == nil {
			return nil
		}
	}
	fresh := map[patch.Hash]*TreeSpec{}
	for id, t := range kept {
		if t.Base.IsZero() || kept[t.Base] != nil {
			continue
		}
		if fresh[id], err = h.keyframeOf(w, id); err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return h.writeRebased(live, gone, fresh)
}

func (h *History) keyframeOf(w Putter, id patch.Hash) (*TreeSpec, error) {
	entries, partial, err := h.Tree(id)
	if err != nil {
		return nil, err
	}
	return h.saveKeyframe(w, NewTree{ID: id, Entries: entries, Partial: partial})
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

// Live calls each for every object that a record needs: its files, its trees'
// objects, and the contents that these name. An object may come more than once.
// What cannot be read is an error: nothing may be freed then.
func (h *History) Live(each func(patch.Hash)) error {
	live, gone, err := h.heads()
	if err != nil {
		return err
	}
	seen := map[patch.Hash]bool{}
	trees := func(list []*TreeSpec) error {
		for _, t := range list {
			if seen[t.Object] {
				continue
			}
			seen[t.Object] = true
			if err := h.liveTree(t, each); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range slices.Concat(live, gone) {
		for _, sum := range e.files {
			each(sum)
		}
		if err := trees(e.trees()); err != nil {
			return err
		}
	}
	open, bad, err := h.ListOpen()
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("open record %s: %w", bad[0].ID, bad[0].Err)
	}
	for _, o := range open {
		for _, r := range o.Rules {
			each(r.SHA256)
		}
		if o.Tree != nil {
			if err := trees([]*TreeSpec{o.Tree}); err != nil {
				return err
			}
		}
	}
	return nil
}

// liveTree takes a keyframe's contents, or a step's: each path of a step is in
// the tree that the step leads to.
func (h *History) liveTree(t *TreeSpec, each func(patch.Hash)) error {
	each(t.Object)
	entries := h.keyframe(t)
	if !t.Base.IsZero() {
		b, err := h.readObject(t.Object, t.Size)
		if err != nil {
			return treeError(t.ID, err)
		}
		if entries, _, err = splitStep(b); err != nil {
			return treeError(t.ID, err)
		}
	}
	return eachContent(entries, t.ID, each)
}

func eachContent(entries manifest.Seq, id patch.Hash, each func(patch.Hash)) error {
	for it, err := range entries {
		if err != nil {
			return treeError(id, err)
		}
		if it.Entry.Type != patch.Dir {
			each(it.Entry.SHA256)
		}
	}
	return nil
}

// PlainManifests is how many of the newest records keep a plain manifest.json.
const PlainManifests = 20

// ThinManifests removes manifest.json from the run directories of all but the
// newest records, where the store keeps the tree. It stops when it has come
// upon as many in a row that have none: the older ones were thinned before.
func (h *History) ThinManifests() error {
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
	for i := len(l.rows) - 1 - PlainManifests; i >= 0 && bare < 2*PlainManifests; i-- {
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

func (h *History) thin(runs disk.Dir, r row) (bool, error) {
	dir, err := runs.OpenDir(r.id())
	if err != nil {
		return false, nil
	}
	defer dir.Close()
	if _, err := dir.Stat(manifestJSON); err != nil {
		return false, nil
	}
	e, err := r.head()
	if err != nil || e.tree == nil || !h.hasObject(e.tree.Object) {
		return false, nil
	}
	return true, dir.Remove(manifestJSON)
}

// OpenManifest returns a record's tree before it: the kept tree, as it is surer
// than the plain file.
func (h *History) OpenManifest(r *Record) (entries manifest.Seq, partial bool, err error) {
	return h.Tree(r.Before)
}
