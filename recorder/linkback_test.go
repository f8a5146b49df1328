package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestALinkThatIsBackByHand: a run replaced a link by a directory, and somebody has put the link back. Nothing is behind it that is the tree's: a
// revert has nothing to do, also with --force, and an undo passes the run over.
func TestALinkThatIsBackByHand(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("v1/a", "1\n")
	lib := filepath.Join(b.root, "lib")
	require.NoError(t, os.Symlink("v1", lib))
	b.checkpoint(CheckpointOptions{})
	runs := func(do func()) *RunResult {
		r := b.commanded(func() int { do(); return 0 })
		defer r.Close()
		res, err := r.Run(ctx, command(b))
		require.NoError(t, err)
		return res
	}
	runs(func() { b.write("f", "f\n") })
	run := runs(func() {
		require.NoError(t, os.Remove(lib))
		b.write("lib/a", "x\n")
	})
	require.NoError(t, os.RemoveAll(lib))
	require.NoError(t, os.Symlink("v1", lib))
	r := b.open()
	defer r.Close()
	for _, force := range []bool{false, true} {
		res, err := r.Revert(ctx, MoveOptions{Refs: []string{run.Record.ID}, Force: force, Yes: true})
		require.NoError(t, err)
		require.Nil(t, res.Record)
	}
	res, err := r.Undo(ctx, UndoOptions{Yes: true})
	require.NoError(t, err)
	require.Len(t, res.Passed, 1)
	require.Equal(t, run.Record.ID, res.Passed[0].Link.ID)
	require.NoFileExists(t, filepath.Join(b.root, "f"))
	require.Equal(t, "1\n", b.read("v1/a"))
}
