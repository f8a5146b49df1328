package layer

import (
	"path/filepath"

	"decree/disk"
)

// Inside says whether path, which is absolute and has no links, lies in a layer as a command
// of the layer's run sees it: in the mount of an overlay, or in a clone.
func Inside(d disk.Disk, path string) bool {
	if inOverlay(path) {
		return true
	}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if filepath.Base(path) != treeName {
			continue
		}
		of := filepath.Dir(path)
		if filepath.Base(of) == asideName {
			of = filepath.Dir(of)
		}
		if holdsFacts(d, of) {
			return true
		}
	}
	return false
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
