package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/project"
	"decree/tree"
)

// TestHollowDiff: a changes.diff that is a hole of terabytes is refused before anybody
// reads it; a repair writes it again.
func TestHollowDiff(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("a", "a\n")
	b.checkpoint(CheckpointOptions{})
	id := b.run(0, 0, shell("echo b >>a")).Record.ID
	diff := filepath.Join(b.root, ".decree", "runs", id, diffFile)
	if err := os.Truncate(diff, 8<<40); err != nil {
		t.Skip(err)
	}
	at := b.open()
	_, err := at.Revert(ctx, MoveOptions{Refs: []string{id}})
	require.ErrorContains(t, err, "nearly all are a hole")
	require.Equal(t, project.Integrity, project.KindOf(err))
	_, err = at.History().OpenFile(id, diffFile)
	require.ErrorContains(t, err, "nearly all are a hole")
	warnings, err := at.History().Past(history.PastOptions{Paths: []tree.Path{"a"}}, func(history.Moment) bool { return true })
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	_, _ = at.Blame(ctx, "a")
	problems, err := at.Verify(ctx, VerifyOptions{All: true})
	require.NoError(t, err)
	require.Len(t, problems, 1)
	_, err = at.Doctor(ctx)
	require.NoError(t, err)
	require.NoError(t, at.Close())
}

// TestHollowDiffIsWrittenAgain: the store's copy of it comes back.
func TestHollowDiffIsWrittenAgain(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	b.checkpoint(CheckpointOptions{})
	id := b.run(0, 0, shell("echo b >>a")).Record.ID
	diff := filepath.Join(b.root, ".decree", "runs", id, diffFile)
	if err := os.Truncate(diff, 8<<40); err != nil {
		t.Skip(err)
	}
	with(b, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
	b.requireSound()
	b.revert(id)
}

// TestSumEndsWithItsContext: a signal ends the hashing of a large file.
func TestSumEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	blocks := 0
	_, err := sumOf(ctx, endless(func() { // without the context it would go on for ever
		if blocks++; blocks == 3 {
			cancel()
		}
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, blocks)
}

type endless func()

func (e endless) Read(b []byte) (int, error) { e(); return len(b), nil }
