package layer

import (
	"path/filepath"

	"decree/disk"
)

// Inside is the name of the layer in which path, which is absolute and has no links, lies as a command
// of the layer's run sees it: in the mount of an overlay, or in a clone. It is "" where that is none.
func Inside(d disk.Disk, path string) (name string) {
	if of := inOverlay(path); of != "" {
		return filepath.Base(of)
	}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if filepath.Base(path) != treeName {
			continue
		}
		of := filepath.Dir(path)
		if above := filepath.Base(of); above == asideName || above == cloneName {
			of = filepath.Dir(of)
		}
		if holdsFacts(d, of) {
			return filepath.Base(of)
		}
	}
	return ""
}

// holdsFacts says whether a directory is that of a clone, made to the end.
func holdsFacts(d disk.Disk, path string) bool {
	dir, err := d.OpenSearch(path)
	if err != nil {
		return false
	}
	l := &Layer{dir: dir}
	defer l.Close()
	return l.readFacts() == nil && l.facts.Mechanism == Clone
}
