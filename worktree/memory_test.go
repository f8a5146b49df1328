package worktree

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/tree"
)

// allocated is how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryOfManySteps bounds what a transaction has in memory for each path, beside
// the plan's own: as much again as a capture has. The journal is never whole in memory.
func TestMemoryOfManySteps(t *testing.T) {
	const n = 20000
	plan := make([]Step, n)
	for i := range plan {
		plan[i] = Step{Path: tree.Path(fmt.Sprintf("directory/file-%07d", i)), To: &tree.Entry{Mode: 0o644, Size: 1, SHA256: tree.Sum([]byte{1})}}
	}
	var list []*step
	assert.Less(t, allocated(func() {
		var err error
		list, err = prepare(plan, false)
		require.NoError(t, err)
	}), uint64(140*n), "steps")
	assert.Less(t, allocated(func() { assert.Empty(t, markEarly(list)) }), uint64(64*n), "spellings")
	assert.Less(t, allocated(func() { require.NoError(t, writeJournal(io.Discard, "t1", nil, list)) }), uint64(8*n), "journal")
}
