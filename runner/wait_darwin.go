package runner

import (
	"golang.org/x/sys/unix"
)

// awaitChange waits for the next change of pid, and reaps it at its end.
func awaitChange(pid int) change {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil)
		if err == unix.EINTR {
			continue
		}
		if err == nil && status.Stopped() {
			return change{stopped: status.StopSignal()}
		}
		return change{ended: true, status: status, reaped: true}
	}
}
