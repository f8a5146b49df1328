package disk

import (
	"errors"
	"slices"
	"syscall"
)

// OtherKind says whether an error means that a name is there and is something else than the
// file or the directory that was to be opened: a link, a pipe, a socket, the one for the other,
// or another user's file.
func OtherKind(err error) bool {
	return slices.ContainsFunc([]error{ErrNotRegular, ErrOwner, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO},
		func(is error) bool { return errors.Is(err, is) })
}
