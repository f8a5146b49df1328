package history

import (
	"path"

	"decree/tree"
)

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
func (h *History) ReplaceFiles(id string, sums map[string]tree.Hash) error {
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
	return nil
}
