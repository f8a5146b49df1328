package disk

import (
	"bytes"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// Xattrs reads through an O_PATH handle and /proc, so that a link put in the
// file's place is not followed and a file without read permission serves too.
func (d *osDir) Xattrs(name string) (out []Xattr, err error) {
	err = d.do("listxattr", name, func() error {
		return withPath(d.f, name, func(path string) (err error) { out, err = readXattrs(path); return err })
	})
	return out, err
}

func (d *osDir) SetXattr(name string, x Xattr) error {
	return d.do("setxattr", name, func() error {
		return withPath(d.f, name, func(path string) error { return unix.Setxattr(path, x.Name, x.Value, 0) })
	})
}

func withPath(dirfd int, name string, use func(path string) error) error {
	fd, err := unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil // links carry none that matter
	}
	return use("/proc/self/fd/" + strconv.Itoa(fd))
}

func readXattrs(path string) ([]Xattr, error) {
	n, err := unix.Listxattr(path, nil)
	if err != nil || n == 0 {
		return nil, ignoreUnsupported(err)
	}
	list := make([]byte, n)
	if n, err = unix.Listxattr(path, list); err != nil {
		return nil, err
	}
	var out []Xattr
	for _, name := range bytes.Split(bytes.TrimRight(list[:n], "\x00"), []byte{0}) {
		size, err := unix.Getxattr(path, string(name), nil)
		if err != nil {
			continue // gone or not ours to read
		}
		value := make([]byte, size)
		if size > 0 {
			if size, err = unix.Getxattr(path, string(name), value); err != nil {
				continue
			}
		}
		out = append(out, Xattr{Name: string(name), Value: value[:size]})
	}
	return out, nil
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
