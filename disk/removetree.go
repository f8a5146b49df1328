package disk

import (
	"errors"
	"io/fs"
	"syscall"
)

// RemoveTree removes name from d with all that is below, following no link. A directory
// without rights gets them first. A missing name is no error.
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
		return err
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
	return d.Rmdir(name)
}
