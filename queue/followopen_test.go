//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestFollowUpStillOpen: a follow-up that a process outside of the run still has open for writing joins its chain, wherever it
// lies; its message is done, and it waits until it is closed.
func TestFollowUpStillOpen(t *testing.T) {
	for at, in := range map[string]string{`"$DECREE_OUTBOX/x.md"`: "runs/*/outbox/x.md", ".decree/inbox/$chain-1.md": "inbox/*-1.md"} {
		t.Run(filepath.Dir(in), func(t *testing.T) {
			b := newBench(t, isolatedFiles(atWork+`[ "$text" = next ] || { echo next >`+at+"; works; }\n", map[string]string{".decree/config.yml": ""}))
			await, let := b.meet()
			done := make(chan error)
			go func() {
				done <- b.with(disk.OS, func(q *Queue) error {
					res, err := b.all(q)
					assert.Equal(t, []string{"a.md done"}, names2(res))
					assert.Len(t, q.Writing(), 1)
					return err
				})
			}()
			await()
			found, err := filepath.Glob(filepath.Join(b.root, ".decree", in))
			require.NoError(t, err)
			open, err := os.OpenFile(found[0], os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			let()
			require.NoError(t, <-done)
			require.NoError(t, open.Close())
			b.process()
			require.Equal(t, []string{"go", "next"}, b.ran())
			require.Len(t, b.done(), 2)
		})
	}
}

// TestFollowUpTakenAway: a follow-up that somebody takes away while it joins its chain is his, and its message is done.
func TestFollowUpTakenAway(t *testing.T) {
	b := newBench(t, isolatedFiles(echoRoutine+`echo next >.decree/inbox/$chain-1.md`+"\n", map[string]string{".decree/config.yml": ""}))
	taken := false
	require.NoError(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if found, _ := filepath.Glob(filepath.Join(b.root, ".decree/inbox/*-1.md")); len(found) > 0 && st.Op == "Exchange" {
			taken = true
			require.NoError(t, os.Rename(found[0], filepath.Join(b.base, "taken.md")))
		}
		return disktest.Action{}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
	require.True(t, taken)
	require.Equal(t, []string{"a.md"}, b.done())
}
