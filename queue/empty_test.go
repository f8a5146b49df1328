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
// older; who asks for it gets it done.
func TestEmptyMessageWaits(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"\n", ".decree/inbox/old.md": ""})
	for _, name := range []string{"asked.md", "new.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/inbox", name), nil, 0o600))
	}
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
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
	late := filepath.Join(b.root, ".decree/inbox/late.md")
	require.NoError(t, os.WriteFile(late, nil, 0o600))
	ago := time.Now().Add(-emptyAge)
	require.NoError(t, os.Chtimes(late, ago, ago))
	b.process()
	require.Len(t, b.done(), 4)
}

// TestEmptyRoutine: an empty routine does no message.
func TestEmptyRoutine(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": "", ".decree/inbox/a.md": "a\n"})
	res := b.process()
	require.Equal(t, []string{"a.md dead"}, names2(res))
	require.Equal(t, "develop.sh: the routine is empty", res[0].Reason)
}
