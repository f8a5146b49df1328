package cmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"decree/backup"
	"decree/disk"
	"decree/project"
)

// notDecreesOwn refuses a directory, which need not exist yet, as the root of a restore if decree
// keeps its own things around it: what lies in a target's current/ is removed by the next
// backup, and nothing in .decree or in a store is part of any tree.
func (s *session) notDecreesOwn(path string) error {
	real, err := realAbove(path)
	if err != nil {
		return err
	}
	around, what := project.OwnAround(disk.OS, s.where(), real)
	if around == "" {
		return nil
	}
	return refusedf("%s is inside %s, where %s; nothing was changed", quoteWord(path), quoteWord(around), what).Hintf("name a directory outside of it")
}

// apartFromDecree refuses a target that is a directory of stores, or lies in one or in .decree: what is not decree's own does not belong
// there, and both are lost together.
func (s *session) apartFromDecree(o backup.OpenOptions) error {
	at := o.Place()
	if !o.Create || !filepath.IsAbs(at) {
		return nil
	}
	if st, err := os.Lstat(at); err == nil && st.Mode().Type() == fs.ModeSymlink && (o.To == "" || o.To == project.DefaultBackupTo) {
		return refusedf("%s is a symbolic link, which may have come with the tree; nothing was changed", quoteWord(at)).
			Hintf("if you want backups where it leads, name that directory with --to, or as backup.to in .decree/config.yml; else remove the link")
	}
	real, err := realAbove(at)
	if err != nil {
		return nil //nolint:nilerr // opening it says why
	}
	if inDecree(real) {
		return refusedf("%s is in .decree, which backups take and a restore replaces; nothing was changed", quoteWord(at)).Hintf("name a directory outside of it, best on another disk")
	}
	if stores := project.StoresAround(disk.OS, s.where(), real); stores != "" {
		return refusedf("%s is in %s, where decree keeps its stores; nothing was changed", quoteWord(at), quoteWord(stores)).Hintf("name a directory outside of it, best on another disk")
	}
	return nil
}

// inDecree says whether a path, which is real, is in .decree, and not where backups go that nobody has given a place.
func inDecree(path string) bool {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) == ".decree" {
			return true
		}
		if strings.HasSuffix(at, string(filepath.Separator)+filepath.FromSlash(project.DefaultBackupTo)) {
			return false
		}
	}
	return false
}

// mayRead refuses to restore from a target that the restore would remove.
func (s *session) mayRead(src *backupSource) error {
	if real, err := realAbove(src.from); src.place == "" || err != nil || !inDecree(real) {
		return nil //nolint:nilerr // no path, but a URL
	}
	return refusedf("%s is in .decree, which a restore replaces; nothing was changed", quoteWord(src.from)).Hintf("move it out of .decree, and repeat the command with --from and where it is then")
}

// realAbove is path without links in what exists of it.
func realAbove(path string) (string, error) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if up := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && up != path {
		real, err = realAbove(up)
		return filepath.Join(real, filepath.Base(path)), err
	}
	return real, err
}
