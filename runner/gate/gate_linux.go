package gate

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const canLead = true

// lead executes the command as a child in the foreground of the terminal that this process's
// session has, and is there until it has ended. An error means that it was not executed.
func (p plan) lead(env []string) error {
	// What is sent to the whole session is the command's. A handler, unlike an ignored
	// signal, is not inherited; what decree was started to ignore stays ignored.
	meant := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(meant, s)
		}
	}
	files := make([]uintptr, p.handle)
	attr := &syscall.SysProcAttr{Setpgid: true}
	for i := range files {
		files[i] = uintptr(i)
		if _, err := unix.IoctlGetInt(i, unix.TIOCGPGRP); err == nil && !attr.Foreground { // the session's terminal
			attr.Foreground, attr.Ctty = true, i
		}
	}
	var pid int
	err := first(p.files, func(file string) (err error) {
		pid, err = syscall.ForkExec(file, p.args, &syscall.ProcAttr{Env: env, Files: files, Sys: attr})
		return err
	})
	if err != nil {
		return err
	}
	_, _ = write(p.handle, []byte(runs))
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil //nolint:nilerr // it was executed; how it ended nobody can tell
		case status.Stopped():
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // whoever waits for this process sees it
		default:
			_, _ = write(p.handle, strconv.AppendUint(nil, uint64(status), 10))
			return nil
		}
	}
}

// program is this program's file, also where it was deleted or replaced meanwhile.
func program() (string, error) { return "/proc/self/exe", nil }

func pair() ([2]int, error) {
	return syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
}
