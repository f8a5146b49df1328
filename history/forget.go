package history

import (
	"path"

	"decree/manifest"
	"decree/patch"
)

// EachEntry calls each for every path of every kept tree with what the tree has
// there, those of removed records that others rest on included. Of a tree that
// is kept as a delta these are the paths that it changes; the others come with
// the tree below it.
func (h *History) EachEntry(each func(path string, e patch.Entry)) error {
	live, gone, err := h.heads()
	if err != nil {
		return err
	}
	seen := map[patch.Hash]bool{}
	for _, list := range [][]*line{live, gone} {
		for _, e := range list {
			for _, t := range e.trees() {
				if seen[t.Object] {
					continue
				}
				seen[t.Object] = true
				if err := h.eachEntry(t, each); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (h *History) eachEntry(t *TreeSpec, each func(path string, e patch.Entry)) error {
	var entries manifest.Seq = h.keyframe(t)
	if !t.Base.IsZero() {
		b, err := h.readObject(t.Object, t.Size)
		if err == nil {
			entries, _, err = splitStep(b)
		}
		if err != nil {
			return treeError(t.ID, err)
		}
	}
	for it, err := range entries {
		if err != nil {
			return treeError(t.ID, err)
		}
		each(it.Path, it.Entry)
	}
	return nil
}

// Diffs are the names of a record's files that are diffs: changes.diff, those of
// its attempts, outside.diff.
func (h *History) Diffs(id string) (list []RecordFile, err error) {
	files, err := h.RecordFiles(id)
	for _, f := range files {
		if path.Ext(f.Name) == ".diff" {
			list = append(list, f)
		}
	}
	return list, err
}

// ReplaceFiles makes the store's objects sums, by name, the files of a record:
// its line says so first, then run.json and the run directory's files are
// replaced. It can be repeated; after a death in between it has to be. The
// objects must be durable.
func (h *History) ReplaceFiles(id string, sums map[string]patch.Hash) error {
	l, err := h.copyOf(id)
	if err != nil {
		return err
	}
	changed := false
	for name, sum := range sums {
		if l.files[name] == sum {
			continue
		}
		changed = true
		if name == diffName && l.record.DiffSHA256 == l.files[name] {
			l.record.DiffSHA256 = sum
		}
		if o, ok := l.record.Outside(); ok && name == OutsideFile {
			o.SHA256 = sum
			if err := l.record.SetOutside(o); err != nil {
				return err
			}
		}
		l.files[name] = sum
	}
	t := &turn{h: h}
	defer t.drop()
	if changed {
		err = t.stage(l)
	} else {
		err = t.again(l)
	}
	if err != nil {
		return err
	}
	if err := t.write(); err != nil {
		return err
	}
	for name, sum := range sums {
		if err := h.ReplaceFile(id, name, h.copyObject(sum)); err != nil {
			return err
		}
	}
	h.saveIndex()
	return nil
}
