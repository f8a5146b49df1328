//go:build linux || darwin

package runner

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the command's stdin, stdout and stderr, and what connects them with
// decree's own.
type streams struct {
	own   [3]*os.File // decree's
	tty   [3]bool     // which of own are terminals
	child [3]*os.File // the command's

	given   []*os.File // ends that are the command's alone once it runs
	copiers []*copier
	copied  chan struct{} // closed when all copiers are done
	log     *tee
	held    []string // what a process that holds the command's output has open

	master, slave *os.File
	outer         *os.File  // the terminal that the pseudo-terminal stands for
	session       bool      // the pseudo-terminal is the controlling one
	apart         bool      // the command has a session without a terminal
	unread        bool      // see Command.Unread
	keys          *terminal // where its keys come from; nil: no keys
	noPTY         error
}

// connect makes the streams for c. With an error nothing is left open.
func connect(c Command) (*streams, error) {
	s := &streams{own: [3]*os.File{c.Stdin, c.Stdout, c.Stderr}, log: &tee{log: c.Log}, apart: c.Apart, unread: c.Unread, copied: make(chan struct{})}
	for i, f := range s.own {
		s.tty[i] = isTerminal(f)
	}
	s.makePTY()
	if err := s.attach(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// makePTY makes the pseudo-terminal, if the streams want one. Without one (no
// /dev/pts in a sandbox) the command is better run plainly than not at all.
func (s *streams) makePTY() {
	switch {
	case s.tty[1]:
		s.outer = s.own[1]
	case s.tty[2]:
		s.outer = s.own[2]
	default:
		return
	}
	session := s.tty[0] && s.tty[1] || !s.piped()
	s.master, s.slave, s.noPTY = openPTY(s.outer, !session)
	s.session = session && s.noPTY == nil
}

// piped reports whether a stream is a pipe or a socket: a program at its other end
// may want the terminal's keys for itself.
func (s *streams) piped() bool {
	for _, f := range s.own {
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			return true
		}
	}
	return false
}

// attach gives each of the command's streams its end.
func (s *streams) attach() error {
	if err := s.attachInput(); err != nil {
		return err
	}
	if s.slave != nil {
		s.copyFrom(s.master, s.outer, true)
		s.held = append(s.held, s.slave.Name())
	}
	for i := 1; i <= 2; i++ {
		switch {
		case s.slave != nil && s.tty[i]:
			s.child[i] = s.slave
		case i == 2 && s.child[1] != s.slave && sameFile(s.own[1], s.own[2]):
			// Through one pipe the two keep their order, as they would without decree.
			s.child[2] = s.child[1]
		default:
			r, w, err := os.Pipe()
			if err != nil {
				return err
			}
			s.child[i] = w
			s.given = append(s.given, w)
			s.held = append(s.held, heldLink(r))
			s.copyFrom(r, s.own[i], s.unread)
		}
	}
	return nil
}

func (s *streams) attachInput() error {
	source := s.own[0]
	switch {
	case s.session && s.tty[0]:
		s.child[0] = s.slave
	case source != nil:
		s.child[0] = source
	default:
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		s.child[0] = null
		s.given = append(s.given, null)
	}
	if !s.session {
		return nil
	}
	// With stdin elsewhere the command may still open /dev/tty and ask there.
	if !s.tty[0] {
		source = s.outer
	}
	if !readable(source) {
		return nil
	}
	var err error
	s.keys, err = newTerminal(source, s.master)
	return err
}

func (s *streams) copyFrom(from, to *os.File, keep bool) {
	s.copiers = append(s.copiers, &copier{from: from, to: to, log: s.log, keep: keep, done: make(chan struct{})})
}

// procAttr is how the command is to be started. With front it is the foreground
// group of the terminal front from its first moment.
func (s *streams) procAttr(front *os.File) *syscall.SysProcAttr {
	if s.apart {
		return &syscall.SysProcAttr{Setsid: true}
	}
	if !s.session {
		attr := &syscall.SysProcAttr{Setpgid: true}
		if front != nil {
			attr.Foreground, attr.Ctty = true, int(front.Fd())
		}
		return attr
	}
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: true}
	for i, f := range s.child {
		if f == s.slave {
			attr.Ctty = i
			break
		}
	}
	return attr
}

// begin lets go of the command's ends and starts to copy. The pseudo-terminal's
// other side is kept until stopCopying: a command that closes and reopens its terminal
// must not end the copying in between.
func (s *streams) begin() {
	for _, f := range s.given {
		_ = f.Close()
	}
	s.given = nil
	for _, c := range s.copiers {
		go c.run()
	}
	go func() {
		for _, c := range s.copiers {
			<-c.done
		}
		close(s.copied)
	}()
	if s.keys != nil {
		s.keys.done = make(chan struct{})
		go s.keys.pump()
	}
}

// flush lets what the stopped command has written reach the user, before decree is
// stopped as well. It waits for no slow reader.
func (s *streams) flush() {
	const step = 5 * time.Millisecond
	quiet := 0
	for until := time.Now().Add(stopTime); quiet < 2 && time.Now().Before(until); {
		// The system moves a pseudo-terminal's output a moment after it was written.
		time.Sleep(step)
		quiet++
		for _, c := range s.copiers {
			if !c.idle() {
				quiet = 0
			}
		}
	}
}

// stopCopying ends the copying, now that the group has ended.
func (s *streams) stopCopying() {
	if s.slave != nil {
		_ = s.slave.Close()
	}
	for _, c := range s.copiers {
		c.stop()
	}
}

// outputError is the first error of decree's own stdout and stderr, for streams
// whose copying has ended.
func (s *streams) outputError() error {
	for _, c := range s.copiers {
		select {
		case <-c.done:
			if c.failed != nil {
				return c.failed
			}
		default:
		}
	}
	return nil
}

// close gives the terminal back and closes what is open. A copier that waits for
// a stream that takes nothing is left behind; it writes no log any more.
func (s *streams) close() {
	if s.keys != nil {
		s.keys.release()
	}
	for _, f := range s.given {
		_ = f.Close()
	}
	if s.slave != nil {
		_ = s.slave.Close()
		_ = s.master.Close() // which has no copier yet when the streams could not be attached
	}
	for _, c := range s.copiers {
		_ = c.from.Close()
	}
}

func readable(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE != unix.O_WRONLY
}

// sameFile reports whether a and b lead to the same place.
func sameFile(a, b *os.File) bool {
	if a == nil || b == nil {
		return a == b
	}
	ia, err := a.Stat()
	if err != nil {
		return false
	}
	ib, err := b.Stat()
	return err == nil && os.SameFile(ia, ib)
}
