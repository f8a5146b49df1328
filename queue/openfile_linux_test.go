package queue

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/history"
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

// TestWhereNothingIsIsolated: messages whose run cannot be isolated stay in the inbox with the reason, also after an attempt was made, and the
// others are done; once it can be they go on with the attempts that they had left.
func TestWhereNothingIsIsolated(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+"text=$(tail -n1 \"$message_file\"); echo \"$text $DECREE_ATTEMPT\" >>\"$RAN\"; echo said\n"+
		"[ \"$text $DECREE_ATTEMPT\" != 'go 1' ] || { live 'mount -t tmpfs -o size=1m none sub'; exit 3; }\n", map[string]string{
		"sub/.gitignore": "", ".decree/inbox/b.md": "second\n", ".decree/inbox/c.md": "---\nisolated: false\n---\nthird\n", ".decree/inbox/d.md": "fourth\n",
	}))
	b.answers()
	at := filepath.Join(b.root, "sub")
	t.Cleanup(func() { _ = unix.Unmount(at, 0) })
	for range 2 { // what waits is known to the next process
		require.NoError(t, b.with(disk.OS, func(q *Queue) error {
			require.NoError(t, q.Work(t.Context(), WorkOptions{}))
			require.Equal(t, 3, q.Stuck())
			return nil
		}))
		require.Equal(t, []string{"a.md", "b.md", "d.md"}, b.inbox())
		require.Empty(t, b.dead())
		require.Equal(t, []string{"go 1", "third 1"}, b.ran())
	}
	for _, name := range b.inbox() {
		require.Contains(t, b.unpublished()[name], "its run cannot begin: a run cannot be isolated here: overlay: something is mounted below the root")
	}
	require.NoError(t, b.person(func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "d.md", "not wanted"); return err }))
	first := b.record(b.runs()[0])
	require.Equal(t, history.StatusFailed, first.Status)
	require.Equal(t, 1, first.Attempts)
	require.Equal(t, "said\n", b.read(".decree/runs/"+first.ID+"/routine.log"))
	ctx, end := context.WithCancel(t.Context())
	b.said = nil
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		tell := q.o.Tell
		begun := 0
		q.o.Tell = func(e Event) {
			if e.Started {
				begun++
			}
			tell(e)
		}
		for range 3 { // it is told once, and the order stays
			for _, known := range q.stuck {
				known.again = time.Time{}
			}
			require.NoError(t, q.Work(t.Context(), WorkOptions{}))
		}
		require.Equal(t, 2, begun)
		return nil
	}))
	require.Equal(t, 2, strings.Count(strings.Join(b.said, "\n"), "waits: its run cannot begin"), b.said)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		return q.Serve(ctx, ServeOptions{Interval: 1e7, Ready: func(stuck int) { assert.Equal(t, 2, stuck); end() }})
	}))
	require.NoError(t, unix.Unmount(at, 0))
	b.process()
	require.Equal(t, []string{"go 1", "third 1", "go 2", "second 1"}, b.ran())
	require.Equal(t, []string{"a.md", "b.md", "c.md"}, b.done())
}
