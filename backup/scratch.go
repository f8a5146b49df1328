package backup

import (
	"context"
	"crypto/rand"
	"time"

	"decree/disk"
	"decree/project"
)

// scratchDir is what drills restore into, in the store: each into a directory of its own, which it has locked.
const scratchDir = "drill"

// newScratch makes a directory for one drill, and removes those that drills which died have left. Several drills may be under way.
func newScratch(store disk.Dir) (dir disk.Dir, remove func() error, err error) {
	all, err := project.MakeDir(store, scratchDir, project.PrivateDir)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := disk.LockWithin(context.Background(), all, time.Millisecond, disk.NoLimit) // it is held for moments alone
	if err == nil {
		defer func() { _ = unlock() }()
		err = clearScratch(all)
	}
	name := rand.Text()
	if err == nil {
		dir, err = project.MakeDir(all, name, project.PrivateDir)
	}
	if err != nil {
		all.Close()
		return nil, nil, err
	}
	release, err := dir.TryLock()
	if err != nil {
		dir.Close()
		all.Close()
		return nil, nil, err
	}
	return dir, func() error {
		err := disk.RemoveTree(all, name)
		_ = release()
		dir.Close()
		all.Close()
		return err
	}, nil
}

// clearScratch removes what nobody has locked.
func clearScratch(all disk.Dir) error {
	list, err := all.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		if dir, err := all.OpenDir(e.Name); err == nil {
			locked, _ := dir.Locked()
			dir.Close()
			if locked {
				continue
			}
		}
		if err := disk.RemoveTree(all, e.Name); err != nil {
			return err
		}
	}
	return nil
}
