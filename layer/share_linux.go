package layer

import (
	"errors"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// share makes name in to a file that has the content of r, in the same blocks;
// errors.ErrUnsupported where the file system cannot do that.
func share(r disk.File, to disk.Dir, name string) (made disk.Info, err error) {
	w, err := to.Create(name, 0o600)
	if err != nil {
		return made, err
	}
	defer w.Close()
	src, ok1 := r.(interface{ Fd() uintptr })
	dst, ok2 := w.(interface{ Fd() uintptr })
	if !ok1 || !ok2 {
		return made, errors.ErrUnsupported
	}
	err = unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	for _, no := range []error{unix.EOPNOTSUPP, unix.EXDEV, unix.EINVAL, unix.ENOTTY, unix.ENOSYS} {
		if errors.Is(err, no) {
			return made, errors.ErrUnsupported
		}
	}
	if err != nil {
		return made, err
	}
	return w.Stat()
}

// cloneWhole is nil: no call clones a whole directory.
var cloneWhole func(from, to string) error
