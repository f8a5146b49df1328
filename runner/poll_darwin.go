package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// awaitReadable waits until fd (if not negative) or wake can be read, at most d; a
// negative d waits without end. poll(2) does not know terminals here.
func awaitReadable(fd, wake int, d time.Duration) (ready, woken bool) {
	var set unix.FdSet
	set.Set(wake)
	if fd >= 0 {
		set.Set(fd)
	}
	var tv *unix.Timeval
	if d >= 0 {
		t := unix.NsecToTimeval(int64(d))
		tv = &t
	}
	if _, err := unix.Select(max(fd, wake)+1, &set, nil, nil, tv); err != nil {
		return false, false
	}
	return fd >= 0 && set.IsSet(fd), set.IsSet(wake)
}

// awaitWritable waits until fd can be written, or a second has passed.
func awaitWritable(fd int) {
	var set unix.FdSet
	set.Set(fd)
	_, _ = unix.Select(fd+1, nil, &set, nil, &unix.Timeval{Sec: 1})
}

// canRead reports whether a read of fd would return at once.
func canRead(fd int) bool {
	var set unix.FdSet
	set.Set(fd)
	n, err := unix.Select(fd+1, &set, nil, nil, &unix.Timeval{})
	return err == nil && n > 0
}
