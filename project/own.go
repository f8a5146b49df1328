package project

import (
	"path/filepath"

	"decree/disk"
)

// OwnAround is the nearest directory at or above path, which is real and need not exist, in which
// decree keeps its own things, and what these are, in words; "" if there is none.
func OwnAround(d disk.Disk, w Where, path string) (around, what string) {
	bases := w.defaultBases()
	if asked, err := w.askedBase(Config{}); err == nil && asked.asked {
		bases = append(bases, asked)
	}
	for at := path; ; at = filepath.Dir(at) {
		if filepath.Base(at) == dirName {
			return at, "decree keeps its own files"
		}
		if hasFile(d, at, BackupMarker) {
			return at, "decree keeps backups: the next one removes what is not its own"
		}
		if validID(filepath.Base(at)) && hasFile(d, at, memoryFile) {
			return filepath.Dir(at), "decree keeps its stores"
		}
		for _, pl := range bases {
			if pl.base != inTree && sameBase(d, pl.base, at) {
				return at, "decree keeps its stores"
			}
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

func hasFile(d disk.Disk, at, name string) bool {
	dir, err := d.OpenSearch(at)
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = dir.Stat(name)
	return err == nil
}
