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
	go func() {
		_, _ = read(p.handle, make([]byte, 1)) // nothing is said to this process any more: until the caller is gone
		hangUp(pid)
	}()
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil //nolint:nilerr // it was executed; how it ended nobody can tell
		case status.Stopped() && p.left(): // nobody would continue it
			hangUp(pid)
		case status.Stopped():
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // whoever waits for this process sees it
		default:
			_, _ = write(p.handle, strconv.AppendUint(nil, uint64(status), 10))
			return nil
		}
	}
}

// left says whether the caller is gone: it has its end of the pair until this process has ended.
func (p plan) left() bool {
	n, _, err := syscall.Recvfrom(p.handle, make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil
}

// hangUp tells the command that its terminal is gone. With the caller goes the other side of it, and of that the system
// tells the leader of the session alone, which is this process.
func hangUp(group int) {
	_ = syscall.Kill(-group, syscall.SIGHUP)
	_ = syscall.Kill(-group, syscall.SIGCONT)
}

// program is this program's file, also where it was deleted or replaced meanwhile.
func program() (string, error) { return "/proc/self/exe", nil }

func pair() ([2]int, error) {
	return syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
}
