//go:build unix

package queue

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestLateForTheOutbox: what is sent into the outbox of a run that ends in that moment, and what a run inside it passes on then, is done all the same.
func TestLateForTheOutbox(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `cat "$message_file" >>"$RAN"` + "\n",
		".decree/inbox/a.md":          "one\n",
	})
	ended := b.process()[0].Record.ID
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		box := &Outbox{rec: q.o.Recorder, id: ended, path: filepath.Join(b.root, ".decree/runs", ended, "outbox")}
		require.NoError(t, box.Drop("late.md", []byte("two\n")))
		taken, err := box.TakeBack("late.md")
		require.NoError(t, err)
		require.True(t, taken)
		require.NoFileExists(t, filepath.Join(box.Path(), "late.md"))
		taken, err = box.TakeBack("late.md") // it was passed on
		require.False(t, taken)
		return err
	}))
	b.message("b.md", "three\n")
	inner := b.process()[0].Record.ID
	for _, text := range []string{"in that moment", "long before"} { // the outer run has ended
		require.NoError(t, b.with(disk.OS, func(q *Queue) error {
			require.NoError(t, (&Outbox{rec: q.o.Recorder, id: inner}).Drop("inner.md", []byte(text+"\n")))
			if text == "in that moment" {
				return (&Outbox{rec: q.o.Recorder, id: ended}).take(inner, []string{"inner.md"})
			}
			return PassOn(q.o.Recorder, inner, filepath.Join(b.root, ".decree/runs", ended, "outbox"))
		}))
		require.Equal(t, []string{"inner.md"}, b.inbox())
		require.Len(t, b.process(), 1)
		require.Contains(t, b.ran(), text)
	}
}
