package tree

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inUse is how many bytes of the heap are in use.
func inUse() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestChangesHoldNothing: of changes that are read one after the other none is held, however
// many there are.
func TestChangesHoldNothing(t *testing.T) {
	const n, most = 20000, 1 << 20 // held they would take more than seven times as much
	m, all := newMemory(), naive{}
	for i := range n {
		d := Path(fmt.Sprintf("d%02d", i%40))
		all[d], all[d.Join(fmt.Sprintf("%s%05d", strings.Repeat("x", 240), i))] = dir(0o755), file("x")
	}
	root := build(t, m, all)
	clear(all)
	before, seen, grown := inUse(), 0, int64(0)
	for _, err := range (Reader{From: m}).Changes(Hash{}, root) {
		require.NoError(t, err)
		if seen++; seen%5000 == 0 {
			grown = max(grown, inUse()-before)
		}
	}
	require.Equal(t, n+40, seen)
	require.Less(t, grown, int64(most))
	runtime.KeepAlive(m)
}
