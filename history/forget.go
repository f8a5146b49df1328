package history

import (
	"maps"
	"slices"

	"decree/tree"
)

// Diffs are the names of a record's files that are diffs: changes.diff, those of
// its attempts, outside.diff.
func (h *History) Diffs(id string) (list []RecordFile, err error) {
	files, err := h.RecordFiles(id)
	for _, f := range files {
		if OwnDiff(f.Name) {
			list = append(list, f)
		}
	}
	return list, err
}

// Rewrite makes the store's objects sums, by record and name, the files of records: a
// line of the log says so first, then their run.json and the run directories' files are
// replaced. It can be repeated; after a death in between it has to be. The objects must
// be durable.
func (h *History) Rewrite(sums map[string]map[string]tree.Hash) error {
	t := &commit{h: h, line: &line{op: opRewrite}}
	defer t.drop()
	ids := slices.Sorted(maps.Keys(sums))
	for _, id := range ids {
		l, err := h.copyOf(id)
		if err != nil {
			return err
		}
		rewritten := &effect{id: id, files: maps.Clone(sums[id])}
		maps.DeleteFunc(rewritten.files, func(name string, sum tree.Hash) bool { return l.files[name] == sum })
		if len(rewritten.files) > 0 {
			t.line.effects = append(t.line.effects, rewritten)
		}
		if err := rewritten.apply(l); err != nil {
			return err
		}
		if err := t.restage(l); err != nil {
			return err
		}
	}
	if err := t.write(); err != nil {
		return err
	}
	for _, id := range ids {
		for name, sum := range sums[id] {
			if err := h.ReplaceFile(id, name, h.copyObject(sum)); err != nil {
				return err
			}
		}
	}
	return nil
}
