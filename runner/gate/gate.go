//go:build linux || darwin

package gate

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"decree/layer/overlay"
	"decree/runner/fence"
	"decree/runner/userns"
)

const (
	// name is the process's own while it waits; its further words are the number of
	// its handle and of its command's working directory (0: its own), three lists, each with its length before it (the words of the mount that
	// it makes first and of the fence that it sets, if any, and the files to execute, of
	// which the first that is there counts), and the command's words.
	name   = "decree: waiting to run"
	stays  = "decree: waiting to run and to watch" // of one that leads a session for the command
	prefix = "."
	// exitNot is the status when the command is not executed; nobody looks at it.
	exitNot = 125
	// noMount and noFence are said instead of the first byte when the mount could not be
	// made, or the fence not set; the errno in decimal, a space and the step that failed
	// follow.
	noMount, noFence = "!", "#"
	// runs is said by a process that leads, once the command is executed; when that
	// has ended, its wait status in decimal follows.
	runs = "+"
)

// A plan is what the process that waits was told by its words.
type plan struct {
	handle, at          int
	mount, fence, files []string
	args                []string
}

// words is the opposite of planOf.
func (p plan) words() []string {
	out := []string{strconv.Itoa(p.handle), strconv.Itoa(p.at)}
	for _, list := range [][]string{p.mount, p.fence, p.files} {
		out = append(append(out, strconv.Itoa(len(list))), list...)
	}
	return append(out, p.args...)
}

func planOf(words []string) (p plan, ok bool) {
	number := func() int {
		if len(words) == 0 {
			return -1
		}
		n, err := strconv.Atoi(words[0])
		if words = words[1:]; err != nil {
			return -1
		}
		return n
	}
	list := func() []string {
		n := number()
		if n < 0 || n > len(words) {
			words = nil
			return nil
		}
		out := words[:n]
		words = words[n:]
		return out
	}
	p.handle, p.at, p.mount, p.fence, p.files, p.args = number(), number(), list(), list(), list(), words
	return p, p.handle > 0 && p.at >= 0 && p.files != nil && len(p.args) > 0
}

// init is all that the process that waits ever does.
func init() {
	if len(os.Args) == 0 || os.Args[0] != name && os.Args[0] != stays {
		return
	}
	if p, ok := planOf(os.Args[1:]); ok {
		os.Exit(p.wait()) //nolint:forbidigo // cmd's main is never reached in it
	}
}

// wait executes the command once it is told to; it returns only if that is not to be.
func (p plan) wait() int {
	syscall.CloseOnExec(p.handle)
	if p.at != 0 {
		syscall.CloseOnExec(p.at)
	}
	var env []string
	for _, e := range syscall.Environ() {
		if e, ok := strings.CutPrefix(e, prefix); ok {
			env = append(env, e)
		}
	}
	if err := p.enter(); err != nil {
		p.sayUnready(err)
		return exitNot
	}
	if _, err := write(p.handle, []byte{'.'}); err != nil {
		return exitNot
	}
	switch n, err := read(p.handle, make([]byte, 1)); {
	case err != nil:
		p.say(err)
		return exitNot
	case n != 1:
		return exitNot // the caller is gone, or does not want it any more
	}
	var err error
	if p.at != 0 {
		err = syscall.Fchdir(p.at)
	}
	switch {
	case err != nil:
	case os.Args[0] == stays:
		err = p.lead(env)
	default:
		err = first(p.files, func(file string) error { return syscall.Exec(file, p.args, env) })
	}
	if err != nil {
		p.say(err)
		return exitNot
	}
	return 0
}

// enter makes the mount and sets the fence; Landlock allows no mounts any more.
func (p plan) enter() error {
	f, users, err := fence.Parse(p.fence)
	if err == nil {
		err = f.Unplug()
	}
	if err != nil {
		return err
	}
	if len(p.mount) > 0 {
		if err := overlay.Enter(p.mount); err != nil {
			return err
		}
	}
	if len(p.mount) > 0 || users {
		if err := userns.Drop(); err != nil {
			return &overlay.Error{Step: "enter the namespace", Err: err}
		}
	}
	return f.Enclose()
}

// first executes the first of the files that is there, as execvp does.
func first(files []string, execute func(string) error) error {
	failed := error(syscall.ENOENT)
	for _, file := range files {
		err := execute(file)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		case errors.Is(err, syscall.EACCES):
			failed = err
		default:
			return err
		}
	}
	return failed
}

// say tells the caller why the command was not executed.
func (p plan) say(err error) { _, _ = write(p.handle, strconv.AppendInt(nil, int64(errnoOf(err)), 10)) }

// sayUnready tells the caller which step of the mount or the fence failed.
func (p plan) sayUnready(err error) {
	what, step := noMount, ""
	var mount *overlay.Error
	var kept *fence.Error
	switch {
	case errors.As(err, &mount):
		step = mount.Step
	case errors.As(err, &kept):
		what, step = noFence, kept.Step
	}
	_, _ = write(p.handle, []byte(what+strconv.Itoa(int(errnoOf(err)))+" "+step))
}

// errnoOf is the errno of err; an argument with a NUL has none.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return syscall.EINVAL
	}
	return errno
}

// A Process waits to become a command. It is not safe for concurrent use.
type Process struct {
	PID   int
	end   int  // of the socket pair
	leads bool // it starts the command as a child of its own
}

// A Command is what a process is to become.
type Command struct {
	Files []string // the first of them that is there is executed
	Args  []string
	Attr  syscall.ProcAttr // as for syscall.StartProcess; exactly three files
	// Mount, if any, is made by the process before it waits; Files and the command's
	// working directory are then looked for in it.
	Mount *overlay.Mount
	Fence fence.Fence // is set before the process waits
	// At is a handle of the command's working directory, in whose place nothing can be put; 0: it is found by
	// Attr's Dir. There is none where there is a mount.
	At int
	// Lead, where the system has it, lets the process stay: Attr makes it the leader of a
	// session, and the command gets a group of its own in that, in the foreground. A group
	// all of whose parents are in other sessions cannot be stopped by Ctrl-Z. When the
	// command is stopped the process stops itself, too, and when it has ended, it ends;
	// Status tells how.
	Lead bool
}

// Start starts a process as syscall.StartProcess would start the command. One of Pass
// and Drop must follow. An *overlay.Error or a *fence.Error says that its namespaces were
// refused.
func Start(c Command) (*Process, error) {
	ends, err := pair()
	if err != nil {
		return nil, err
	}
	c.Lead = c.Lead && canLead
	p := &Process{end: ends[0], leads: c.Lead}
	own, err := program()
	if err == nil {
		awake := keepAwake()
		p.PID, err = start(own, c, ends[1])
		awake()
	}
	_ = syscall.Close(ends[1]) // or its end would never be seen
	if err != nil {
		_ = syscall.Close(p.end)
		return nil, err
	}
	return p, nil
}

func start(own string, c Command, end int) (pid int, err error) {
	// What this process has inherited the command inherits, under the same numbers: make's job server, for one. It is
	// all from 3 on up to the first number that is free: what is beyond that may be this process's own.
	files := append([]uintptr(nil), c.Attr.Files...)
	for inherited(len(files)) {
		files = append(files, uintptr(len(files)))
	}
	todo := plan{handle: len(files), files: c.Files, args: c.Args}
	c.Attr.Files = append(files, uintptr(end))
	env := make([]string, 0, len(c.Attr.Env))
	for _, e := range c.Attr.Env {
		env = append(env, prefix+e)
	}
	c.Attr.Env = env
	called := name
	if c.Lead {
		called = stays
	}
	todo.fence = c.Fence.Words()
	sys := syscall.SysProcAttr{}
	if c.Attr.Sys != nil {
		sys = *c.Attr.Sys
	}
	if err := c.Fence.Attr(&sys); err != nil {
		return 0, &fence.Error{Step: ownNetwork, Err: err}
	}
	if c.Mount != nil {
		m := *c.Mount
		if err := m.Attr(&sys); err != nil {
			return 0, &overlay.Error{Step: ownUsers, Err: err}
		}
		work, err := m.Open()
		if err != nil {
			return 0, err
		}
		defer work.Close()
		// It may be one that only the layer has.
		m.Dir, c.Attr.Dir = c.Attr.Dir, ""
		todo.mount = m.Words(len(c.Attr.Files))
		c.Attr.Files = append(c.Attr.Files, work.Fd())
	}
	if c.At != 0 {
		todo.at, c.Attr.Dir = len(c.Attr.Files), ""
		c.Attr.Files = append(c.Attr.Files, uintptr(c.At))
	}
	c.Attr.Sys = &sys
	pid, _, err = syscall.StartProcess(own, append([]string{called}, todo.words()...), &c.Attr)
	switch {
	case err == nil:
	case c.Mount != nil:
		err = &overlay.Error{Step: ownUsers, Err: err}
	case c.Fence.NoNet:
		err = &fence.Error{Step: ownNetwork, Err: err}
	}
	return pid, err
}

const ownUsers, ownNetwork = "make a user namespace", "make a network namespace"

// Ready waits until the process waits, and then, as Drop, ends it. The command is not
// executed. An *overlay.Error or a *fence.Error says why it could not get ready.
func (p *Process) Ready() error {
	defer keepAwake()()
	b := make([]byte, 1)
	n, err := read(p.end, b)
	if err == nil && n == 1 && b[0] == '.' {
		p.Drop()
		return nil
	}
	said := append(b[:max(n, 0)], p.rest()...)
	how := p.Drop()
	if err := unreadyError(said); err != nil {
		return err
	}
	return errors.New("ended before it was ready: " + how)
}

// rest is what the process says until it closes its end.
func (p *Process) rest() (said []byte) {
	for b := make([]byte, 64); ; {
		n, err := read(p.end, b)
		if n <= 0 || err != nil {
			return said
		}
		said = append(said, b[:n]...)
	}
}

// unreadyError is the error of a process that said it was unready; nil for all else.
func unreadyError(said []byte) error {
	if len(said) == 0 || string(said[:1]) != noMount && string(said[:1]) != noFence {
		return nil
	}
	number, step, _ := strings.Cut(string(said[1:]), " ")
	errno, _ := strconv.Atoi(number)
	if string(said[:1]) == noFence {
		return &fence.Error{Step: step, Err: syscall.Errno(errno)}
	}
	return &overlay.Error{Step: step, Err: syscall.Errno(errno)}
}

// Pass executes the command and returns when it runs. An error is execve's errno, an
// *overlay.Error or a *fence.Error if it could not get ready, or no errno if it did not come to that;
// the process has ended then and is reaped.
func (p *Process) Pass() error {
	defer keepAwake()()
	// What was not told to go on would wait for ever, and so would reading; but one that
	// could not get ready has ended, and said why.
	if _, err := tell(p.end, []byte{'.'}); err != nil && !errors.Is(err, syscall.EPIPE) {
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
	if err := unreadyError(said); err != nil {
		return err
	}
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
