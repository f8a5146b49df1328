//go:build unix

package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExportInterrupted: an export into a pipe that nobody reads any more, or yet, ends at the first
// signal.
func TestExportInterrupted(t *testing.T) {
	p := newProving(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "big"), make([]byte, 8<<20), 0o644)) // more than pipes and buffers hold
	p.must("checkpoint")
	fifo := filepath.Join(p.base, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, to := range []string{"-", fifo} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		c := exec.Command(p.bin, "export", "last", "--tar", to)
		c.Dir, c.Env, c.Stdout = p.root, p.env, w
		require.NoError(t, c.Start())
		w.Close()
		if to == fifo {
			r.Close()
			r, err = os.Open(fifo)
			require.NoError(t, err)
		}
		_, err = r.Read(make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		assert.Error(t, c.Wait(), to)
		assert.Equal(t, 1, c.ProcessState.ExitCode(), to)
		r.Close()
	}
}

// TestExportAfterAKill: what an export that was killed has left beside its place is in no later one's way, also where
// process numbers repeat.
func TestExportAfterAKill(t *testing.T) {
	env := hookBench(t)
	left := filepath.Join(env.Cwd, fmt.Sprintf(".state.tar.%d", os.Getpid()))
	require.NoError(t, os.WriteFile(left, []byte("half of it"), 0o600))
	code, _, said := mainOnce(t, env, nil, "export", "last", "--tar", "state.tar")
	require.Zero(t, code, said)
	require.FileExists(t, filepath.Join(env.Cwd, "state.tar"))
	names, err := filepath.Glob(filepath.Join(env.Cwd, ".state.tar.*"))
	require.NoError(t, err)
	require.Equal(t, []string{left}, names)
}
