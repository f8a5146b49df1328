//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
)

// TestDraftsOfEarlierTries: the draft of a message that was dead is given up when the message, tried again, is done: `publish` without a
// draft would bring the work that failed. That of another message stays.
func TestDraftsOfEarlierTries(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles("date >f; echo $(tail -n1 \"$message_file\") >>log; [ -e good ]\n", map[string]string{
		".decree/config.yml": "isolated: {queue: true}\nmax_attempts: 1\n", ".decree/inbox/other.md": "other\n"}))
	b.settle()
	res := b.process()
	require.Equal(t, []string{"a.md dead", "other.md dead"}, names2(res))
	failed, other := res[0].Record.ID, res[1].Record.ID
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "good"), nil, 0o600))
	require.NoError(t, b.person(func(q *Queue) error { _, err := Retry(q.project(), "a.md"); return err }))
	b.settle()
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		drafts, err := q.o.Recorder.WaitingDrafts()
		require.Len(t, drafts, 1)
		require.Equal(t, other, drafts[0].ID)
		return err
	}))
	require.Equal(t, history.DraftDiscarded, b.record(failed).Draft.State)
	require.Contains(t, strings.Join(b.said, "\n"), "the drafts of its earlier tries are given up; 'decree diff ID' shows each: "+failed)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		rec, err := q.o.Recorder.History().Get(failed)
		require.NoError(t, err)
		changes, err := q.o.Recorder.History().DiffChanges(rec)
		require.Len(t, changes, 2)
		return err
	}))
}
