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
	"decree/disk/disktest"
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
				known.retryAt = time.Time{}
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

// TestFileThatKeepsChanging: a message in place waits where a file of the tree is written all the time, so that the tree cannot be recorded: a
// daemon says so once, tries again, and does it when that has ended.
func TestFileThatKeepsChanging(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n", "log": "begun\n"})
	log, busy := filepath.Join(b.root, "log"), true
	ctx, end := context.WithCancel(t.Context())
	defer end()
	tries := 0
	require.NoError(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if busy && st.Path == log && st.Op == "FileStat" {
			assert.NoError(t, appendTo(log, "more\n"))
			if tries++; tries > 40 {
				busy = false
			}
		}
		if len(b.done()) > 0 {
			end()
		}
		return disktest.Action{}
	}), func(q *Queue) error {
		return q.Serve(ctx, ServeOptions{Interval: 1e7, Ready: func(stuck int) { assert.Equal(t, 1, stuck) }})
	}))
	require.Equal(t, []string{"a.md"}, b.done())
	require.Len(t, b.ran(), 1)
	require.Equal(t, 1, strings.Count(strings.Join(b.said, "\n"), "a.md waits: its run cannot begin: log: kept changing while it was read"), b.said)
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// TestPutBackWaitsForAnOpenFile: a daemon waits with the put-back of a failed run where another program has a file of it open for writing, says
// so once, and goes on when it is closed.
func TestPutBackWaitsForAnOpenFile(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": echoRoutine + "echo did >>log; ! grep -q one \"$message_file\"\n", ".decree/config.yml": "max_attempts: 1\n",
		".decree/inbox/a.md": "one\n", ".decree/inbox/b.md": "two\n", "log": "begun\n",
	})
	log, err := os.OpenFile(filepath.Join(b.root, "log"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	writer := exec.Command("cat")
	writer.ExtraFiles = []*os.File{log}
	ends, err := writer.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, writer.Start())
	require.NoError(t, log.Close())
	ctx, end := context.WithCancel(t.Context())
	defer end()
	looks := 0
	require.NoError(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		b.mu.Lock()
		told := strings.Join(b.said, "\n")
		b.mu.Unlock()
		if st.Op == "Open" && st.Path == filepath.Join(b.root, "log") && strings.Contains(told, "could not be put back") {
			if looks++; looks == 20 {
				assert.Equal(t, []string{"a.md", "b.md"}, b.inbox())
				assert.NoError(t, ends.Close())
				assert.NoError(t, writer.Wait())
			}
		}
		if len(b.done()) > 0 {
			end()
		}
		return disktest.Action{}
	}), func(q *Queue) error { return q.Serve(ctx, ServeOptions{Interval: 1e7}) }))
	require.Equal(t, []string{"b.md"}, b.done())
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.Equal(t, "begun\ndid\n", b.read("log"))
	require.Equal(t, 2, strings.Count(strings.Join(b.said, "\n"), "this is tried again"), "once with each reason: %v", b.said)
}
