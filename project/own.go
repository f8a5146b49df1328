package project

import (
	"path/filepath"

	"decree/disk"
)

// OwnAround is the nearest directory at or above path, which is real and need not exist, in which
// decree keeps its own things, and what these are, in words; "" if there is none.
func OwnAround(d disk.Disk, w Where, path string) (around, what string) {
	bases := w.bases()
	for at := path; ; at = filepath.Dir(at) {
		if filepath.Base(at) == dirName {
			return at, "decree keeps its own files"
		}
		if hasFile(d, at, BackupMarker) {
			return at, "decree keeps backups: the next one removes what is not its own"
		}
		if stores := storesAt(d, bases, at); stores != "" {
			return stores, "decree keeps its stores"
		}
		if at != path && at != w.Home && isTarget(d, at) { // in a home it is a copy of a project's backups that somebody keeps
			return at, "decree keeps backups: a project of that name would have its own there"
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

// StoresAround is the directory of stores that a path, which need not exist, is or lies in; "" if it does not.
func StoresAround(d disk.Disk, w Where, path string) string {
	bases := w.bases()
	for at := path; ; at = filepath.Dir(at) {
		if stores := storesAt(d, bases, at); stores != "" || at == filepath.Dir(at) {
			return stores
		}
	}
}

// bases are all that stores may be in.
func (w Where) bases() []storeBase {
	bases := w.defaultBases()
	if asked, err := w.askedBase(Config{}); err == nil && asked.asked {
		bases = append(bases, asked)
	}
	return bases
}

// storesAt is the directory of stores that at is, or is a store of.
func storesAt(d disk.Disk, bases []storeBase, at string) string {
	if validID(filepath.Base(at)) && hasFile(d, at, memoryFile) {
		return filepath.Dir(at)
	}
	for _, pl := range bases {
		if pl.base != inTree && sameBase(d, pl.base, at) {
			return at
		}
	}
	return ""
}

// mostLooked bounds how many directories are looked into for a project's backups.
const mostLooked = 1000

// isTarget says whether a directory has projects' backups.
func isTarget(d disk.Disk, at string) bool {
	dir, err := d.OpenRoot(at)
	if err != nil {
		return false
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return false
	}
	for _, e := range list[:min(len(list), mostLooked)] {
		if IsBackupName(e.Name) && hasFile(d, filepath.Join(at, e.Name), BackupMarker) {
			return true
		}
	}
	return false
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
