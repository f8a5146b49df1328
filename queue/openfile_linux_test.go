package queue

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/recorder"
)

// TestOpenFileCostsNoAttempt: the work of a message that would replace a file which another program has open for
// writing waits until that is closed.
func TestOpenFileCostsNoAttempt(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles("echo did >>\"$RAN\"; echo did >>log\n", map[string]string{"log": "begun\n"}))
	b.settle()
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		_, err := q.o.Recorder.Checkpoint(t.Context(), recorder.CheckpointOptions{})
		return err
	}))
	b.settle()
	log, err := os.OpenFile(filepath.Join(b.root, "log"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	writer := exec.Command("cat")
	writer.ExtraFiles = []*os.File{log}
	ends, err := writer.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, writer.Start())
	require.NoError(t, log.Close())
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		res, err := q.Next(t.Context(), 0, Pick{})
		require.NoError(t, err)
		require.Equal(t, Waits, res.Outcome, b.read(".decree/inbox/dead/a.error.txt"))
		return nil
	}))
	require.Contains(t, b.unpublished()["a.md"], "log is still open by pid")
	require.Equal(t, "begun\n", b.read("log"))
	require.NoError(t, ends.Close())
	require.NoError(t, writer.Wait())
	b.process()
	require.Equal(t, "begun\ndid\n", b.read("log"))
	require.Len(t, b.ran(), 1)
}

// TestDaemonWhereNothingIsIsolated: a message whose run cannot be isolated is put aside with the reason, and the daemon
// does the others.
func TestDaemonWhereNothingIsIsolated(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	b := newBench(t, map[string]string{"sub/.gitignore": "", ".decree/inbox/a.md": "---\nisolated: true\n---\ngo\n", ".decree/inbox/b.md": "go\n",
		".decree/routines/develop.sh": "echo did >>log\n"})
	at := filepath.Join(b.root, "sub")
	require.NoError(t, unix.Mount("none", at, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(at, 0)) })
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		q.serving = true
		res, err := q.Next(t.Context(), 0, Pick{})
		require.NoError(t, err)
		require.Equal(t, Dead, res.Outcome)
		res, err = q.Next(t.Context(), 0, Pick{})
		require.NoError(t, err)
		require.Equal(t, Done, res.Outcome)
		return nil
	}))
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.Contains(t, b.read(".decree/inbox/dead/a.error.txt"), "a run cannot be isolated here")
	require.Equal(t, "did\n", b.read("log"))
}
