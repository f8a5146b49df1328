//go:build linux || darwin

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"decree/runner/gate"
)

// Run executes c once and waits for its end and for that of its process group.
// A command that cannot be executed is a Result with NotStarted, not an error.
//
// The error is about decree alone. Before the start (no such Dir, out of
// processes or handles) the Result is empty. After it the Result is complete:
// ErrLog says that the log is not, ctx's error that ctx ended, upon which the
// group was ended as on a timeout.
//
// Run changes the process's handling of PIPE, WINCH, CONT, TSTP and TTOU while
// it runs, and drives the terminal: no two Runs at a time but with Command.Apart, which
// leaves all of that but PIPE alone.
func Run(ctx context.Context, c Command) (Result, error) {
	if len(c.Args) == 0 {
		return Result{}, errors.New("no command given")
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	env := lastWins(c.Env)
	var files []string
	if c.Overlay != nil {
		files = candidates(c.Args[0], searchPath(env)) // only the command's process sees them
	} else {
		if err := checkDir(c.Dir); err != nil {
			return Result{}, err
		}
		file, code, err := lookup(c.Args[0], c.Dir, searchPath(env))
		if err != nil {
			return Result{ExitCode: code, NotStarted: err}, nil
		}
		files = []string{file}
	}
	// With a handler, writing to a closed pipe is an error and not this process's
	// death; and the command, unlike with an ignored signal, does not inherit it.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, unix.SIGPIPE)
	defer signal.Stop(pipes)

	a := &attempt{c: c, ctx: ctx}
	if !c.Apart {
		// From before the size is looked at, so that no change of it is missed.
		a.winch = make(chan os.Signal, 1)
		signal.Notify(a.winch, unix.SIGWINCH)
		defer signal.Stop(a.winch)
		a.stops = watchStops()
		defer a.stops.close()
	}
	s, err := connect(c)
	if err != nil {
		return Result{}, err
	}
	defer s.close()
	a.s = s
	a.res.PTY, a.res.NoPTY = s.slave != nil, s.noPTY
	defer a.job.close()
	return a.run(files, env)
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w", dir, unix.ENOTDIR)
	}
	return nil
}

// An attempt is a Run in flight.
type attempt struct {
	c   Command
	ctx context.Context
	s   *streams
	g   group
	p   *gate.Process
	job job
	res Result

	signals  <-chan os.Signal // c.Signals, nil when closed
	winch    chan os.Signal
	stops    stops
	timeout  <-chan time.Time
	ctxDone  <-chan struct{}
	killing  <-chan time.Time // runs from TERM to KILL
	changes  chan change
	impolite bool // the group was killed: no more grace
	ended    bool // the command itself has ended
	gone     bool // the group has ended, and its number may become another's
}

// run starts the first of files that is there, and sees it through.
func (a *attempt) run(files, env []string) (Result, error) {
	began := time.Now()
	if notStarted, err := a.start(files, env); notStarted != nil || err != nil {
		a.res.NotStarted = notStarted
		switch {
		case notStarted == nil:
		case errors.Is(notStarted, errNotFound), a.c.Overlay != nil && errors.Is(notStarted, syscall.ENOENT):
			a.res.ExitCode = exitNotFound
		default:
			a.res.ExitCode = exitCannotExec
		}
		return a.res, err
	}
	if !a.s.session && !a.c.Apart {
		// The command is in the foreground, or may come there; what decree then
		// writes to the terminal (stty tostop) must not stop it.
		defer ignore(unix.SIGTTOU)()
	}
	a.signals, a.ctxDone = a.c.Signals, a.ctx.Done()
	if a.c.Timeout > 0 {
		timer := time.NewTimer(a.c.Timeout - time.Since(began))
		defer timer.Stop()
		a.timeout = timer.C
	}

	last := a.await()
	a.ended = true
	a.res.Duration = time.Since(began)
	a.timeout, a.killing = nil, nil
	e, err := a.g.end(a.grace(), a.pause)
	a.res.Stragglers, a.res.Survivors = e.met, e.left
	if err != nil {
		a.g.kill() // without a list of its members, at least that
	}
	status := reap(a.g.pgid, last)
	if own, ok := a.p.Status(); ok {
		status = unix.WaitStatus(own)
	}
	a.conclude(status)
	a.gone = true
	a.job.take()
	a.finishOutput()
	if e.others {
		a.res.Outside = a.outside()
	}
	a.s.close()
	a.setExit()
	return a.res, errors.Join(a.logError(), err, a.ctx.Err())
}

// start starts the command, its group and the copying.
func (a *attempt) start(files, env []string) (notStarted, failed error) {
	front := eager(a.s)
	if front != nil {
		a.job.tty, a.job.given = front, true
	}
	p, err := gate.Start(gate.Command{
		Files: files, Args: a.c.Args, Mount: a.c.Overlay, Fence: a.c.Fence, At: a.c.At, Lead: a.s.session,
		Attr: syscall.ProcAttr{
			Dir:   a.c.Dir,
			Env:   env,
			Files: []uintptr{a.s.child[0].Fd(), a.s.child[1].Fd(), a.s.child[2].Fd()},
			Sys:   a.s.procAttr(front),
		},
	})
	if err != nil {
		return a.startFailure(err)
	}
	// From here on the group is known, and only now may it do anything.
	pid, leader := p.PID, leaderAt(p.PID)
	if a.c.Starting != nil {
		if err := a.c.Starting(leader); err != nil {
			p.Drop()
			return nil, err
		}
	}
	if err := p.Pass(); err != nil {
		return a.startFailure(err)
	}
	a.p = p
	a.g = group{pgid: pid, since: leader.StartTime, session: a.s.session || a.c.Apart, tty: a.s.master}
	if a.c.Overlay != nil {
		a.g.mount = a.c.Overlay.Name
	}
	a.s.begin()
	a.changes = make(chan change)
	go func() {
		for {
			ch := awaitChange(pid)
			a.changes <- ch
			if ch.ended {
				return
			}
		}
	}()
	return nil, nil
}

// await handles all that happens until the command itself has ended.
func (a *attempt) await() change {
	for {
		select {
		case ch := <-a.changes:
			if ch.ended {
				return ch
			}
			a.stopped(ch.stopped)
		case <-a.timeout:
			a.res.TimedOut = true
			a.timeout = nil
			a.terminate()
		case <-a.killing:
			a.impolite = true
			a.killing = nil
			a.g.kill()
		case <-a.ctxDone:
			a.ctxDone = nil
			a.terminate()
		case sig, ok := <-a.signals:
			a.interrupt(sig, ok)
		case <-a.winch:
			a.resize()
		case <-a.stops:
			a.ctrlZ()
		}
	}
}

// terminate sends TERM, and has KILL sent when the grace is over.
func (a *attempt) terminate() {
	if a.killing != nil || a.impolite {
		return
	}
	a.g.terminate()
	a.killing = time.After(a.c.Grace)
}

// interrupt passes a signal of decree's on: the first to the group, and at the
// second the group is killed.
func (a *attempt) interrupt(sig os.Signal, ok bool) {
	if !ok {
		a.signals = nil
		return
	}
	if a.signalled() {
		a.impolite = true
		if !a.gone {
			a.g.kill()
		}
		return
	}
	if a.ended {
		a.res.Late = sig
	} else {
		a.res.Interrupted = sig
	}
	if s, ok := sig.(unix.Signal); ok && !a.gone {
		a.g.signal(s, unix.SIGCONT)
	}
}

// signalled says whether decree has received a signal.
func (a *attempt) signalled() bool { return a.res.Interrupted != nil || a.res.Late != nil }

// resize follows the size of the user's terminal.
func (a *attempt) resize() {
	if a.s.slave != nil {
		copySize(a.s.master, a.s.outer)
	}
	if !a.s.session && !a.job.given {
		a.g.signal(unix.SIGWINCH) // the terminal told decree's group alone
	}
}

// ctrlZ passes the terminal's Ctrl-Z on, when it came to decree.
func (a *attempt) ctrlZ() {
	a.g.signal(unix.SIGTSTP)
	// The command's stop, if it does stop, is this one and not a further one.
	select {
	case ch := <-a.changes:
		if ch.ended {
			go func() { a.changes <- ch }()
			return
		}
	case <-time.After(stopTime):
	}
	a.suspend()
}

// stopped handles a stop of the command by sig.
func (a *attempt) stopped(sig unix.Signal) {
	if a.c.Apart || !stopped(a.g.pgid) || a.job.find(a.s) == nil {
		return // it goes on already; or there is no job control that could continue it
	}
	wants := sig == unix.SIGTTIN || sig == unix.SIGTTOU
	if wants && !a.s.session && a.job.give(a.g.pgid) {
		a.g.signal(unix.SIGCONT)
		return
	}
	a.suspend()
}

// suspend stops decree's job, the command being stopped, and continues both.
func (a *attempt) suspend() {
	a.s.flush()
	given := a.job.given
	a.job.take()
	if a.s.keys != nil {
		a.s.keys.pause()
	}
	a.stops.stopSelf()
	if a.s.keys != nil {
		a.s.keys.resume()
	}
	if a.s.slave != nil {
		copySize(a.s.master, a.s.outer)
	}
	if given {
		a.job.give(a.g.pgid)
	}
	a.g.signal(unix.SIGCONT)
}

// grace is what the stragglers are given.
func (a *attempt) grace() time.Duration {
	if a.impolite {
		return 0
	}
	return a.c.Grace
}

// pause waits d while the group is being ended, and reports whether to go on
// politely.
func (a *attempt) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case sig, ok := <-a.signals:
		a.interrupt(sig, ok)
	case <-a.stops:
		a.stops.stopSelf()
	case <-a.ctxDone:
		a.ctxDone = nil
	}
	return !a.impolite
}

// finishOutput waits until what the group wrote has been passed on. The reader of
// decree's output may take its time, as it may with the command itself; but not
// when the attempt was cut short.
func (a *attempt) finishOutput() {
	a.s.stopCopying()
	var limit <-chan time.Time
	for {
		cut := a.res.TimedOut || a.signalled() || a.ctx.Err() != nil
		if cut && limit == nil {
			limit = time.After(max(a.c.Grace, 2*drainTime))
		}
		select {
		case <-a.s.copied:
			a.res.Output = a.s.outputError()
			return
		case <-limit:
			return
		case <-a.stops:
			a.stops.stopSelf()
		case <-a.ctxDone:
			a.ctxDone = nil
		case sig, ok := <-a.signals:
			again := a.signalled()
			a.interrupt(sig, ok)
			if ok && again {
				return
			}
		}
	}
}

// logError ends the logging.
func (a *attempt) logError() error {
	if err := a.s.log.close(); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	return nil
}

// runMark begins the entry of the environment by which the command's processes are
// known when they have left its group.
const runMark = "DECREE_RUN_ID="

func (a *attempt) outside() []Process {
	o := outsiders{pgid: a.g.pgid, since: a.g.since, root: a.c.Root, held: a.s.held}
	if i := slices.IndexFunc(a.c.Env, func(e string) bool { return strings.HasPrefix(e, runMark) }); i >= 0 {
		o.mark = a.c.Env[i]
	}
	return o.find()
}

// conclude notes how the command itself ended.
func (a *attempt) conclude(status unix.WaitStatus) {
	if status.Signaled() {
		a.res.Signal = unix.SignalName(status.Signal())
		a.res.ExitCode = 128 + int(status.Signal())
		return
	}
	a.res.ExitCode = status.ExitStatus()
}

// setExit lets decree's own reasons go before the command's.
func (a *attempt) setExit() {
	if a.res.TimedOut {
		a.res.ExitCode = exitTimeout
	}
	if s, ok := a.res.Interrupted.(unix.Signal); ok {
		a.res.ExitCode = 128 + int(s)
	}
}
