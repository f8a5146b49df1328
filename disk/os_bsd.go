//go:build unix && !linux && !darwin

package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// searchOnly is 0: there is no such way.
const searchOnly = 0

func statTimes(st *unix.Stat_t) (mtime, ctime int64) { return st.Mtim.Nano(), st.Ctim.Nano() }

func exchange(afd int, a string, bfd int, b string) error { return errors.ErrUnsupported }

func renameNew(ofd int, old string, nfd int, new string) error {
	return renameNewPortable(ofd, old, nfd, new)
}

func chmodAt(dirfd int, name string, mode uint32) error {
	return unix.Fchmodat(dirfd, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}
