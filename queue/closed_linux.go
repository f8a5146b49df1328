package queue

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// hasNoWriter says whether nobody has the file open for writing. A read lease is
// given only then (fcntl(2), F_SETLEASE), and is given back at once. Where the
// file system knows no leases, or the file is another user's, it counts as closed
// when it was not written to for a second.
func hasNoWriter(dir disk.Dir, name string, mtime int64) bool {
	at, ok := disk.FD(dir)
	if !ok {
		return true // a disk of a test
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return true // whoever reads it says what is wrong
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return true
	case errors.Is(err, unix.EAGAIN):
		return false
	}
	return leftAlone(mtime, time.Second)
}
