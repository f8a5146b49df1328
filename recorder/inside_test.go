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
