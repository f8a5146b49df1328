package recorder

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"decree/patch"
	"decree/tree"

	"github.com/stretchr/testify/require"
)

// aTree is a random one of a few names: each is nothing, a link or a directory with as much below.
func aTree(r *rand.Rand, at tree.Path, depth int, in map[tree.Path]*tree.Entry) map[tree.Path]*tree.Entry {
	for _, name := range []string{"a", "b"} {
		path := at.Join(name)
		switch r.IntN(3) {
		case 0:
			in[path] = &tree.Entry{Type: tree.Symlink, Mode: 0o777, Target: string(rune('x' + r.IntN(3))), Size: 1}
			in[path].SHA256 = tree.Sum([]byte(in[path].Target))
		case 1:
			in[path] = &tree.Entry{Type: tree.Dir, Mode: 0o700}
			if depth > 0 {
				aTree(r, path, depth-1, in)
			}
		}
	}
	return in
}

func between(old, now map[tree.Path]*tree.Entry) (list []tree.Change) {
	for path := range old {
		if !tree.SameEntry(old[path], now[path]) {
			list = append(list, tree.Change{Path: path, Old: old[path], New: now[path]})
		}
	}
	for path := range now {
		if old[path] == nil {
			list = append(list, tree.Change{Path: path, New: now[path]})
		}
	}
	slices.SortFunc(list, func(a, b tree.Change) int { return a.Path.Compare(b.Path) })
	return list
}

// someOf are a part of changes, as of whom one asks for.
func someOf(r *rand.Rand, list []tree.Change) (some []tree.Change) {
	for _, c := range list {
		if r.IntN(2) == 0 {
			some = append(some, c)
		}
	}
	return some
}

// TestJoinedFitsOneTree: what was changed at two times, with whatever changed in between, is a diff that can be read again. What fits is left as it is.
func TestJoinedFitsOneTree(t *testing.T) {
	whole := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var trees []map[tree.Path]*tree.Entry
		for range 4 {
			trees = append(trees, aTree(r, "", 2, map[tree.Path]*tree.Entry{}))
		}
		all := between(trees[0], trees[1])
		require.Equal(t, all, fitting(all), seed)
		earlier := map[tree.Path]tree.Change{}
		for _, c := range fitting(someOf(r, all)) {
			earlier[c.Path] = c
		}
		later := fitting(someOf(r, between(trees[2], trees[3])))
		list := joined(earlier, later)
		var diff bytes.Buffer
		w := patch.NewWriter(&diff, patch.Limits{})
		for _, c := range list {
			require.NoError(t, w.Write(context.Background(), patch.Change{Path: c.Path, Old: c.Old, New: c.New}), seed)
		}
		require.NoError(t, w.Close())
		now := map[tree.Path]*tree.Entry{}
		for _, c := range list {
			now[c.Path] = c.New
		}
		for _, c := range later { // what is there at the end is told
			if now[c.Path] != nil {
				require.True(t, tree.SameEntry(c.New, now[c.Path]), seed)
				whole++
			}
		}
	}
	require.Greater(t, whole, 1000)
}
