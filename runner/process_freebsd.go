package runner

import (
	"encoding/hex"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// members says whether the group has a process left; the system call that lists
// them is not at hand, so the group's number stands for all of them.
func members(pgid int, _ uint64) (list []Process, others bool, err error) {
	err = unix.Kill(-pgid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, false, nil
	}
	return []Process{{PID: pgid}}, false, nil
}

// parentAt knows this process alone.
func parentAt(pid int) (parent int, start uint64, ok bool) {
	if pid != os.Getpid() {
		return 0, 0, false
	}
	return os.Getppid(), 0, true
}

// leaderAt describes the running process pid, the leader of its group.
func leaderAt(pid int) Leader {
	return Leader{PID: pid, PGID: pid, BootID: BootID()}
}

// reused cannot be known without start times.
func reused(Leader) (bool, error) { return false, nil }

// BootID names this boot of the system; "" if it has no name.
func BootID() string {
	id, err := unix.SysctlRaw("kern.boot_id")
	if err != nil {
		return ""
	}
	return hex.EncodeToString(id)
}
