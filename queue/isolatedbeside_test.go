//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
	"decree/recorder"
)

// TestLayerRetries: the routine of an isolated message that moves a dead one into the inbox, under its name or
// another one, queues it again, and it is not dead any more.
func TestLayerRetries(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles("text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"\n"+
		"[ \"$text\" = go ] || exit 0\ncd .decree/inbox && mv dead/old.md . && mv dead/other.md again.md && mv dead/edited.md . && echo edited >>edited.md && tail -n1 dead/stays.md >stays.md\n",
		map[string]string{
			".decree/inbox/dead/old.md": deadText, ".decree/inbox/dead/old.error.txt": "why\n",
			".decree/inbox/dead/other.md":  strings.ReplaceAll(strings.Replace(deadText, "old", "other", 1), "0100", "0101"),
			".decree/inbox/dead/edited.md": strings.ReplaceAll(deadText, "0100", "0102"), ".decree/inbox/dead/stays.md": strings.ReplaceAll(deadText, "0100", "0103"),
		}))
	b.process()
	require.ElementsMatch(t, []string{"go", "old", "other", "edited", "old"}, b.ran(), strings.Join(b.said, "\n"))
	require.Equal(t, []string{"stays.md"}, b.dead(), "what was written with its text is another message")
	require.Len(t, b.done(), 5)
}

// TestSavedBesideItsIsolatedRun: a message that a person saves while its isolated run works is told of as
// changed, and the text that was saved is done.
func TestSavedBesideItsIsolatedRun(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+"text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; echo \"$text\" >>log\n[ \"$text\" = more ] || live 'echo more >>.decree/inbox/a.md'\n", nil))
	b.answers()
	b.process()
	said := strings.Join(b.said, "\n")
	require.NotContains(t, said, "deleted from the inbox")
	require.Contains(t, said, "a.md was changed in the inbox while it was done, and is done as it is now; what its earlier text did is not in the tree: record ")
	require.Equal(t, "more\n", b.read("log"))
	require.Equal(t, []string{"a.md"}, b.done())
}

// TestJobsInANewProject: where nothing was recorded yet, the work of messages that are done beside each other
// does not count as somebody's edits.
func TestJobsInANewProject(t *testing.T) {
	needsLayers(t)
	files := isolatedFiles(atWork+"case $text in [12]) works ;; esac\necho $text >sub/$text\n", map[string]string{
		".decree/config.yml": "isolated: {queue: true}\nmax_attempts: 1\n", ".decree/inbox/a.md": "1\n", ".decree/inbox/b.md": "2\n", "sub/f": "f\n"})
	b := newBench(t, files)
	b.settle()
	b.jobs = 2
	await, let := b.meet()
	done := make(chan error)
	go func() { _, err := b.work(disk.OS); done <- err }()
	await()
	await()
	let()
	let()
	require.NoError(t, <-done)
	require.Empty(t, b.dead(), strings.Join(b.said, "\n"))
	require.Equal(t, "12", strings.TrimSpace(b.read("sub/1"))+strings.TrimSpace(b.read("sub/2")))
}

// TestDraftOfAWaitingMessage: the work of a message that will be done again, under whatever name, is not published beside that; once
// the message is cancelled it can be.
func TestDraftOfAWaitingMessage(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles("echo did >>log; echo did >>\"$RAN\"; read line <\"$RAN.never\"\n", nil))
	b.settle()
	require.NoError(t, syscall.Mkfifo(filepath.Join(b.base, "ran.never"), 0o600))
	signals := make(chan os.Signal, 1)
	b.more = func(o *Options) { o.Signals = signals }
	go func() {
		for len(b.ran()) == 0 && t.Context().Err() == nil {
		}
		signals <- syscall.SIGINT
	}()
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		res, err := q.Next(t.Context(), 0, Pick{})
		require.NoError(t, err)
		require.Equal(t, Interrupted, res.Outcome)
		publish := func() error {
			_, err := q.o.Recorder.Publish(t.Context(), recorder.PublishOptions{Ref: res.Record.ID, Yes: true})
			return err
		}
		err = publish()
		require.Equal(t, project.Refused, project.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "message a.md waits, and will be done again from the beginning")
		require.Contains(t, project.HintOf(err), "decree inbox cancel a")
		require.NoError(t, os.Rename(filepath.Join(b.root, ".decree/inbox/a.md"), filepath.Join(b.root, ".decree/inbox/b.md")))
		require.ErrorContains(t, publish(), "message b.md waits, and will be done again from the beginning")
		dead, err := Cancel(q.o.Recorder, "h", "b.md", "is tried again beside another one of its name")
		require.NoError(t, err)
		b.message("b.md", "another one\n")
		again, err := Retry(q.project(), dead)
		require.NoError(t, err)
		require.Equal(t, "b.2.md", again)
		require.ErrorContains(t, publish(), "message b.2.md waits, and will be done again from the beginning")
		require.Empty(t, b.read("log"))
		_, err = Cancel(q.o.Recorder, "h", again, "its draft is wanted")
		require.NoError(t, err)
		return publish()
	}))
	require.Equal(t, "did\n", b.read("log"))
}
