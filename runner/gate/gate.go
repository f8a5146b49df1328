//go:build linux || darwin

package gate

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// name is the process's own while it waits; its further words are the number of
	// its handle, the file to execute and the command's words.
	name   = "decree: waiting to run"
	stays  = "decree: waiting to run and to watch" // of one that leads a session for the command
	words  = 4                                     // at least
	prefix = "."
	// exitNot is the status when the command is not executed; nobody looks at it.
	exitNot = 125
	// runs is said by a process that leads, once the command is executed; when that
	// has ended, its wait status in decimal follows.
	runs = "+"
)

// init is all that the process that waits ever does.
func init() {
	if len(os.Args) < words || os.Args[0] != name && os.Args[0] != stays {
		return
	}
	handle, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return
	}
	os.Exit(wait(handle, os.Args[2], os.Args[3:])) //nolint:forbidigo // cmd's main is never reached in it
}

// wait executes file once it is told to; it returns only if that is not to be.
func wait(handle int, file string, args []string) int {
	syscall.CloseOnExec(handle)
	var env []string
	for _, e := range syscall.Environ() {
		if e, ok := strings.CutPrefix(e, prefix); ok {
			env = append(env, e)
		}
	}
	if _, err := write(handle, []byte{'.'}); err != nil {
		return exitNot
	}
	var errno syscall.Errno
	switch n, err := read(handle, make([]byte, 1)); {
	case errors.As(err, &errno):
		_, _ = write(handle, strconv.AppendInt(nil, int64(errno), 10))
		return exitNot
	case n != 1:
		return exitNot // the caller is gone, or does not want it any more
	}
	execute := syscall.Exec
	if os.Args[0] == stays {
		execute = func(file string, args, env []string) error { return lead(handle, file, args, env) }
	}
	err := execute(file, args, env)
	if err == nil {
		return 0
	}
	if !errors.As(err, &errno) {
		errno = syscall.EINVAL // an argument with a NUL
	}
	_, _ = write(handle, strconv.AppendInt(nil, int64(errno), 10))
	return exitNot
}

// A Process waits to become a command. It is not safe for concurrent use.
type Process struct {
	PID   int
	end   int  // of the socket pair
	leads bool // it starts the command as a child of its own
}

// Start starts a process as syscall.StartProcess would start the command. attr has
// exactly three files. One of Pass and Drop must follow.
//
// With lead, where the system has it, the process stays: attr makes it the leader of a
// session, and the command gets a group of its own in that, in the foreground. A group
// all of whose parents are in other sessions cannot be stopped by Ctrl-Z. When the
// command is stopped the process stops itself, too, and when it has ended, it ends;
// Status tells how.
func Start(file string, args []string, attr syscall.ProcAttr, lead bool) (*Process, error) {
	ends, err := pair()
	if err != nil {
		return nil, err
	}
	p := &Process{end: ends[0], leads: lead && canLead}
	own, err := program()
	if err == nil {
		p.PID, err = start(own, file, args, attr, ends[1], p.leads)
	}
	_ = syscall.Close(ends[1]) // or its end would never be seen
	if err != nil {
		_ = syscall.Close(p.end)
		return nil, err
	}
	return p, nil
}

func start(own, file string, args []string, attr syscall.ProcAttr, end int, lead bool) (pid int, err error) {
	// What this process has inherited the command inherits, under the same numbers:
	// make's job server, for one.
	files := append([]uintptr(nil), attr.Files...)
	for inherited(len(files)) {
		files = append(files, uintptr(len(files)))
	}
	handle := len(files)
	attr.Files = append(files, uintptr(end))
	env := make([]string, 0, len(attr.Env))
	for _, e := range attr.Env {
		env = append(env, prefix+e)
	}
	attr.Env = env
	called := name
	if lead {
		called = stays
	}
	pid, _, err = syscall.StartProcess(own, append([]string{called, strconv.Itoa(handle), file}, args...), &attr)
	return pid, err
}

// Pass executes the command and returns when it runs. An error is execve's errno, or
// no errno if it did not come to that; the process has ended then and is reaped.
func (p *Process) Pass() error {
	// What was not told to go on would wait for ever, and so would reading.
	if _, err := tell(p.end, []byte{'.'}); err != nil {
		return errors.New("it could not be executed: " + err.Error() + " (" + p.Drop() + ")")
	}
	var said []byte
	for b := make([]byte, 1); ; { // what follows is Status's to read
		n, err := read(p.end, b)
		if n <= 0 || err != nil {
			break
		}
		said = append(said, b[:n]...)
		if p.leads && string(said) == "."+runs {
			return nil // Status closes the handle
		}
	}
	if string(said) == "." && !p.leads {
		_ = syscall.Close(p.end)
		return nil
	}
	how := p.Drop()
	if len(said) == 0 {
		return errors.New("ended before it could be executed: " + how)
	}
	errno, err := strconv.Atoi(string(said[1:]))
	if err != nil {
		return err
	}
	return syscall.Errno(errno)
}

// Status is how the command of a process that leads has ended; ok is false for one that
// is the command itself, and where it was ended before it could tell. It is called
// once, when the process has ended.
func (p *Process) Status() (status syscall.WaitStatus, ok bool) {
	if !p.leads {
		return 0, false
	}
	defer syscall.Close(p.end) //nolint:errcheck // it was read
	b := make([]byte, 16)
	n, err := read(p.end, b)
	if n <= 0 || err != nil {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[:n]), 10, 32)
	return syscall.WaitStatus(v), err == nil
}

// Drop ends the process that waits, and says how it ended.
func (p *Process) Drop() string {
	_ = syscall.Close(p.end)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.PID, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return err.Error()
		case status.Signaled():
			return status.Signal().String()
		}
		return "exit status " + strconv.Itoa(status.ExitStatus())
	}
}

// tell is write, but in a test of what follows when it fails.
var tell = write

func read(fd int, b []byte) (n int, err error) {
	for {
		if n, err = syscall.Read(fd, b); err != syscall.EINTR {
			return n, err
		}
	}
}

func write(fd int, b []byte) (n int, err error) {
	for {
		if n, err = syscall.Write(fd, b); err != syscall.EINTR {
			return n, err
		}
	}
}

// inherited says whether the handle fd is open and stays so in other programs.
func inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}
