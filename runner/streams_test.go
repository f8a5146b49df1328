//go:build linux || darwin

package runner

import (
	"os"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestInputNotAttached: when the terminal's keys cannot be had, every handle that was
// made before is closed again, the pseudo-terminal's master too.
func TestInputNotAttached(t *testing.T) {
	master, tty, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer tty.Close()
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	few := was
	few.Cur = 100
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { assert.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	take := func() (taken []int) {
		for {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return taken
			}
			taken = append(taken, fd)
		}
	}
	all := take()
	defer func() {
		for _, fd := range all {
			_ = unix.Close(fd)
		}
	}()
	const enough = 3 // for the pseudo-terminal; one is left then, and the keys need two
	for _, fd := range all[len(all)-enough:] {
		require.NoError(t, unix.Close(fd))
	}
	all = all[:len(all)-enough]

	_, err = connect(Command{Stdin: tty, Stdout: tty, Stderr: tty})
	require.ErrorIs(t, err, unix.EMFILE)
	left := take()
	all = append(all, left...)
	assert.Len(t, left, enough)
}
