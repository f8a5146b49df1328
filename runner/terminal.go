//go:build linux || darwin

package runner

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// backgroundLook is how often a terminal in whose background decree runs is looked
// at: a shell's fg tells nothing to a job that was not stopped.
const backgroundLook = 250 * time.Millisecond

// A terminal is the user's, from which keys go to the command's pseudo-terminal.
// Safe for concurrent use.
type terminal struct {
	file   *os.File
	master *os.File // where the keys go

	mu     sync.Mutex
	before *term.State // what to go back to; nil: not in raw mode
	paused bool
	closed bool

	wake, woken *os.File // a pipe that ends the pump's wait
	done        chan struct{}
}

// newTerminal takes hold of f: in raw mode from now on, unless decree is in its
// background.
func newTerminal(f, master *os.File) (*terminal, error) {
	woken, wake, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t := &terminal{file: f, master: master, wake: wake, woken: woken}
	t.enter()
	return t, nil
}

// enter makes the terminal raw if keys are decree's to read, and reports whether
// they are.
func (t *terminal) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.paused || !inForeground(t.file) {
		return false
	}
	if t.before == nil {
		state, err := term.MakeRaw(int(t.file.Fd()))
		if err != nil {
			return false
		}
		t.before = state
	}
	return true
}

// leave brings the terminal's settings back.
func (t *terminal) leave() {
	if t.before != nil {
		_ = term.Restore(int(t.file.Fd()), t.before)
		t.before = nil
	}
}

// pause gives the terminal back until resume: decree is about to be stopped.
func (t *terminal) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = true
	t.leave()
	t.nudge()
}

func (t *terminal) resume() {
	t.mu.Lock()
	t.paused = false
	t.mu.Unlock()
	t.enter()
	t.nudge()
}

// release gives the terminal back for good. It may be called more than once.
func (t *terminal) release() {
	t.mu.Lock()
	t.leave()
	first := !t.closed
	t.closed = true
	if first {
		t.nudge()
	}
	t.mu.Unlock()
	if first {
		if t.done != nil {
			// Nobody may be reading on the other side.
			_ = t.master.SetWriteDeadline(time.Now())
			<-t.done
		}
		_ = t.wake.Close()
		_ = t.woken.Close()
	}
}

func (t *terminal) nudge() { _, _ = t.wake.Write([]byte{0}) }

// pump passes keys on until release. A panic here must not leave the
// terminal raw either.
func (t *terminal) pump() {
	defer close(t.done)
	defer func() {
		if p := recover(); p != nil {
			t.mu.Lock()
			t.leave()
			t.mu.Unlock()
			panic(p)
		}
	}()
	buf := make([]byte, 4096)
	wake := int(t.woken.Fd())
	for {
		fd, limit := int(t.file.Fd()), time.Duration(-1)
		if !t.enter() {
			fd, limit = -1, backgroundLook
		}
		ready, woken := awaitReadable(fd, wake, limit)
		if woken {
			_, _ = unix.Read(wake, buf)
			if t.over() {
				return
			}
			continue
		}
		if !ready {
			continue
		}
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n <= 0 {
			return // hung up; SIGHUP says the rest
		}
		if _, err := t.master.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (t *terminal) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// inForeground reports whether decree may read tty without being stopped.
func inForeground(tty *os.File) bool {
	pgid, err := foregroundGroup(tty)
	return err != nil || pgid == ownGroup()
}
