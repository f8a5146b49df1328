package recorder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// What each record is said to free at least is held against what the history would
// take without it.
func TestUsage(t *testing.T) {
	b := newBench(t)
	b.write("steady", noise(1, 50_000))
	for i := range 6 {
		b.write("sub/changing", noise(100+i%4, 40_000)) // two come back
		b.checkpoint(CheckpointOptions{})
	}
	b.prune(PruneOptions{Last: map[string]int{"manual": 5}})
	r := b.open()
	defer r.Close()
	u, err := r.Usage()
	require.NoError(t, err)
	require.Len(t, u.Records, 5)

	s := &sizeWithout{r: r.Reader}
	require.NoError(t, s.begin())
	all := map[string]bool{}
	stored, runs := u.Unneeded, int64(0)
	for _, rec := range u.Records {
		all[rec.ID] = true
		stored += rec.Store
		runs += rec.Runs
	}
	require.Equal(t, u.Packs, stored, "each byte of the packs is somebody's")
	require.Equal(t, u.Runs, runs)
	whole, err := s.size(all)
	require.NoError(t, err)
	for _, rec := range u.Records {
		require.Equal(t, rec.ID, rec.Record.ID)
		all[rec.ID] = false
		rest, err := s.size(picked(all))
		require.NoError(t, err)
		all[rec.ID] = true
		require.LessOrEqual(t, rec.Own, whole-rest, rec.ID)
		require.LessOrEqual(t, rec.Own, rec.Total())
		require.Greater(t, rec.Own, int64(0))
	}
	require.Equal(t, tree.Path("sub/changing"), u.Paths[0].Path)
	require.Equal(t, 4, u.Paths[0].Contents)
	require.Equal(t, PathUsage{"steady", u.Paths[1].Bytes, 1}, u.Paths[1])
}

func picked(all map[string]bool) map[string]bool {
	out := map[string]bool{}
	for id, stays := range all {
		if stays {
			out[id] = true
		}
	}
	return out
}

// A log that two runs printed is neither one's own in the store.
func TestUsageOfWhatTwoRecordsHave(t *testing.T) {
	b := newBench(t)
	b.write("log", noise(7, 60_000)) // which the tree has, too
	for range 2 {
		b.run(0, 0, func(o *RunOptions) { o.Args = []string{"cat", "log"} })
	}
	u := with(b, func(r *Recorder) (*Usage, error) { return r.Usage() })
	require.Len(t, u.Records, 2)
	for _, rec := range u.Records {
		require.Less(t, rec.Own-rec.Runs, int64(30_000), "the copies in .decree/runs are its own, the stored log is not")
	}
}

// The paths that are counted at a time have a bound, and the largest stay.
func TestUsageOfManyPaths(t *testing.T) {
	tally := &tally{u: &Usage{}, at: map[string]int{}, owned: map[tree.Hash]owned{}, paths: map[tree.Path]*PathUsage{}}
	for i := range 3 * manyPaths {
		tally.path(tree.Path(fmt.Sprint("small", i)), 1)
		if i%manyPaths == 0 {
			tally.path(tree.Path(strings.Repeat("large", 1+i/manyPaths)), 1000)
		}
		require.LessOrEqual(t, len(tally.paths), manyPaths)
	}
	u := tally.end()
	require.Len(t, u.Paths, UsagePaths)
	for i := range 3 {
		require.Equal(t, PathUsage{tree.Path(strings.Repeat("large", 1+i)), 1000, 1}, u.Paths[i])
	}
}
