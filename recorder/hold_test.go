package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
)

// TestHold runs twice and takes back under one lock, which is free afterwards.
func TestHold(t *testing.T) {
	b := newBench(t)
	r := b.open()
	defer r.Close()
	ctx := context.Background()
	free := func() bool {
		unlock, err := r.project.Dir.TryLock()
		if err == nil {
			require.NoError(t, unlock())
		}
		return err == nil
	}
	sentinel := errors.New("over")
	err := r.Hold(ctx, 0, true, func() error {
		res, err := r.Run(ctx, RunOptions{Args: []string{"/bin/sh", "-c", "echo 1 >made"}, Dir: b.root})
		require.NoError(t, err)
		other := b.open()
		defer other.Close()
		_, err = other.Checkpoint(ctx, CheckpointOptions{})
		require.Error(t, err, "the lock is held between the operations")
		_, err = r.Revert(ctx, MoveOptions{Refs: []string{res.Record.ID}})
		require.NoError(t, err)
		return sentinel
	})
	require.ErrorIs(t, err, sentinel)
	require.NoFileExists(t, filepath.Join(b.root, "made"))
	require.True(t, free())
}

// TestHoldAfterCollecting: what a cap on the store frees between two operations
// under one lock ends the store's writer, which the second one needs.
func TestHoldAfterCollecting(t *testing.T) {
	b := newBench(t)
	for i := range 4 {
		b.write("f", noise(i, 100_000))
		b.checkpoint(CheckpointOptions{})
	}
	b.write(".decree/config.yml", "max_store: 150KiB\n")
	r := b.open()
	defer r.Close()
	before := b.storeSize()
	require.NoError(t, r.Hold(context.Background(), 0, true, func() error {
		for i := range 2 {
			args := []string{"/bin/sh", "-c", fmt.Sprintf("echo %d >made", i)}
			if _, err := r.Run(context.Background(), RunOptions{Args: args, Dir: b.root}); err != nil {
				return err
			}
			require.Less(t, b.storeSize(), before/2)
		}
		_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}})
		return err
	}))
	require.Equal(t, "0\n", text(t, filepath.Join(b.root, "made")))
	b.requireSound()
}

// TestComposedRun has its own id, its files in the record (and in the store, for
// a repair), and a taken id is not given twice.
func TestComposedRun(t *testing.T) {
	b := newBench(t)
	r := b.open()
	defer r.Close()
	ctx := context.Background()
	const id = "2020010203040500-3"
	compose := func(p Place) (Composed, error) {
		require.Equal(t, filepath.Join(b.root, ".decree", "runs", p.ID), p.Dir)
		return Composed{
			Args:  []string{"/bin/sh", "-c", `test "$more" = 1 && rm -r .decree/runs && echo said`},
			Env:   []string{"more=1"},
			Files: map[string][]byte{"message.md": []byte("do it\n")},
		}, nil
	}
	res, err := r.Run(ctx, RunOptions{ID: id, Compose: compose, Dir: b.root, LogCopy: "second.log"})
	require.NoError(t, err)
	require.Equal(t, id, res.Record.ID)
	require.Equal(t, 3, res.Record.Seq)
	require.Equal(t, history.StatusSucceeded, res.Record.Status)
	dir := filepath.Join(b.root, ".decree", "runs", id)
	require.Equal(t, "do it\n", text(t, filepath.Join(dir, "message.md")), "the command deleted it")
	require.Equal(t, "said\n", text(t, filepath.Join(dir, "second.log")))

	require.NoError(t, os.RemoveAll(dir))
	_, err = r.history.RestoreRun(id, true)
	require.NoError(t, err)
	require.Equal(t, "do it\n", text(t, filepath.Join(dir, "message.md")))

	res, err = r.Run(ctx, RunOptions{ID: id, Compose: compose, Dir: b.root})
	require.NoError(t, err)
	require.NotEqual(t, id, res.Record.ID)
}

// TestSpentAttempts goes on with what is left: the numbers, and the story.
func TestSpentAttempts(t *testing.T) {
	b := newBench(t)
	r := b.open()
	defer r.Close()
	var counted []int
	res, err := r.Run(context.Background(), RunOptions{
		Args: []string{"/bin/sh", "-c", `echo $DECREE_ATTEMPT >>tries; test $DECREE_ATTEMPT = 3 && grep -c "ended by a death" "$DECREE_FAILURE_CONTEXT"`},
		Dir:  b.root, Env: os.Environ(), Attempts: 3, Spent: 2, Earlier: "Two were ended by a death.",
		Attempt: func(n int) error { counted = append(counted, n); return nil },
	})
	require.NoError(t, err)
	require.Equal(t, 0, res.ExitCode)
	require.Equal(t, 3, res.Record.Attempts)
	require.Empty(t, counted, "the first of a run is not announced")
	require.Equal(t, "3\n", text(t, filepath.Join(b.root, "tries")))

	res, err = r.Run(context.Background(), RunOptions{
		Args: []string{"/bin/sh", "-c", `exit 1`}, Dir: b.root, Attempts: 3, Spent: 1,
		Attempt: func(n int) error { counted = append(counted, n); return nil },
	})
	require.NoError(t, err)
	require.Equal(t, []int{3}, counted)
	require.Equal(t, 3, res.Record.Attempts)
	require.FileExists(t, filepath.Join(b.root, ".decree", "runs", res.Record.ID, "attempts", "2", "routine.log"))
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}
