//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
	"decree/recorder"
)

// besideARun has do work while a routine does, which then wipes the inbox when it is let, and
// has the queue go on to its end.
func (b *bench) besideARun(do func(r *recorder.Recorder)) {
	ran := filepath.Join(b.base, "ran")
	for _, pipe := range []string{".started", ".wipe", ".wiped", ".end"} {
		require.NoError(b.t, syscall.Mkfifo(ran+pipe, 0o600))
	}
	person, err := b.open(disk.OS)
	require.NoError(b.t, err)
	defer person.Close()
	go func() {
		_, _ = os.ReadFile(ran + ".started")
		do(person)
		_ = os.WriteFile(ran+".wipe", []byte("\n"), 0o600)
		_, _ = os.ReadFile(ran + ".wiped")
		_ = os.WriteFile(ran+".end", []byte("\n"), 0o600)
	}()
	b.process()
}

// TestCancelledAgainAfterADeath has a person's command die between the note of a cancel and the
// cancel, the person repeat it, and a routine then delete the whole inbox: the message lies in
// dead once.
func TestCancelledAgainAfterADeath(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": wipingRoutine, ".decree/config.yml": "max_attempts: 1\n",
		".decree/inbox/a.md": "wipe\n", ".decree/inbox/c.md": "cancelled\n",
	})
	b.besideARun(func(r *recorder.Recorder) {
		inbox, err := disk.OpenPath(r.Project().Dir, ".decree/inbox")
		require.NoError(t, err)
		defer inbox.Close()
		require.NoError(t, r.Project().Act(func(note func(...project.Act) error) error { // what a death leaves of Cancel
			require.NoError(t, r.Project().DropNoting(note, "inbox/dead", "c.error.txt", []byte("not wanted\n")))
			return note(moves(inbox, "c.md", "inbox", "inbox/dead", "c.md")...)
		}))
		as, err := Cancel(r, "h", "c.md", "not wanted")
		require.NoError(t, err)
		require.Equal(t, "c.2.md", as)
	})
	require.Equal(t, []string{"wipe"}, b.ran())
	require.Equal(t, []string{"c.2.error.txt", "c.2.md", "c.error.txt"}, b.dead(), "the first reason is what the death has left")
	require.Equal(t, "cancelled\n", b.read(".decree/inbox/dead/c.2.md"))
}

// TestMovedToDeadByItsRoutine has a routine that fails move its own message to dead: it lies
// there once, with the reason.
func TestMovedToDeadByItsRoutine(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": "echo once >>\"$RAN\"; mkdir -p .decree/inbox/dead; mv .decree/inbox/a.md .decree/inbox/dead/; exit 1\n",
		".decree/config.yml":          "max_attempts: 1\n", ".decree/inbox/a.md": "a\n",
	})
	results := b.process()
	require.Equal(t, []string{"once"}, b.ran())
	require.Len(t, results, 1)
	require.Equal(t, "dead/a.md", results[0].Place)
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.Contains(t, b.read(".decree/inbox/dead/a.error.txt"), "decree inbox retry a")
}
