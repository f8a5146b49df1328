package runner

import (
	"golang.org/x/sys/unix"
)

// codeStopped is CLD_STOPPED of waitid(2).
const codeStopped = 5

// awaitChange waits for the next change of pid. The end of a process is looked at
// without reaping it: as long as it is a zombie its number, which is also the
// group's, cannot become another's.
func awaitChange(pid int) change {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Code != codeStopped {
			return change{ended: true}
		}
		var status unix.WaitStatus
		got, err := unix.Wait4(pid, &status, unix.WUNTRACED|unix.WNOHANG, nil)
		switch {
		case err != nil || got != pid:
			// It goes on already.
		case status.Stopped():
			return change{stopped: status.StopSignal()}
		default:
			return change{ended: true, status: status, reaped: true}
		}
	}
}
