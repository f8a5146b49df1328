package disk

import "golang.org/x/sys/unix"

// Xattrs reads through a descriptor of the file itself: a link is not followed.
func (d *osDir) Xattrs(name string) (out []Xattr, err error) {
	err = d.do("listxattr", name, func() error {
		return d.withFD(name, func(fd int) (err error) {
			out, err = readXattrs(
				func(b []byte) (int, error) { return unix.Flistxattr(fd, b) },
				func(name string, b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) })
			return err
		})
	})
	return out, err
}

func (d *osDir) SetXattr(name string, is Info, x Xattr) error {
	return d.do("setxattr", name, func() error {
		return d.withFD(name, func(fd int) error {
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				return err
			}
			if now := infoOf(&st); !now.SameFile(is) || now.Kind != is.Kind {
				return ErrReplaced
			}
			return unix.Fsetxattr(fd, x.Name, x.Value, 0)
		})
	})
}

func (d *osDir) withFD(name string, use func(fd int) error) error {
	fd, err := unix.Openat(d.f, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return use(fd)
}
