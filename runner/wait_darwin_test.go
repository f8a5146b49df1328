package runner

import (
	"testing"

	"golang.org/x/sys/unix"
)

// awaitChangeOnly waits for the end of pid and leaves it a zombie.
func awaitChangeOnly(t *testing.T, pid int) bool {
	t.Helper()
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(kq)
	watch := []unix.Kevent_t{{}}
	unix.SetKevent(&watch[0], pid, unix.EVFILT_PROC, unix.EV_ADD)
	watch[0].Fflags = unix.NOTE_EXIT
	n, err := unix.Kevent(kq, watch, make([]unix.Kevent_t, 1), nil)
	return err == nil && n == 1
}
