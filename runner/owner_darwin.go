package runner

import (
	"golang.org/x/sys/unix"
)

// ownedBy reports whether uid started the process: its real user id, which a program with
// set-user-ID leaves as it is.
func ownedBy(pid int, uid uint32) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(p.Proc.P_pid) == pid && p.Eproc.Pcred.P_ruid == uid
}

// signalOwned signals the process if it is uid's.
func signalOwned(pid int, uid uint32, sigs []unix.Signal) {
	for _, sig := range sigs {
		if ownedBy(pid, uid) {
			_ = unix.Kill(pid, sig)
		}
	}
}
