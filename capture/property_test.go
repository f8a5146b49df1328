//go:build unix

package capture

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/manifest"
	"decree/tree"
)

// names are such that directories and files sort differently with and without a slash.
var names = []string{"a", "a-", "a.", "a0", "ab", "b", "b!", "b\n", "caf\xe9", "\"q", "z z", "\u2028", "\x01"}

// mutate makes n random changes below root.
func mutate(t *testing.T, r *rand.Rand, root string, n int) {
	for range n {
		path := root
		for range 1 + r.IntN(3) {
			path = filepath.Join(path, names[r.IntN(len(names))])
		}
		if r.IntN(3) > 0 {
			os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if st, err := os.Lstat(filepath.Dir(path)); err != nil || !st.IsDir() {
			continue
		}
		change(t, r, root, path)
	}
}

func change(t *testing.T, r *rand.Rand, root, path string) {
	switch r.IntN(10) {
	case 0, 1:
		require.NoError(t, os.RemoveAll(path))
	case 2:
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.Symlink(fmt.Sprint("to", r.IntN(3)), path))
	case 3:
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.Mkdir(path, 0o700+os.FileMode(r.IntN(2))*0o55))
	case 4:
		if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink == 0 {
			require.NoError(t, os.Chmod(path, 0o700+os.FileMode(r.IntN(0o100))))
		}
	case 5:
		to := filepath.Join(filepath.Dir(path), names[r.IntN(len(names))])
		os.Rename(path, to)
	default:
		if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
			require.NoError(t, os.RemoveAll(path))
		}
		content := bytes.Repeat([]byte("x"), r.IntN(4))
		require.NoError(t, os.WriteFile(path, content, 0o644))
	}
}

// TestRandomTrees mutates a tree and captures it, cached and not, listed and not, and
// compares with the naive capture.
func TestRandomTrees(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := newSite(t)
			var before []tree.Item
			var base Hash
			if seed%2 == 0 {
				s.req.start = always // the cache is used as much as it can be
			}
			for step := range 12 {
				s.tick()
				mutate(t, r, s.dir, r.IntN(12))
				listed := r.IntN(2) == 0
				res := s.capture(func(q *Request) {
					q.Workers, q.Full = 1+r.IntN(4), r.IntN(5) == 0
					if listed {
						unsteady(q)
					}
				})
				after := naive(t, s.dir)
				got, err := manifest.Collect(res.Entries())
				require.NoError(t, err)
				require.Equal(t, after, got, "step %d", step)
				require.Equal(t, base, res.Base)
				id, err := treeID(after)
				require.NoError(t, err)
				require.Equal(t, id, res.Tree)
				if step > 0 {
					want, err := manifest.Compare(manifest.Of(before...), manifest.Of(after...))
					require.NoError(t, err)
					require.Equal(t, len(want), len(s.changes(res)))
					require.Equal(t, want, s.changes(res))
				}
				checkTotals(t, res, after)
				readOnly := s.capture(func(q *Request) { q.Writer = nil })
				require.Equal(t, res.Tree, readOnly.Tree)
				for _, from := range []tree.Source{s.store, readOnly.Objects(s.store)} {
					got, err := manifest.Collect(tree.Reader{From: from}.Entries(res.Tree))
					require.NoError(t, err)
					require.Equal(t, after, got)
				}
				if r.IntN(4) > 0 || step == 0 {
					require.NoError(t, res.Commit())
					before, base = after, id
				}
				for _, it := range after {
					if it.Entry.Type == tree.Regular {
						require.True(t, s.store.Has(it.Entry.SHA256))
					}
				}
			}
		})
	}
}

func checkTotals(t *testing.T, r *Result, items []tree.Item) {
	files, dirs, size := 0, 0, int64(0)
	for _, it := range items {
		if it.Entry.Type == tree.Dir {
			dirs++
		} else {
			files++
			size += it.Entry.Size
		}
	}
	require.Equal(t, files, r.Files)
	require.Equal(t, dirs, r.Dirs)
	require.Equal(t, size, r.Bytes)
	var buf bytes.Buffer
	require.NoError(t, r.WriteManifest(&buf))
	var want bytes.Buffer
	require.NoError(t, manifest.Encode(&want, manifest.Of(items...), false))
	require.Equal(t, want.String(), buf.String())
}

// treeID is the id of a tree that has these paths.
func treeID(items []tree.Item) (Hash, error) {
	m := newMemStore()
	changes := make([]tree.Change, len(items))
	for i := range items {
		changes[i] = tree.Change{Path: items[i].Path, New: &items[i].Entry}
	}
	return tree.Apply(tree.Reader{From: m}, m, Hash{}, changes)
}
