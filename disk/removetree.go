package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// errMounted is about a mount point, and an EBUSY.
var errMounted = fmt.Errorf("a file system is mounted there; unmount it, then repeat this (%w)", syscall.EBUSY)

// RemoveTree removes name from d with all that is below, following no link. A directory
// without rights gets them first. A missing name is no error. What is mounted below is left as it
// is, and so are the directories above it: that is an EBUSY.
func RemoveTree(d Dir, name string) error {
	err := d.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	st, serr := d.Stat(name)
	if errors.Is(err, syscall.EROFS) && errors.Is(serr, fs.ErrNotExist) {
		return nil // a file system that cannot be written to says so before it looks
	}
	if serr != nil {
		return errors.Join(err, serr)
	}
	if st.Kind != Directory {
		return unlessMounted(d, name, err)
	}
	// The system refuses a mount point before it looks whether the directory is empty. Nothing else tells a directory
	// that is mounted from the same file system (a bind mount).
	if err := d.Rmdir(name); err == nil || errors.Is(err, syscall.EBUSY) {
		return unlessMounted(d, name, err)
	}
	if st.Mode&0o700 != 0o700 {
		if err := d.Chmod(name, st, st.Mode|0o700); err != nil {
			return err
		}
	}
	sub, err := d.OpenDir(name)
	if err != nil {
		return err
	}
	list, err := sub.List()
	for _, e := range list {
		if err == nil {
			err = RemoveTree(sub, e.Name)
		}
	}
	sub.Close()
	if err != nil {
		return err
	}
	return unlessMounted(d, name, d.Rmdir(name))
}

// unlessMounted is err, with words where it is about a mount point.
func unlessMounted(d Dir, name string, err error) error {
	if errors.Is(err, syscall.EBUSY) {
		return &fs.PathError{Op: "remove", Path: filepath.Join(d.Path(), name), Err: errMounted}
	}
	return err
}
