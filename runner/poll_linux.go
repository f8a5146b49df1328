package runner

import (
	"time"

	"golang.org/x/sys/unix"
)

// awaitReadable waits until fd (if not negative) or wake can be read, at most d; a
// negative d waits without end.
func awaitReadable(fd, wake int, d time.Duration) (ready, woken bool) {
	ms := -1
	if d >= 0 {
		ms = int(d / time.Millisecond)
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, ms); err != nil {
		return false, false
	}
	return fds[0].Revents != 0, fds[1].Revents != 0
}

// awaitWritable waits until fd can be written, or a second has passed.
func awaitWritable(fd int) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 1000)
}

// canRead reports whether a read of fd would return at once.
func canRead(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}
