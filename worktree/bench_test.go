package worktree

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// BenchmarkMove is a revert: n files of 3 KB in directories of 50, on the file
// system of TMPDIR, flushed as always. (ext4 makes new files 10 times slower for
// some seconds after many were deleted, which every round does.)
func BenchmarkMove(b *testing.B) {
	for _, n := range []int{1, 25, 3000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			was, will := files{}, files{}
			for i := range n {
				d := tree.Path(fmt.Sprintf("d%d", i/50))
				p := d.Join(fmt.Sprint("f", i))
				was[d], will[d] = dir(0o755), dir(0o755)
				was[p], will[p] = file(strings.Repeat("old ", 750)+string(p)), file(strings.Repeat("new ", 750)+string(p))
			}
			r := newRig(b, was)
			r.workers = 0
			for _, tree := range []files{was, will} {
				for _, x := range tree {
					_, _, err := r.vault.Put(strings.NewReader(x.data), 0)
					require.NoError(b, err)
				}
			}
			require.NoError(b, r.vault.Flush())
			ways := [][]Step{steps(was, will), steps(will, was)}
			t, journals, done := r.tree()
			defer done()
			i := 0
			for b.Loop() {
				_, err := t.Move(context.Background(), Plan{ID: "t1", Steps: ways[i%2]}, r.vault, journals)
				require.NoError(b, err)
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/file")
		})
	}
}

// TestManySteps moves 15,000 paths at once, and one 400 directories down.
func TestManySteps(t *testing.T) {
	was, will := files{}, files{}
	for i := range 20000 {
		d := tree.Path(fmt.Sprintf("d%d", i/400))
		was[d], will[d] = dir(0o755), dir(0o755)
		p := d.Join(fmt.Sprint("f", i))
		switch i % 4 {
		case 0:
			was[p], will[p] = file("old"), file("new")
		case 1:
			was[p] = file("going")
		case 2:
			will[p] = file("coming")
		default:
			was[p], will[p] = file("same"), file("same")
		}
	}
	long := tree.Path("")
	for range 400 {
		long += "/d"
		was[long[1:]], will[long[1:]] = dir(0o755), dir(0o755)
	}
	was[long[1:]+"/f"], will[long[1:]+"/f"] = file("deep"), file("deeper")
	r, _ := newMemRig(t, was)
	r.workers = 0
	_, err := r.move(steps(was, will))
	require.NoError(t, err)
	require.Equal(t, will, r.state())
	r.clean()
}

// TestLongPath moves a file at 4,000 bytes of path on the system's disk, and
// takes the directories away with it.
func TestLongPath(t *testing.T) {
	was := files{}
	long := tree.Path("")
	for len(long) < 4000-3 {
		long += "/" + tree.Path(strings.Repeat("d", 79))
		was[long[1:]] = dir(0o755)
	}
	r := newRig(t, files{})
	_, err := r.move(steps(files{}, was.with(files{long[1:] + "/f": file("deep")})))
	require.NoError(t, err)
	_, err = r.move(steps(files{long[1:] + "/f": file("deep")}, files{long[1:] + "/f": file("deeper")}))
	require.NoError(t, err)
	_, err = r.move(steps(was.with(files{long[1:] + "/f": file("deeper")}), files{}))
	require.NoError(t, err)
	list, err := os.ReadDir(r.path(""))
	require.NoError(t, err)
	require.Len(t, list, 1)
}
