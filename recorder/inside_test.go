package recorder

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
)

// TestClockSetBackInsideARun: all that was recorded inside a run is undone with it, also where the
// clock was set back while it went on.
func TestClockSetBackInsideARun(t *testing.T) {
	b := newBench(t)
	b.write("f", "0\n")
	b.checkpoint(CheckpointOptions{})
	var inner []string
	r := b.commanded(func() int {
		b.clk = b.clk.Add(-time.Hour)
		for n := range 3 {
			r := b.commanded(func() int { b.write("f", fmt.Sprint(n+1, "\n")); return 0 })
			res, err := r.Run(t.Context(), command(b))
			require.NoError(t, err)
			require.NoError(t, r.Close())
			inner = append(inner, res.Record.ID)
		}
		return 1
	})
	res, err := r.Run(t.Context(), command(b))
	require.NoError(t, err)
	require.True(t, res.PutBack)
	require.NoError(t, r.Close())
	for _, id := range inner {
		rec := with(b, func(r *Recorder) (*history.Record, error) { return r.history.Get(id) })
		require.Equal(t, history.StatusUndone, rec.Status)
		require.Equal(t, res.Record.ID, rec.UndoneBy)
	}
}

// TestClockSetBackBesideARun: the same where something was recorded beside the run after that, by a process that is no
// part of it.
func TestClockSetBackBesideARun(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("inner record before it is set back: %v", first), func(t *testing.T) {
			b := newBench(t)
			b.write("f", "0\n")
			b.checkpoint(CheckpointOptions{})
			b.clk = b.clk.Add(4 * time.Hour)
			var inner []string
			within := func(do func()) {
				r := b.commanded(func() int { b.write("f", fmt.Sprint(b.clk, "\n")); do(); return 0 })
				defer r.Close()
				res, err := r.Run(t.Context(), command(b))
				require.NoError(t, err)
				inner = append(inner, res.Record.ID)
			}
			beside := func() {
				r := b.outsider()
				defer r.Close()
				_, err := r.Checkpoint(t.Context(), CheckpointOptions{Description: "beside"})
				require.NoError(t, err)
			}
			r := b.commanded(func() int {
				if first {
					within(func() {})
				}
				b.clk = b.clk.Add(-2 * time.Hour)
				if !first {
					within(func() { within(func() {}) })
				}
				beside()
				return 1
			})
			res, err := r.Run(t.Context(), command(b))
			require.NoError(t, err)
			require.True(t, res.PutBack)
			require.NoError(t, r.Close())
			require.Len(t, inner, map[bool]int{true: 1, false: 2}[first])
			for _, id := range inner {
				rec := with(b, func(r *Recorder) (*history.Record, error) { return r.history.Get(id) })
				require.Equal(t, history.StatusUndone, rec.Status)
				require.Equal(t, res.Record.ID, rec.UndoneBy)
			}
			b.requireSound()
		})
	}
}
