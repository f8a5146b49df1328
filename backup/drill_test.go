package backup

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
)

// What a drill restores is removed again: nothing of it is worth a flush.
func TestScratchIsNotFlushed(t *testing.T) {
	w, flushes, read := newWorld(t), 0, 0
	o, done, err := w.options(disktest.Inject(w.m, func(s disktest.Step) disktest.Action {
		if strings.Contains(s.Path, "/"+scratchDir+"/") && strings.HasPrefix(s.Path, "/w/store/") {
			if strings.HasSuffix(s.Op, "Sync") {
				flushes++
			}
			read++
		}
		return disktest.Action{}
	}))
	require.NoError(t, err)
	defer done()
	proof, err := Drill(context.Background(), o, true)
	require.NoError(t, err)
	require.True(t, proof.OK, proof.Problems)
	require.Equal(t, proof.Of, proof.Files)
	require.Positive(t, read)
	require.Zero(t, flushes)
}
