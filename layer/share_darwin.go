package layer

import (
	"errors"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// share makes name in to a file that has the content of the one in from, in the same
// blocks; errors.ErrUnsupported where the file system cannot do that.
func share(from, to disk.Dir, name string) error {
	src, ok1 := disk.FD(from)
	dst, ok2 := disk.FD(to)
	if !ok1 || !ok2 {
		return errors.ErrUnsupported
	}
	err := unix.Clonefileat(src, name, dst, name, unix.CLONE_NOFOLLOW)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EXDEV) {
		return errors.ErrUnsupported
	}
	return err
}

// cloneWhole clones a directory with all that is in it, in one call.
var cloneWhole = func(from, to string) error {
	err := unix.Clonefile(from, to, unix.CLONE_NOFOLLOW)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EXDEV) {
		return errors.ErrUnsupported
	}
	return err
}
