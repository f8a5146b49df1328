//go:build linux || darwin

package runner

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// stopTime is how long a stop of this process is awaited. The system passes over
// the stop of a job that no shell could continue; decree then just goes on.
const stopTime = 100 * time.Millisecond

// A job is the command seen by the job control of the user's shell: its place in
// the terminal's foreground, where it has no pseudo-terminal for that.
type job struct {
	tty    *os.File // the user's terminal; nil until one is needed
	opened bool     // tty is ours to close
	given  bool     // the command's group is in the foreground
}

// eager returns the terminal whose foreground the command is to have from the
// start; nil for none. With a pipe among the streams another program of the
// pipeline may need the foreground more; the command then gets it when it asks.
func eager(s *streams) *os.File {
	if !s.tty[0] || s.session || s.piped() {
		return nil
	}
	if pgid, err := foregroundGroup(s.own[0]); err != nil || pgid != ownGroup() {
		return nil
	}
	return s.own[0]
}

// find returns the user's terminal, also if no stream is one: the command may have
// opened /dev/tty.
func (j *job) find(s *streams) *os.File {
	if j.tty != nil {
		return j.tty
	}
	for i, f := range s.own {
		if s.tty[i] {
			j.tty = f
			return f
		}
	}
	if f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0); err == nil {
		j.tty, j.opened = f, true
	}
	return j.tty
}

// give makes pgid the foreground group if decree's own is, and reports whether the
// command is in the foreground now.
func (j *job) give(pgid int) bool {
	if j.tty == nil {
		return false
	}
	front, err := foregroundGroup(j.tty)
	if err != nil || front != ownGroup() && front != pgid {
		return false
	}
	j.given = unix.IoctlSetPointerInt(int(j.tty.Fd()), unix.TIOCSPGRP, pgid) == nil
	return j.given
}

// take brings decree back into the foreground if the command was there.
func (j *job) take() {
	if !j.given {
		return
	}
	j.given = false
	// A background process that changes the terminal is stopped otherwise.
	undo := ignore(unix.SIGTTOU)
	defer undo()
	_ = unix.IoctlSetPointerInt(int(j.tty.Fd()), unix.TIOCSPGRP, ownGroup())
}

// close ends decree's use of the terminal.
func (j *job) close() {
	j.take()
	if j.opened {
		_ = j.tty.Close()
	}
}

// ignore ignores sig until the returned function is called. Commands inherit what
// is ignored when they start, so it must be called when they run.
func ignore(sig unix.Signal) (undo func()) {
	if signal.Ignored(sig) {
		return func() {}
	}
	signal.Ignore(sig)
	return func() {
		// signal.Reset would leave it ignored, for the next command too. One that has
		// a handler, used or not, is back at its default there.
		c := make(chan os.Signal, 1)
		signal.Notify(c, sig)
		signal.Stop(c)
	}
}

// stops tells of TSTP, the terminal's Ctrl-Z. Once it was asked for, the runtime
// never brings its default action back.
type stops chan os.Signal

// watchStops listens for TSTP, unless decree was started with it ignored.
func watchStops() stops {
	s := make(stops, 1)
	if !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(s, unix.SIGTSTP)
	}
	return s
}

func (s stops) close() { signal.Stop(s) }

// stopSelf stops this process, and all of its job as the terminal's Ctrl-Z would,
// until a shell continues it.
func (s stops) stopSelf() {
	cont := make(chan os.Signal, 1)
	signal.Notify(cont, unix.SIGCONT)
	defer signal.Stop(cont)
	if !signal.Ignored(unix.SIGTSTP) {
		// The one for the others must not come back to us as a further Ctrl-Z.
		signal.Ignore(unix.SIGTSTP)
		defer signal.Notify(s, unix.SIGTSTP)
	}
	_ = unix.Kill(0, unix.SIGTSTP)
	// That stopped the others of the job. Here TTIN still has its default action,
	// which, unlike that of STOP, spares a job that nobody could continue.
	_ = unix.Kill(unix.Getpid(), unix.SIGTTIN)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-cont:
	case <-timer.C:
	}
}
