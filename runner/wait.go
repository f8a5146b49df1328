//go:build linux || darwin

package runner

import "golang.org/x/sys/unix"

// A change is the end or a stop of the command.
type change struct {
	ended   bool
	stopped unix.Signal
	status  unix.WaitStatus // of an end, if reaped
	reaped  bool
}

// reap collects the exit status of the ended process pid.
func reap(pid int, c change) unix.WaitStatus {
	for !c.reaped {
		_, err := unix.Wait4(pid, &c.status, 0, nil)
		c.reaped = err != unix.EINTR
	}
	return c.status
}
