package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Xattrs reads through an O_PATH handle and /proc, so that a link put in the
// file's place is not followed and a file without read permission serves too.
func (d *osDir) Xattrs(name string) (out []Xattr, err error) {
	err = d.do("listxattr", name, func() error {
		return withPath(d.f, name, nil, func(path string) (err error) {
			out, err = readXattrs(
				func(b []byte) (int, error) { return unix.Listxattr(path, b) },
				func(name string, b []byte) (int, error) { return unix.Getxattr(path, name, b) })
			return err
		})
	})
	return out, err
}

func (d *osDir) SetXattr(name string, is Info, x Xattr) error {
	return d.do("setxattr", name, func() error {
		return withPath(d.f, name, &is, func(path string) error { return unix.Setxattr(path, x.Name, x.Value, 0) })
	})
}

// withPath gives use a path of the child name, which must be the one that is, if that is given.
func withPath(dirfd int, name string, is *Info, use func(path string) error) error {
	fd, now, err := childHandle(dirfd, name, is)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now.Kind == Symlink {
		return nil // links carry none that matter
	}
	if err = use(procPath(fd)); errors.Is(err, unix.ENOENT) {
		return errNoProc
	}
	return err
}
