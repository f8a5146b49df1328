package history

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDamagedLines: whatever one bad byte does to a line, either the needs of all records are known, or nothing is told of
// them; a compaction loses nothing of the line; and once it is set aside, the needs of what is left are known, also of
// a record whose directory is all that there is of it.
func TestDamagedLines(t *testing.T) {
	w := newWorld(t)
	w.saveTrees(3)
	require.NoError(t, w.Remove([]string{w.checkpoint().ID}))
	w.checkpoint()
	text := w.read(w.stored(logFile))
	want, err := w.needed(nil)
	require.NoError(t, err)
	refused := 0
	for at := range text {
		if testing.Short() && at%5 != 0 && text[at] != '\n' {
			continue // a name of a member is met all the same
		}
		bad := []byte(text)
		bad[at] ^= 4
		w.put(w.stored(logFile), string(bad))
		w.reopen()
		l, err := w.readOn()
		require.NoError(t, err)
		if got, err := w.needed(nil); err == nil {
			require.Equal(t, want, got, "the byte at %d, behind %q", at, text[max(0, at-20):at])
			continue
		}
		require.NoError(t, l.compact(w.p.Store))
		w.reopen()
		_, err = w.needed(nil)
		require.Error(t, err, "the byte at %d, after a compaction", at)
		aside, err := w.SetLinesAside(nothingFirst)
		require.NoError(t, err)
		if aside == nil {
			continue // a tree that is not there
		}
		refused++
		begin, end := strings.LastIndexByte(string(bad[:at]), '\n')+1, at+strings.IndexByte(string(bad[at:]), '\n')
		require.Contains(t, w.read(aside.Path)+"\n", string(bad[begin:end])+"\n", "the byte at %d", at)
		require.NoError(t, os.Remove(aside.Path))
		_, err = w.needed(nil)
		require.NoError(t, err)
		again, err := w.SetLinesAside(nothingFirst)
		require.NoError(t, err)
		require.Nil(t, again)
	}
	require.Positive(t, refused)
	require.NotEmpty(t, slices.Collect(maps.Keys(want)))
}

// TestMergedLines: a newline that is another byte now makes one line of two.
func TestMergedLines(t *testing.T) {
	for name, of := range map[string]func(w *world, lines []string) int{
		"two records":         func(*world, []string) int { return 0 },
		"a removed record":    func(_ *world, lines []string) int { return find(lines, lineGone) },
		"before a removed":    func(_ *world, lines []string) int { return find(lines, lineGone) - 1 },
		"an operation":        func(_ *world, lines []string) int { return find(lines, opPrefix) },
		"before an operation": func(_ *world, lines []string) int { return find(lines, opPrefix) - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, second := w.checkpoint(), w.checkpoint()
			require.NoError(t, w.Remove([]string{first.ID}))
			w.setStatus(second.ID, StatusUndone, w.checkpoint().ID)
			w.checkpoint()
			lines := strings.SplitAfter(w.read(w.stored(logFile)), "\n")
			i := of(w, lines)
			lines[i] = strings.TrimSuffix(lines[i], "\n") + "x"
			w.put(w.stored(logFile), strings.Join(lines, ""))
			w.reopen()
			_, err := w.needed(nil)
			require.Error(t, err)
			l, err := w.readOn()
			require.NoError(t, err)
			require.NoError(t, l.compact(w.p.Store))
			w.reopen()
			_, err = w.needed(nil)
			require.Error(t, err, "after a compaction")
			aside, err := w.SetLinesAside(nothingFirst)
			require.NoError(t, err)
			require.Equal(t, 1, aside.Lines)
			require.Equal(t, lines[i]+lines[i+1], w.read(aside.Path))
			w.reopen()
			_, err = w.needed(nil)
			require.NoError(t, err)
		})
	}
}

func nothingFirst([]string) error { return nil }

func find(lines []string, what string) int {
	return slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, what) })
}
