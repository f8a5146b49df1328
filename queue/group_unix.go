//go:build unix

package queue

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command end with all it has started.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
