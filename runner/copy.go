//go:build linux || darwin

package runner

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	copyBuffer = 64 << 10
	// drainTime is how long output is still awaited after the whole group has
	// ended, when a process outside of it keeps the pipe open.
	drainTime = 100 * time.Millisecond
	// drainLimit bounds what is then still read without waiting: the greatest
	// capacity of a pipe, so all that the group left in it.
	drainLimit = 1 << 20
)

// A tee is the log that several copiers write to. Safe for concurrent use.
type tee struct {
	mu     sync.Mutex
	log    io.Writer // nil: none, or closed
	failed error
}

// write appends b to the log. The first error ends the logging, not the passing
// through.
func (t *tee) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log == nil || t.failed != nil {
		return
	}
	n, err := t.log.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	t.failed = err
}

// close ends the logging and returns the first error.
func (t *tee) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = nil
	return t.failed
}

// A copier passes one stream of the command's on to decree's own and to the log.
type copier struct {
	from *os.File // a pipe's reading end or a pseudo-terminal's master, with deadlines
	to   *os.File // nil: the log alone
	log  *tee
	keep bool // it goes on where nobody reads any more what it passes on
	busy atomic.Bool

	done   chan struct{}
	failed error // valid when done is closed
}

// run copies until the end of the stream, until to has gone, or until stop.
func (c *copier) run() {
	defer close(c.done)
	buf := make([]byte, copyBuffer)
	for {
		n, err := c.from.Read(buf)
		if n > 0 && !c.pass(buf[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.rest(buf)
			return
		}
		// A pseudo-terminal that nobody holds any more ends with EIO on Linux.
		if err != nil {
			return
		}
	}
}

// idle reports whether all that came has been passed on.
func (c *copier) idle() bool {
	conn, err := c.from.SyscallConn()
	if err != nil {
		return true
	}
	waiting := false
	_ = conn.Control(func(fd uintptr) { waiting = canRead(int(fd)) })
	return !waiting && !c.busy.Load()
}

// stop ends the copying soon, all that came before being copied.
func (c *copier) stop() {
	_ = c.from.SetReadDeadline(time.Now().Add(drainTime))
}

// rest copies what can be read without waiting. The deadline may have passed while
// decree's own stream was slow to take what came.
func (c *copier) rest(buf []byte) {
	if c.from.SetReadDeadline(time.Time{}) != nil {
		return
	}
	conn, err := c.from.SyscallConn()
	if err != nil {
		return
	}
	for total := 0; total < drainLimit; {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf)
			return true
		})
		if err != nil || n <= 0 || !c.pass(buf[:n]) {
			return
		}
		total += n
	}
}

// pass writes b to the log, then to decree's stream: the other order would lose b
// from the log while a pager holds the stream up. It reports whether to go on.
func (c *copier) pass(b []byte) bool {
	c.busy.Store(true)
	defer c.busy.Store(false)
	c.log.write(b)
	if c.to == nil {
		return true
	}
	err := writeAll(c.to, b)
	if err == nil {
		return true
	}
	gone := errors.Is(err, syscall.EPIPE)
	if !gone && c.failed == nil {
		c.failed = err
	}
	if c.keep || !gone {
		// A terminal has gone, or a disk is full. Whether the first ends the command is for SIGHUP to say, and the second
		// is no reason to end it; what it still writes is logged.
		c.to = nil
		return true
	}
	// As without decree: the command's next write fails with a broken pipe.
	_ = c.from.Close()
	return false
}

// writeAll writes b to f, also if someone who shares f made it non-blocking.
func writeAll(f *os.File, b []byte) error {
	for len(b) > 0 {
		n, err := f.Write(b)
		b = b[n:]
		if errors.Is(err, syscall.EAGAIN) {
			awaitWritable(int(f.Fd()))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
