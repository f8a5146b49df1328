//go:build unix

package queue

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
)

// TestRoutineThatIsGone: somebody has put the routine away (`git stash -u`) that was there when this process began. No message is
// spent for that, and those of other routines are done; one that names a routine that never was goes to dead.
func TestRoutineThatIsGone(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/routines/other.sh": "echo other >>\"$RAN\"\n",
		".decree/inbox/a.md": "a\n", ".decree/inbox/b.md": "---\nroutine: other\n---\nb\n", ".decree/inbox/c.md": "---\nroutine: nosuch\n---\nc\n"})
	routines, away := filepath.Join(b.root, ".decree/routines"), filepath.Join(b.base, "away")
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		_, err := q.Next(t.Context(), 0, Pick{Name: "b.md"})
		require.NoError(t, err)
		require.NoError(t, os.Rename(filepath.Join(routines, "develop.sh"), away))
		require.NoError(t, q.Work(t.Context(), WorkOptions{}))
		require.ErrorContains(t, q.Lacking(), `a.md waits: no routine is called "develop", which was there before`)
		require.Contains(t, project.HintOf(q.Lacking()), "'git stash pop'")
		require.Equal(t, []string{"a.md"}, b.inbox())
		require.Equal(t, []string{"c.error.txt", "c.md"}, b.dead())
		require.NoError(t, os.Rename(away, filepath.Join(routines, "develop.sh")))
		require.NoError(t, q.Work(t.Context(), WorkOptions{}))
		return q.Lacking()
	}))
	require.Equal(t, []string{"a.md", "b.md"}, b.done())
}

// TestDaemonWithoutRoutines: a daemon says once that the routines are gone, and goes on when they are back.
func TestDaemonWithoutRoutines(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "a\n", ".decree/inbox/b.md": "b\n"})
	routines, away := filepath.Join(b.root, ".decree/routines"), filepath.Join(b.base, "away")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	b.more = func(o *Options) {
		tell := o.Tell
		o.Tell = func(e Event) {
			tell(e)
			switch {
			case e.Result != nil && e.Result.Outcome == Done && len(b.done()) == 1:
				require.NoError(t, os.Rename(routines, away))
			case strings.Contains(e.Note, "no routine is called"):
				require.NoError(t, os.Rename(away, routines))
			case len(b.done()) == 2:
				stop()
			}
		}
	}
	require.NoError(t, b.with(disk.OS, func(q *Queue) error { return q.Serve(ctx, ServeOptions{Interval: 10 * time.Millisecond}) }))
	require.Equal(t, []string{"a.md", "b.md"}, b.done())
	require.Equal(t, 1, strings.Count(strings.Join(b.said, "\n"), " waits: no routine is called "), b.said)
}
