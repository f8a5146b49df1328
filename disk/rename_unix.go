//go:build unix

package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNewPortable never replaces a file: a hard link fails when its name is
// taken. Directories and file systems without links get a look before the
// rename, and rename(2) itself refuses a directory that is not empty.
func renameNewPortable(ofd int, old string, nfd int, new string) error {
	err := unix.Linkat(ofd, old, nfd, new, 0)
	if err == nil {
		return unix.Unlinkat(ofd, old, 0)
	}
	if errors.Is(err, unix.EEXIST) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(nfd, new, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(ofd, old, nfd, new)
}
