package runner

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWriters finds who has a file open for writing, and not who only reads it.
func TestWriters(t *testing.T) {
	dir := t.TempDir()
	id := func(name string) File {
		st, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		sys := st.Sys().(*syscall.Stat_t)
		return File{sys.Dev, sys.Ino}
	}
	for _, name := range []string{"written", "read"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	cmd := exec.Command("sh", "-c", "exec 3>>written 4<read; echo ready; read end")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("ready\n")))
	require.NoError(t, err)
	got := Writers([]File{id("written"), id("read")})
	require.Equal(t, map[File][]Process{id("written"): {{PID: cmd.Process.Pid, Name: "sh"}}}, got)
	require.NoError(t, in.Close())
	_ = cmd.Wait()
	require.Empty(t, Writers([]File{id("written")}))
}
