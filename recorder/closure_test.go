package recorder

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/store"
	"decree/tree"
)

// What only outside.diff still names is needed as much as what a tree has: gc keeps it, and
// verify says when it is lost.
func TestWhatOnlyADiffNames(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	was := "\x00" + noise(1, 1_200_000) // binary: the diff leaves it to the store
	b.write("f", was)
	b.checkpoint(CheckpointOptions{})
	b.write("f", "\x00"+noise(2, 1_200_000))
	last := b.checkpoint(CheckpointOptions{})
	b.prune(PruneOptions{Last: map[string]int{"manual": 1}})
	with(b, func(r *Recorder) (*Collected, error) { return r.Gc(ctx) })
	verify := func(r *Recorder) ([]Problem, error) { return r.Verify(ctx, VerifyOptions{All: true}) }
	require.Empty(t, with(b, verify))

	lost := tree.Sum([]byte(was))
	with(b, func(r *Recorder) (store.Compacted, error) {
		require.True(t, r.store.Has(lost))
		return r.store.Compact(ctx, func(h tree.Hash) bool { return h != lost }, store.CompactOptions{Force: true})
	})
	found := with(b, verify)
	require.Len(t, found, 1)
	require.Equal(t, last.ID, found[0].Record)
	require.Equal(t, "f", found[0].Path)
}
