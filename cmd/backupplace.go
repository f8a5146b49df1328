package cmd

import (
	"errors"
	"io/fs"
	"path/filepath"

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
