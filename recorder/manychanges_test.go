//go:build unix

package recorder

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
)

// TestRecoveryOfManyChanges: what an interrupted run has changed is written down without being
// held, so that its recovery needs no more memory than a capture does.
func TestRecoveryOfManyChanges(t *testing.T) {
	const n, most = 12000, 13 << 20 // held they would take half as much again
	b := newBench(t)
	b.write("a/f", "f\n")
	dead := b.commanded(func() int {
		require.NoError(t, os.Rename(filepath.Join(b.root, "a"), filepath.Join(b.root, "b")))
		for i := range n {
			b.write(fmt.Sprintf("b/%s%05d", strings.Repeat("x", 240), i), "")
		}
		panic("dies")
	})
	require.Panics(t, func() { _, _ = dead.Run(context.Background(), command(b)) })
	dead.Close()
	dead = nil

	inUse := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	r := b.open()
	defer r.Close()
	before, grown := inUse(), int64(math.MinInt64)
	r.Reader.opt.Events = func(e Event) {
		if e.Progress.Phase == "comparing" && e.Progress.Done > 0 {
			grown = max(grown, inUse()-before)
		}
	}
	recovered, err := r.Recover(context.Background(), false)
	require.NoError(t, err)
	require.Len(t, recovered, 1)
	require.Equal(t, history.StatusInterrupted, recovered[0].Record.Status)
	require.Equal(t, n+1, recovered[0].Record.Changes.Created)
	t.Logf("%d bytes for %d changes", grown, n)
	require.Less(t, grown, int64(most))
}
