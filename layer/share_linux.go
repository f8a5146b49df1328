package layer

import (
	"errors"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// share makes name in to a file that has the content of the one in from, in the same
// blocks; errors.ErrUnsupported where the file system cannot do that.
func share(from, to disk.Dir, name string) error {
	r, err := from.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := to.Create(name, 0o600)
	if err != nil {
		return err
	}
	defer w.Close()
	src, ok1 := r.(interface{ Fd() uintptr })
	dst, ok2 := w.(interface{ Fd() uintptr })
	if !ok1 || !ok2 {
		return errors.ErrUnsupported
	}
	err = unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	for _, no := range []error{unix.EOPNOTSUPP, unix.EXDEV, unix.EINVAL, unix.ENOTTY, unix.ENOSYS} {
		if errors.Is(err, no) {
			return errors.ErrUnsupported
		}
	}
	return err
}

// cloneWhole is nil: no call clones a whole directory.
var cloneWhole func(from, to string) error
