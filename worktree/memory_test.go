package worktree

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/tree"
)

// held is how many bytes more are in use when do has made what it returns.
func held[T any](do func() T) (T, int64) {
	inUse := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := inUse()
	made := do()
	return made, inUse() - before
}

// allocated is how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryOfManySteps bounds what a transaction has in memory for each path, beside
// the plan's own: less than the path itself, and so does the recovery of one that died. The
// journal is never whole in memory.
func TestMemoryOfManySteps(t *testing.T) {
	const n = 20000
	plan := make([]Step, n)
	long := strings.Repeat("of-a-directory/", 12)
	for i := range plan {
		plan[i] = Step{
			Path: tree.Path(fmt.Sprintf("%s%04d/file-%07d", long, i/100, i)),
			From: &tree.Entry{Mode: 0o600, Size: 2, SHA256: tree.Sum([]byte{2})}, To: &tree.Entry{Mode: 0o644, Size: 1, SHA256: tree.Sum([]byte{1})},
		}
	}
	list, of := held(func() *stepList {
		list, err := prepare(plan)
		require.NoError(t, err)
		return list
	})
	assert.Less(t, of, int64(190*n), "steps")
	assert.Less(t, allocated(func() { require.NoError(t, writeJournal(io.Discard, "t1", nil, list)) }), uint64(500*n), "what is let go of at once")
	data := encodeJournal("t1", nil, list)
	for s := range list.all() {
		require.Equal(t, plan[s.n].Path, s.Path)
		require.Equal(t, plan[s.n].Path, list.find(s.Path).Path)
	}
	_, of = held(func() *Journal {
		j, reason, err := decodeJournal(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.Empty(t, reason)
		return j
	})
	assert.Less(t, of, int64(190*n), "journal")
	_, of = held(func() respelled { return markEarly(list) })
	assert.Less(t, of, int64(n), "spellings")
	runtime.KeepAlive(plan)
}
