package recorder

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/patch"
)

// TestBlameNamesWhoBroughtEachLine: each line tells by its text which run brought it,
// through edits, reverts and a stay away from the tree.
func TestBlameNamesWhoBroughtEachLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	b := newBench(t)
	dir := t.TempDir()
	var lines []string
	brought := map[string]string{}
	for step := range 25 {
		var fresh []string
		for range 1 + rng.IntN(4) {
			at := rng.IntN(len(lines) + 1)
			come := make([]string, rng.IntN(5))
			for i := range come {
				come[i] = fmt.Sprintf("%d of %d at %d\n", i, step, len(fresh))
				fresh = append(fresh, come[i])
			}
			lines = slices.Replace(lines, at, min(len(lines), at+rng.IntN(3)), come...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Join(lines, "")), 0o600))
		res := b.run(0, 0, func(o *RunOptions) { o.Args = []string{"cp", filepath.Join(dir, "f"), "f"} })
		for _, line := range fresh {
			brought[line] = res.Record.ID
		}
		if step%6 == 5 {
			b.revert("last")
			b.revert("last")
		}
	}
	lines = append(lines, "by hand\n")
	b.write("f", strings.Join(lines, ""))
	r := b.open()
	defer r.Close()
	file, err := r.Blame(context.Background(), "f")
	require.NoError(t, err)
	require.Equal(t, len(lines), file.Lines)
	n := 0
	require.NoError(t, file.Each(func(i int, l Blamed) error {
		require.Equal(t, lines[i], string(l.Text)+"\n")
		if l.Outside {
			require.Equal(t, "by hand", string(l.Text))
		} else {
			require.Equal(t, brought[lines[i]], l.Record.ID, lines[i])
		}
		n++
		return nil
	}))
	require.Equal(t, file.Lines, n)

	b.write("f", "shorter\n")
	file.content = liveFile{r.tree, "f"}
	require.ErrorContains(t, file.Each(func(int, Blamed) error { return nil }), "changed while it was read")
}

// TestBlameOfEverySecondLine: what a step back holds does not grow with how many changes it sees.
func TestBlameOfEverySecondLine(t *testing.T) {
	const lines = 1 << 20
	b := &blame{content: patch.Bytes(bytes.Repeat([]byte("\n"), lines))}
	require.NoError(t, b.begin(t.Context(), "f"))
	first, second := &history.Record{ID: "1"}, &history.Record{ID: "2"}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := walk{b: b, by: Culprit{Record: second}}
	for i := 0; i < lines; i += 2 {
		require.NoError(t, w.stays(i/2, i, 1))
	}
	w.until(lines)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(lines))
	assert.Equal(t, lines/2, b.open)
	w = walk{b: b, by: Culprit{Record: first}}
	require.NoError(t, w.stays(0, 1, lines/2-2))
	w.until(lines)
	assert.Equal(t, lines/2-2, b.open)
	b.rest(Culprit{Outside: true})
	for i, by := range b.out.by {
		want := Culprit{Outside: true}
		if i%2 == 1 {
			want = Culprit{Record: second}
		} else if i == 0 || i == lines-2 {
			want = Culprit{Record: first}
		}
		if b.out.Culprits[by] != want {
			require.Equal(t, want, b.out.Culprits[by], i)
		}
	}
}
