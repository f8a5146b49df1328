package plan

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
	"decree/worktree"
)

// asLeft is a tree that has what changes have led to.
type asLeft []tree.Change

func (asLeft) Look(tree.Path) (*tree.Entry, error) {
	return &tree.Entry{Type: tree.Dir, Mode: 0o755}, nil
}
func (asLeft) Read(tree.Path) (io.ReadCloser, error) { return nil, io.EOF }
func (a asLeft) LookAll(_ context.Context, _ []tree.Path) ([]worktree.Looked, error) {
	out := make([]worktree.Looked, len(a))
	for i, c := range a {
		e := *c.New
		out[i].Entry = &e
	}
	return out, nil
}

// TestMemoryOfManyChanges: a plan to put back very many files holds little beside what changed,
// which is held anyway: a step for each, without a path or an entry of its own.
func TestMemoryOfManyChanges(t *testing.T) {
	const n = 20000
	long := strings.Repeat("of-a-directory/", 12)
	changes := make([]tree.Change, n)
	for i := range changes {
		path := tree.Path(fmt.Sprintf("%sfile-%07d", long, i))
		changes[i] = tree.Change{Path: path, Old: file("old"), New: file("new")}
	}
	inUse := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := inUse()
	p, err := ForChanges(context.Background(), asLeft(changes), changes, false)
	require.NoError(t, err)
	require.Less(t, inUse()-before, int64(64*n))
	require.Equal(t, n, len(p.Steps))
	require.Equal(t, n, p.Modified)
	require.Same(t, changes[7].Old, p.Steps[7].To)
	require.Same(t, changes[7].New, p.Steps[7].From)
	runtime.KeepAlive(changes)
}
