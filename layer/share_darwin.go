package layer

import (
	"errors"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// share makes name in to a file that has the content of r, in the same blocks;
// errors.ErrUnsupported where the file system cannot do that.
func share(r disk.File, to disk.Dir, name string) (made disk.Info, err error) {
	src, ok1 := r.(interface{ Fd() uintptr })
	dst, ok2 := disk.FD(to)
	if !ok1 || !ok2 {
		return made, errors.ErrUnsupported
	}
	err = unix.Fclonefileat(int(src.Fd()), dst, name, unix.CLONE_NOFOLLOW)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EXDEV) {
		return made, errors.ErrUnsupported
	}
	if err != nil {
		return made, err
	}
	return to.Stat(name)
}

// cloneWhole clones a directory with all that is in it, in one call.
var cloneWhole = func(from, to string) error {
	err := unix.Clonefile(from, to, unix.CLONE_NOFOLLOW)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EXDEV) {
		return errors.ErrUnsupported
	}
	return err
}
