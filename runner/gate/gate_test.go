//go:build linux || darwin

package gate

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNotTold: a process that cannot be told to go on is ended, its command is not
// executed, and nobody waits for the other.
func TestNotTold(t *testing.T) {
	tell = func(int, []byte) (int, error) { return -1, syscall.EIO }
	defer func() { tell = write }()

	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	p, err := Start(Command{Files: []string{"/bin/sh"}, Args: []string{"sh", "-c", "echo it ran"}, Attr: syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{r.Fd(), w.Fd(), w.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true},
	}})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorContains(t, p.Pass(), "input/output error")
	n, _ := r.Read(make([]byte, 1)) // until all that could write have ended
	assert.Zero(t, n)
	assert.ErrorIs(t, syscall.Kill(p.PID, 0), syscall.ESRCH, "it is reaped")
}
