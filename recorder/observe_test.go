package recorder

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A capture that is neither kept nor closed has the end of the stat cache to itself.
func TestOneCaptureAtATime(t *testing.T) {
	b := newBench(t)
	r := b.open()
	defer r.Close()
	x, err := r.enter(t.Context(), besideRuns)
	require.NoError(t, err)
	defer x.close()
	how := captureOptions{phase: "recording", unlimited: true}
	for _, keep := range []bool{false, true} {
		b.write("f", fmt.Sprint(keep))
		first, err := r.observe(t.Context(), x, how)
		require.NoError(t, err)
		_, err = r.observe(t.Context(), x, how)
		require.ErrorIs(t, err, errTwoCaptures)
		if keep {
			require.NoError(t, r.keep(x, first))
		} else {
			require.NoError(t, first.Close())
		}
		second, err := r.observe(t.Context(), x, how)
		require.NoError(t, err)
		require.Equal(t, first.Tree, second.Tree)
		require.NoError(t, second.Close())
		require.NoError(t, first.Close())
	}
}
