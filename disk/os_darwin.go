package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory that need not be readable.
const searchOnly = unix.O_SEARCH

func statTimes(st *unix.Stat_t) (mtime, ctime int64) { return st.Mtim.Nano(), st.Ctim.Nano() }

func exchange(afd int, a string, bfd int, b string) error {
	return unsupported(unix.RenameatxNp(afd, a, bfd, b, unix.RENAME_SWAP))
}

func renameNew(ofd int, old string, nfd int, new string) error {
	err := unix.RenameatxNp(ofd, old, nfd, new, unix.RENAME_EXCL)
	if errors.Is(unsupported(err), errors.ErrUnsupported) {
		return renameNewPortable(ofd, old, nfd, new)
	}
	return err
}

func unsupported(err error) error {
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

func chmodAt(dirfd int, name string, mode uint32) error {
	return unix.Fchmodat(dirfd, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}
