package recorder

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/runner"
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

// What is stored while a run is open stays, though nothing names it yet; then it goes.
func TestWhatIsStoredWhileARunIsOpen(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("f", noise(1, 50_000))
	b.checkpoint(CheckpointOptions{})
	put := func(o *Recorder, content string) tree.Hash {
		x, err := o.enter(ctx, besideRuns)
		require.NoError(t, err)
		defer x.close()
		sum, err := x.w.PutBytes([]byte(content))
		require.NoError(t, err)
		require.NoError(t, x.w.Flush())
		return sum
	}
	before := with(b, func(r *Recorder) (tree.Hash, error) { return put(r, noise(2, 50_000)), nil })
	var since tree.Hash
	r := b.commanded(func() int {
		o := b.outsider()
		defer o.Close()
		since = put(o, noise(3, 50_000))
		freeAll(t, o)
		require.False(t, o.store.Has(before))
		require.True(t, o.store.Has(since))
		return 0
	})
	defer r.Close()
	_, err := r.Run(ctx, command(b))
	require.NoError(t, err)
	with(b, func(r *Recorder) (any, error) {
		freeAll(t, r)
		require.False(t, r.store.Has(since))
		return nil, nil
	})
	b.requireSound()
}

// What an attempt left is named before the lock is given back for a while, also where the
// store had it already and no record names it any more.
func TestFreeingWhileAPersonIsAsked(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("steady", noise(1, 500_000))
	for _, text := range []string{"two\n", "one\n"} {
		b.write("d/f", text)
		b.checkpoint(CheckpointOptions{})
	}
	b.prune(PruneOptions{Last: map[string]int{"manual": 1}})
	r := b.commanded(nil)
	defer r.Close()
	r.execute = func(_ context.Context, c runner.Command) (runner.Result, error) {
		err := c.Starting(runner.Leader{PID: 1 << 30, PGID: 1 << 30})
		b.write("d/f", "two\n")
		return runner.Result{ExitCode: 1, PTY: true, Duration: time.Second}, err
	}
	o := command(b)
	asked := false
	o.Confirm = func(PutBack) Answer {
		asked = true
		out := b.outsider()
		defer out.Close()
		freeAll(t, out)
		return No
	}
	res, err := r.Run(ctx, o)
	require.NoError(t, err)
	require.True(t, asked)
	require.Equal(t, history.StatusFailed, res.Record.Status)
	b.requireSound()
	require.Empty(t, with(b, func(r *Recorder) ([]Problem, error) { return r.Verify(ctx, VerifyOptions{All: true}) }))
}

// freeAll frees all that no closure has, however little it is.
func freeAll(t *testing.T, r *Recorder) {
	t.Helper()
	x, err := r.enter(context.Background(), besideRuns)
	require.NoError(t, err)
	defer x.close()
	_, err = r.collect(context.Background(), x, collectOptions{force: true})
	require.NoError(t, err)
}
