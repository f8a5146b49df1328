package runner

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"
)

// ownedBy reports whether uid started the process: its real user id, which a program with
// set-user-ID leaves as it is.
func ownedBy(pid int, uid uint32) bool {
	b, err := readProc(procFile(pid, "status"), 1, 4096)
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(b, []byte("\nUid:\t"))
	real, _, ok := bytes.Cut(after, []byte{'\t'})
	have, isNumber := number(real)
	return ok && isNumber && have == uint64(uid)
}

// signalOwned signals the process if it is uid's. The handle is taken first: the number
// could be another's by the time of the signal.
func signalOwned(pid int, uid uint32, sigs []unix.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if !ownedBy(pid, uid) {
		return
	}
	for _, sig := range sigs {
		if err != nil { // Linux before 5.3
			_ = unix.Kill(pid, sig)
		} else {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	}
}
