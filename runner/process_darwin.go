package runner

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// members lists the live processes of the group, by pid. Others are not looked for.
func members(pgid int, since uint64) (list []Process, others bool, err error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if errors.Is(err, unix.ESRCH) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for i := range procs {
		p := &procs[i].Proc
		if p.P_stat == zombie || started(p) < since {
			continue
		}
		name, _, _ := bytes.Cut(p.P_comm[:], []byte{0})
		list = append(list, Process{PID: int(p.P_pid), Name: string(name)})
	}
	slices.SortFunc(list, func(a, b Process) int { return a.PID - b.PID })
	return list, false, nil
}

// newestTask is unknown: the system does not tell.
func newestTask() string { return "" }

// mounted is nobody: there are no overlays.
func mounted(group) ([]Process, error) { return nil, nil }

// started is the start of p in microseconds since 1970.
func started(p *unix.ExternProc) uint64 {
	return uint64(p.P_starttime.Sec)*1e6 + uint64(p.P_starttime.Usec)
}

// parentAt says what started the process pid and when pid itself started; ok is false
// where the system does not tell.
func parentAt(pid int) (parent int, start uint64, ok bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return 0, 0, false
	}
	return int(p.Eproc.Ppid), started(&p.Proc), true
}

// leaderAt describes the running process pid, the leader of its group.
func leaderAt(pid int) Leader {
	l := Leader{PID: pid, PGID: pid, BootID: BootID()}
	if p, err := unix.SysctlKinfoProc("kern.proc.pid", pid); err == nil && int(p.Proc.P_pid) == pid {
		l.StartTime = started(&p.Proc)
	}
	return l
}

// reused reports whether the leader's number belongs to another process by now.
func reused(l Leader) (bool, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", l.PID)
	if err != nil || int(p.Proc.P_pid) != l.PID {
		return false, nil
	}
	return l.StartTime != 0 && started(&p.Proc) != l.StartTime, nil
}

// here is the leader as it is: there are no namespaces.
func here(l Leader) (Leader, bool) { return l, true }

// BootID names this boot of the system; "" if it has no name.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// BootTime is when the system was started, by the clock as it is now; zero where that is not known.
func BootTime() time.Time {
	t, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}
	}
	return time.Unix(t.Unix())
}

// nameAt is the system's short name for the process pid; "" where it does not tell.
func nameAt(pid int) string {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return ""
	}
	name, _, _ := bytes.Cut(p.Proc.P_comm[:], []byte{0})
	return string(name)
}

// argumentsAt are those of the process pid, each with a NUL behind it, and what the system
// has beside them; "" where it does not tell.
func argumentsAt(pid int) string {
	words, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return ""
	}
	return string(words)
}

// startAt says when the process pid started, and whether it still runs.
func startAt(pid int) (start uint64, live bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return 0, false
	}
	return started(&p.Proc), p.Proc.P_stat != zombie
}
