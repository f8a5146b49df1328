//go:build linux || darwin

package runner

import (
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openPTY makes a pseudo-terminal with the size and settings of like. With plain
// its output is not processed (no CR before LF): like does that.
func openPTY(like *os.File, plain bool) (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	// The library leaves the handle in blocking mode, in which a pending read can
	// be neither ended nor given a deadline.
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = slave.Close()
		return nil, nil, &os.PathError{Op: "dup", Path: blocking.Name(), Err: err}
	}
	unix.CloseOnExec(int(slave.Fd()))
	copySettings(slave, like, plain)
	master = os.NewFile(uintptr(fd), blocking.Name())
	copySize(master, like)
	return master, slave, nil
}

// copySettings gives slave the line settings of like (erase key, echo, ...), as far
// as it has them.
func copySettings(slave, like *os.File, plain bool) {
	t, err := unix.IoctlGetTermios(int(like.Fd()), getTermios)
	if err != nil {
		return
	}
	if plain {
		t.Oflag &^= unix.OPOST
	}
	_ = unix.IoctlSetTermios(int(slave.Fd()), setTermios, t)
}

// copySize gives the pseudo-terminal the window size of like; its foreground group
// gets WINCH from the system if that is another one.
func copySize(master, like *os.File) {
	size, err := unix.IoctlGetWinsize(int(like.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return
	}
	conn, err := master.SyscallConn() // Fd would make it blocking
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size)
	})
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// foregroundGroup is the group that may read tty; an error if tty is not the
// controlling terminal of this process (but a master answers for its slave).
func foregroundGroup(tty *os.File) (int, error) {
	pgid := 0
	conn, err := tty.SyscallConn()
	if err != nil {
		return 0, err
	}
	if cerr := conn.Control(func(fd uintptr) {
		pgid, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
	}); cerr != nil {
		return 0, cerr
	}
	return pgid, err
}

func ownGroup() int { return unix.Getpgrp() }
