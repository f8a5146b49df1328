//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestEmptyMessageWaits: a message that is empty and was made just now, as by an editor's "new file", is left until it has a text, or is
// older; who asks for it, or calls 'decree process', gets it done.
func TestEmptyMessageWaits(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"\n", ".decree/inbox/old.md": ""})
	ago := time.Now().Add(-emptyAge)
	require.NoError(t, os.Chtimes(filepath.Join(b.root, ".decree/inbox/old.md"), ago, ago))
	for _, name := range []string{"asked.md", "new.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/inbox", name), nil, 0o600))
	}
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		q.serving = true
		require.NoError(t, q.Work(t.Context(), WorkOptions{}))
		require.Equal(t, []string{"asked.md", "new.md"}, q.Writing())
		require.Equal(t, []string{"old.md"}, b.done())
		_, err := q.Next(t.Context(), 0, Pick{Name: "asked.md"})
		return err
	}))
	require.Equal(t, []string{"asked.md", "old.md"}, b.done())
	require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/inbox/new.md"), []byte("text\n"), 0o600))
	b.process()
	require.Equal(t, []string{"---", "---", "text"}, b.ran())
	require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/inbox/late.md"), nil, 0o600))
	b.process()
	require.Len(t, b.done(), 4)
}
