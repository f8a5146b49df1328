//go:build unix

package queue

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestRouterOrOnDeadHangs: a command of the config that does not answer is ended when the queue is told to end.
// A message that has not begun waits; one that is dead stays dead.
func TestRouterOrOnDeadHangs(t *testing.T) {
	const hangs = `echo asked >>"$RAN"; read line <"$RAN.never"`
	for name, files := range map[string]map[string]string{
		"router":  {".decree/config.yml": "router: '" + hangs + "'\n", ".decree/inbox/a.md": "go\n"},
		"on_dead": {".decree/config.yml": "on_dead: '" + hangs + "'\n", ".decree/inbox/a.md": "---\nroutine: nope\n---\ngo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files[".decree/routines/develop.sh"] = "echo did >>\"$RAN\"\n"
			b := newBench(t, files)
			require.NoError(t, syscall.Mkfifo(filepath.Join(b.base, "ran.never"), 0o600))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			asked := make(chan struct{})
			go func() {
				for !slices.Equal(b.ran(), []string{"asked"}) && t.Context().Err() == nil { // the file is there before its line is
				}
				stop()
				close(asked)
			}()
			err := b.with(disk.OS, func(q *Queue) error { _, err := q.Next(ctx, 0, Pick{}); return err })
			<-asked
			require.Equal(t, []string{"asked"}, b.ran())
			if name == "router" {
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, []string{"a.md"}, b.inbox())
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
			require.Contains(t, strings.Join(b.said, "\n"), "on_dead, for a.md: ended, as decree was told to end")
		})
	}
}

// TestOnDeadAfterTheEnd: who told the queue to end while a message was done still hears that it is dead.
func TestOnDeadAfterTheEnd(t *testing.T) {
	b := newBench(t, map[string]string{".decree/config.yml": "on_dead: 'echo $DECREE_MESSAGE >>\"$RAN\"'\nmax_attempts: 1\n", ".decree/inbox/a.md": "go\n", ".decree/routines/develop.sh": "exit 1\n"})
	ctx, stop := context.WithCancel(t.Context())
	b.more = func(o *Options) {
		tell := o.Tell
		o.Tell = func(e Event) {
			if e.Started {
				stop()
			}
			tell(e)
		}
	}
	require.NoError(t, b.with(disk.OS, func(q *Queue) error { _, err := q.Next(ctx, 0, Pick{}); return err }))
	require.Equal(t, []string{"a.md"}, b.ran())
}

// TestOnDeadBesideAnother: a message that is found to be dead while another one is asked for is told of too.
func TestOnDeadBesideAnother(t *testing.T) {
	b := newBench(t, map[string]string{".decree/config.yml": "on_dead: 'echo $DECREE_MESSAGE >>\"$RAN\"'\nmax_attempts: 1\n",
		".decree/inbox/a.md": "go\n", ".decree/inbox/b.md": "---\nroutine: other\n---\n", ".decree/routines/develop.sh": "exit 1\n", ".decree/routines/other.sh": "true\n"})
	died := false
	require.Error(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		died = died || st.Write && strings.Contains(st.Path, takenDirs[0])
		return disktest.Action{Die: died}
	}), func(q *Queue) error { _, err := q.Next(t.Context(), 0, Pick{Name: "a.md"}); return err }))
	require.NoError(t, b.with(disk.OS, func(q *Queue) error { _, err := q.Next(t.Context(), 0, Pick{Name: "b.md"}); return err }))
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.Equal(t, []string{"b.md"}, b.done())
	require.Equal(t, []string{"a.md"}, b.ran())
}
