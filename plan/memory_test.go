package plan

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/patch"
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

// TestMemoryOfManySections: a plan of very many sections holds one item for each path while it is
// made, and what the tree has as the section has it; packed it holds the steps alone, and
// unpacked it says what it said.
func TestMemoryOfManySections(t *testing.T) {
	const n = 20000
	long := strings.Repeat("of-a-directory/", 12)
	src := &Source{ID: "a"}
	var changes asLeft
	var paths []tree.Path
	for i := range n {
		s := Section{Path: tree.Path(fmt.Sprintf("%sfile-%07d", long, i)), Old: file("old"), New: file("new"), op: patch.OpModify}
		src.Sections, paths = append(src.Sections, s), append(paths, s.Path)
		changes = append(changes, tree.Change{Path: s.Path, Old: s.Old, New: s.New})
	}
	inUse := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := inUse()
	o := newOverlay(changes)
	require.NoError(t, o.see(t.Context(), paths))
	for tr := range src.transitions() {
		require.NoError(t, o.planOne(t.Context(), &tr, Options{}))
	}
	require.Less(t, inUse()-before, int64(260*n), "the plan on its way")
	p, err := o.finish()
	require.NoError(t, err)
	o = nil
	require.Equal(t, n, len(p.Steps))
	require.Same(t, src.Sections[7].New, p.Steps[7].From)
	p.Items[3].Verdict, p.Items[4].Reason = Forced, "edited since"
	p.Steps = slices.Delete(p.Steps, 5, 6) // as of a directory that stays
	p.Stored()
	items, steps := slices.Clone(p.Items), slices.Clone(p.Steps)
	packed, err := p.Pack()
	require.NoError(t, err)
	require.Len(t, p.Items, 3)
	p.Unpack(packed)
	require.Equal(t, items[:50], p.Items[:50])
	require.Equal(t, items[n-9:], p.Items[n-9:])
	require.Equal(t, steps[:50], p.Steps[:50])
	require.Len(t, p.Items, n)
	require.Len(t, p.Steps, n-1)
	runtime.KeepAlive(src)
}
