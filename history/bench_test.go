package history

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"decree/tree"

	"github.com/stretchr/testify/require"
)

// fill makes n runs as real ones are, without the flushes.
func (w *world) fill(n int) []string {
	w.t.Helper()
	var text []byte
	var out []string
	for i := range n {
		r := fullRecord()
		r.Started = w.clock.Add(time.Duration(i) * 10 * time.Second)
		r.Ended, r.Extra, r.Status = r.Started.Add(time.Second), nil, StatusSucceeded
		r.Command, r.Cwd, r.Unrecorded, r.Description = []string{"make", "generate"}, "sub/dir", nil, "generate"
		r.Chain = r.Started.Format(chainForm) + "00"
		r.ID = r.Chain + "-0"
		dir := filepath.Join(w.root, ".decree/runs", r.ID)
		require.NoError(w.t, os.MkdirAll(dir, 0o700))
		data := r.JSON(nil)
		require.NoError(w.t, os.WriteFile(filepath.Join(dir, runJSON), data, 0o600))
		st, err := os.Stat(filepath.Join(dir, runJSON))
		require.NoError(w.t, err)
		before := tree.Sum([]byte(r.ID))
		l := &line{key: recordKey(r), file: fileStat{int64(len(data)), st.ModTime().UnixNano()}, record: r,
			files: map[string]tree.Hash{"changes.diff": before, "routine.log": before}}
		text = l.append(text)
		out = append(out, r.ID)
	}
	w.put(w.stored(logFile), string(text))
	w.reopen()
	return out
}

func TestListOfManyIsSound(t *testing.T) {
	w := newWorld(t)
	ids := w.fill(300)
	l := w.list()
	require.Empty(t, l.Warnings())
	require.Len(t, l.Records, 300)
	require.Equal(t, ids[299], l.Records[0].ID)
}

// Each turn opens the history anew, as a process does.
func BenchmarkHistory(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		w := newWorld(b)
		ids := w.fill(n)
		fresh := func() *History { return Open(w.p, Options{Objects: w.shelf, Now: w.now}) }
		run := func(name string, f func(h *History) error) {
			b.Run(fmt.Sprintf("%s/records=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					require.NoError(b, f(fresh()))
				}
			})
		}
		run("list", func(h *History) error { _, err := h.List(ListOptions{}); return err })
		run("list20", func(h *History) error { _, err := h.List(ListOptions{Limit: 20}); return err })
		for _, ref := range []string{"last", "last~50", ids[n/2][:len(ids[n/2])-2], "@2026-12-30"} {
			run("resolve="+ref, func(h *History) error { _, err := h.Resolve(ref, time.UTC); return err })
		}
		run("get", func(h *History) error { _, err := h.Get(ids[n/2]); return err })
		run("newid", func(h *History) error { _, _, err := h.NewID(); return err })
	}
}
