//go:build linux || darwin

package runner

import (
	"os/exec"
	"syscall"
)

// Background starts a program that goes on when this process has ended: in a session of its
// own, with nothing to read and nobody to print to. What comes on ended is how it ended,
// should this process live that long.
func Background(program string, args, env []string, dir string) (ended <-chan error, err error) {
	c := exec.Command(program, args...)
	c.Env, c.Dir = env, dir
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	return done, nil
}
