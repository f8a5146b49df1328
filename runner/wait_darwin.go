package runner

import (
	"golang.org/x/sys/unix"
)

// A change is the end or a stop of the command.
type change struct {
	ended   bool
	stopped unix.Signal
	status  unix.WaitStatus // of an end
}

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
		return change{ended: true, status: status}
	}
}

// reap returns the exit status that came with the end.
func reap(_ int, c change) unix.WaitStatus { return c.status }
