package recorder

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
