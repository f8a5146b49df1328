package history

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seen is all that a reader can learn of a history.
func (w *world) seen() []any {
	w.t.Helper()
	w.reopen()
	l := w.list()
	out := []any{l.Records, l.Warnings()}
	for _, ref := range []string{"last", "last~7", "20261121070", "@2026-11-21T07:10:00Z", l.Records[len(l.Records)-1].ID} {
		got, err := w.Resolve(ref, time.UTC)
		out = append(out, got, err)
	}
	id, started, err := w.NewID()
	return append(out, id, started, err)
}

// Whatever becomes of the index, a reader sees what it sees without.
func TestIndexChangesNothing(t *testing.T) {
	w := newWorld(t)
	ids := w.fill(300)
	idx := w.stored(indexFile)
	same := func(why string) {
		t.Helper()
		got := w.seen()
		saved, err := os.ReadFile(idx)
		require.NoError(t, err)
		require.NoError(t, os.Remove(idx))
		require.Equal(t, w.seen(), got, why)
		w.put(idx, string(saved))
	}
	w.saveIndex()
	_, err := w.rows()
	require.NoError(t, err)
	w.reopen()
	l, err := w.rows()
	require.NoError(t, err)
	require.Equal(t, l.size, l.covered, "the index is used")
	names, err := w.runNames(l)
	require.NoError(t, err)
	require.True(t, names.whole, "and so is the stamp")
	same("fresh")

	good := w.read(idx)
	for _, cut := range []int{0, 7, 8, 50, len(good) / 2, len(good) - 1} {
		w.put(idx, good[:cut])
		same("cut")
		b := []byte(good)
		b[cut] ^= 1
		w.put(idx, string(b))
		same("a bit turned")
	}
	w.put(idx, good)

	r := w.draft()
	require.NoError(t, w.write(&line{key: recordKey(r), record: r}))
	same("lines behind it")
	require.NoError(t, w.SetStatus(ids[5], StatusUndone, ids[6]))
	same("a newer line of a record")
	require.NoError(t, os.RemoveAll(w.path("runs", ids[7])))
	same("a run directory is gone")
	require.NoError(t, os.MkdirAll(w.path("runs", "2026112106000000-0"), 0o700))
	same("a run directory is new")
	w.put(w.path("runs", ids[8], "run.json"), "{")
	same("a run.json is damaged")
	w.saveIndex()
	same("saved with all that")
	require.NoError(t, w.Remove([]string{ids[9], ids[299]}))
	same("records removed")

	text := w.read(w.stored(logFile))
	w.put(w.stored(logFile), text+`{"id":"20261121`)
	same("a torn line behind it")
	w.put(w.stored(logFile), strings.Replace(text, `"files":5120`, `"files":5121`, 1))
	same("a line that was edited in its place")
	w.put(w.stored(logFile), text[len(text)/2:])
	same("a log that was cut in front under the same inode")
}

func FuzzReadIndex(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte(indexMagic))
	w := newWorld(f)
	w.fill(200)
	w.saveIndex()
	good := w.read(w.stored(indexFile))
	f.Add([]byte(good))
	f.Add([]byte(good[:len(good)-indexRow]))
	file, err := w.p.Store.Open(logFile)
	require.NoError(f, err)
	st, err := file.Stat()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(w.stored(indexFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
		l := &log{}
		if !l.readIndex(w.p.Store, file, st) {
			return
		}
		for _, r := range loadRows(l.rows) {
			if e, err := r.parse(); err == nil && e.key != r.key {
				t.Fatal("another record's line")
			}
		}
	})
}

func TestShortLogHasNoIndex(t *testing.T) {
	w := newWorld(t)
	w.checkpoint()
	assert.NoFileExists(t, w.stored(indexFile))
}
