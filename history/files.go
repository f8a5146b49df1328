package history

import (
	"maps"
	"slices"

	"decree/tree"
)

// RecordFile is a file of a record's run directory and what it was recorded as.
type RecordFile struct {
	Name   string
	SHA256 tree.Hash
}

// RecordFiles are the files that the store keeps of a record, in byte order of
// their names; none for a record that is in .decree/runs alone.
func (h *History) RecordFiles(id string) ([]RecordFile, error) {
	r, known, err := h.row(id)
	if !known {
		return nil, err
	}
	head, err := r.head()
	if err != nil {
		return nil, err
	}
	var out []RecordFile
	for _, name := range slices.Sorted(maps.Keys(head.files)) {
		out = append(out, RecordFile{name, head.files[name]})
	}
	return out, nil
}

// RewriteFile writes a record's file again from the store's copy.
func (h *History) RewriteFile(id string, f RecordFile) error {
	return h.ReplaceFile(id, f.Name, h.copyObject(f.SHA256))
}
