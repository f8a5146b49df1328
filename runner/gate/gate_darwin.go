package gate

import (
	"os"
	"syscall"
)

// canLead: elsewhere the members of a session cannot be listed, so the command leads
// its own group.
const canLead = false

func (plan) lead([]string) error { return syscall.ENOSYS }

// program is this program's file.
func program() (string, error) { return os.Executable() }

func pair() (ends [2]int, err error) {
	syscall.ForkLock.RLock() // no process is started in between
	defer syscall.ForkLock.RUnlock()
	if ends, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	return ends, err
}
