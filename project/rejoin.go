package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"decree/disk"
)

// Rejoin looks where the root is after a command that may have done anything to
// it; the caller holds the lock. There are four cases:
//
//   - the held directory is at the root's path: nothing is done, note is "";
//   - it was deleted: the one at the path, made if there is none, becomes the
//     root, is locked too, and the store remembers it;
//   - it was moved away: it stays the project's root where it is now;
//   - something else than a directory is at the path: an error.
//
// In the second case Dir is another handle afterwards. Decree is closed until
// EnsureDecree. note tells people what happened.
func (p *Project) Rejoin() (note string, err error) {
	held, err := p.Dir.Self()
	if err != nil {
		return "", err
	}
	parent, name, err := p.parent()
	if err != nil {
		return "", err
	}
	if parent != nil {
		defer parent.Close()
	}
	now, there, err := statNoFollow(parent, name)
	if err != nil {
		return "", err
	}
	if there && now.SameFile(held) {
		return "", nil
	}
	gone, err := deleted(p.Dir, held)
	if err != nil {
		return "", err
	}
	if !gone {
		what := "nothing is at that path now"
		if there {
			what = "something else is at that path now"
		}
		return fmt.Sprintf("the command moved the root away from %s and %s; the moved directory is what was recorded, and its record lies in its .decree", p.Root, what), nil
	}
	if there && now.Kind != disk.Directory {
		return "", &Error{Kind: Failed, Msg: p.Root + ": the command deleted the root, and what is there now is no directory",
			Advice: "move it away; then 'decree recover' records the run"}
	}
	if p.base == inTree {
		return "", &Error{Kind: Failed, Msg: p.Root + ": the command deleted the root, and the store in it", Advice: "name a place outside of the root with DECREE_STORE"}
	}
	if err := p.adopt(held, there); err != nil {
		return "", err
	}
	if there {
		return "the command deleted the root and made it again; it is recorded as it is now", nil
	}
	return "the command deleted the root; it was made again", nil
}

// AtItsPath is an error where the root's path leads elsewhere than when the project was opened: a command that is started by that path would
// work on another tree, and what is put into the inbox there would never be seen here.
func (p *Project) AtItsPath() error {
	held, err := p.Dir.Self()
	if err != nil {
		return err
	}
	what := "another directory is at that path now"
	now, err := p.Disk.OpenRoot(p.Root)
	if err == nil {
		defer now.Close()
		there, err := now.Self()
		if err != nil || there.SameFile(held) {
			return err
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		what = "nothing is at that path now"
	} else {
		return err
	}
	return &Error{Kind: Failed, Msg: fmt.Sprintf("%s was moved or deleted, and %s", p.Root, what), Advice: "go on where the tree is now"}
}

// parent opens the directory above the root, which need not be readable; nil when it
// is gone too.
func (p *Project) parent() (disk.Dir, string, error) {
	dir, err := p.Disk.OpenSearch(filepath.Dir(p.Root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	return dir, filepath.Base(p.Root), err
}

// statNoFollow looks at name in parent, and follows no link.
func statNoFollow(parent disk.Dir, name string) (st disk.Info, there bool, err error) {
	if parent == nil {
		return st, false, nil
	}
	if name == string(filepath.Separator) { // the root of the file system
		st, err = parent.Self()
		return st, err == nil, err
	}
	st, err = parent.Stat(name)
	return st, err == nil, disk.UnlessMissing(err)
}

// deleted says whether an open directory has no name any more. Where the number
// of its links does not tell, an empty one counts as deleted: nothing is lost.
func deleted(d disk.Dir, st disk.Info) (bool, error) {
	if st.Nlink == 0 {
		return true, nil
	}
	list, err := d.List()
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(list) == 0, err
}

// ChmodRoot changes the mode of the root: disk.ErrReplaced where its path leads to something else.
func (p *Project) ChmodRoot(mode uint32) error {
	self, err := p.Dir.Self()
	if err != nil {
		return err
	}
	return p.chmodRoot(self, mode)
}

// chmodRoot is ChmodRoot for the root that is.
func (p *Project) chmodRoot(is disk.Info, mode uint32) error {
	parent, name, err := p.parent()
	if err != nil {
		return err
	}
	if parent == nil {
		return fs.ErrNotExist
	}
	defer parent.Close()
	if err := parent.Chmod(name, is, mode); err != nil {
		return err
	}
	// Who may not read a directory cannot flush it. If the entry is lost then, so is
	// all below it, and the next command begins as this one did.
	if err := parent.Sync(); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// adopt makes the directory at the root's path the root: with the old one's
// mode if it has to be made, under the lock, and remembered by the store.
func (p *Project) adopt(held disk.Info, there bool) error {
	dir, err := p.Disk.MkdirAll(p.Root, 0o755)
	if err != nil {
		return err
	}
	if !there {
		self, err := dir.Self()
		if err == nil {
			err = p.chmodRoot(self, held.Mode)
		}
		if err != nil {
			dir.Close()
			return err
		}
	}
	release, err := tryRoot(dir, p.Holder(), false, "")
	if err != nil {
		dir.Close()
		if errors.Is(err, disk.ErrLocked) {
			return &HeldError{}
		}
		return err
	}
	p.roots = append(p.roots, release)
	p.setDecree(nil)
	p.Dir.Close()
	p.Dir = dir
	return p.remember()
}
