package disk

import (
	"errors"
	"fmt"
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

// errNoProc says what a step needs that a bare chroot or container has not.
var errNoProc = fmt.Errorf("this needs /proc, which is not mounted (%w)", errors.ErrUnsupported)

// childHandle opens the child name itself, a link too, for no more than to name it. It must be the one that is, if
// that is given.
func childHandle(dirfd int, name string, is *Info) (fd int, now Info, err error) {
	if fd, err = unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return -1, now, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		now = infoOf(&st)
		if is != nil && (!now.SameFile(*is) || now.Kind != is.Kind) {
			err = ErrReplaced
		}
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, now, err
}

// chmodAt works through a handle: O_PATH serves also for modes without read. It asks for
// fchmodat2 (Linux 6.6); where the system has it not, or a container's filter refuses what it
// does not know, it goes through /proc.
func chmodAt(dirfd int, name string, is Info, mode uint32) error {
	fd, now, err := childHandle(dirfd, name, &is)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now.Kind == Symlink {
		return unix.ELOOP
	}
	first := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	if !errors.Is(unsupported(first), errors.ErrUnsupported) && !errors.Is(first, unix.EPERM) {
		return first
	}
	err = unix.Chmod(procPath(fd), mode)
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	if errors.Is(first, unix.EPERM) {
		return first
	}
	return errNoProc
}

// timesAt works through a handle as chmodAt does, of a link too; through /proc before Linux 5.8.
func timesAt(dirfd int, name string, is Info, times []unix.Timespec) error {
	fd, _, err := childHandle(dirfd, name, &is)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
	if !errors.Is(unsupported(err), errors.ErrUnsupported) {
		return err
	}
	if err = unix.UtimesNanoAt(unix.AT_FDCWD, procPath(fd), times, 0); errors.Is(err, unix.ENOENT) {
		return errNoProc
	}
	return err
}

// openItself opens a directory, so that it can be listed, or a link itself.
func openItself(dirfd int, name string, kind Kind) (int, error) {
	how := unix.O_PATH
	if kind == Directory {
		how = unix.O_RDONLY | unix.O_DIRECTORY
	}
	return unix.Openat(dirfd, name, how|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func chownItself(fd, uid, gid int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) }

// procPath names an open file. That there is no such path can only mean that
// there is no /proc.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
