package disk

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// searchOnly opens a directory that need not be readable.
const searchOnly = unix.O_PATH

func statTimes(st *unix.Stat_t) (mtime, ctime int64) { return st.Mtim.Nano(), st.Ctim.Nano() }

func exchange(afd int, a string, bfd int, b string) error {
	return unsupported(unix.Renameat2(afd, a, bfd, b, unix.RENAME_EXCHANGE))
}

// renameNew falls back to a link and an unlink where the file system has no
// RENAME_NOREPLACE; for what cannot be linked, to a look before the rename.
func renameNew(ofd int, old string, nfd int, new string) error {
	err := unix.Renameat2(ofd, old, nfd, new, unix.RENAME_NOREPLACE)
	if errors.Is(unsupported(err), errors.ErrUnsupported) {
		return renameNewPortable(ofd, old, nfd, new)
	}
	return err
}

// unsupported maps what file systems without the rename flags answer.
func unsupported(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return errors.ErrUnsupported
	}
	return err
}

// chmodAt goes through a handle: fchmodat follows links, and its no-follow
// form is missing from older kernels. O_PATH serves also for modes without read.
func chmodAt(dirfd int, name string, mode uint32) error {
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
		return unix.ELOOP
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}
