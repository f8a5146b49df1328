package recorder

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/layer"
	"decree/tree"
)

// TestOnOneBase: whatever the tree has by now at the paths that were not recorded, those of the draft
// tell of one tree what they were, and of one what they are.
func TestOnOneBase(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		base, now, made := randomTree(rng), randomTree(rng), randomTree(rng)
		recorded := map[tree.Path]bool{}
		var touched []layer.Touched
		for _, path := range basePaths {
			old := now[path]
			if up := path.Parent(); !tree.SameEntry(base[path], made[path]) && rng.IntN(2) == 0 || recorded[up] && !base[up].IsDir() && base[path] == nil && made[path] != nil {
				recorded[path], old = true, base[path]
			}
			if !tree.SameEntry(old, made[path]) {
				touched = append(touched, layer.Touched{Change: tree.Change{Path: path, Old: old, New: made[path]}})
			}
		}
		out := onOneBase(touched, recorded)
		is := map[tree.Path]layer.Touched{}
		for _, c := range out {
			is[c.Path] = c
			require.Equal(t, made[c.Path], c.New, "seed %d: %s", seed, c.Path)
			for up := c.Path.Parent(); up != ""; up = up.Parent() {
				if above, told := is[up]; told {
					require.True(t, c.Old == nil || above.Old.IsDir(), "seed %d: %s was below %s", seed, c.Path, up)
					require.True(t, c.New == nil || above.New.IsDir(), "seed %d: %s is below %s", seed, c.Path, up)
				}
			}
		}
		for _, c := range touched {
			if _, told := is[c.Path]; !told && c.New != nil {
				require.True(t, c.New.IsDir(), "seed %d: %s", seed, c.Path)
			}
		}
	}
}

var basePaths = []tree.Path{"a", "a-b", "a/b", "a/b/c", "a/b/c/d", "a/e"}

// randomTree has files and directories at some of the paths.
func randomTree(rng *rand.Rand) map[tree.Path]*tree.Entry {
	out := map[tree.Path]*tree.Entry{}
	for _, path := range basePaths {
		if up := path.Parent(); up != "" && !out[up].IsDir() {
			continue
		}
		switch rng.IntN(5) {
		case 0:
		case 1:
			text := fmt.Sprint(rng.IntN(2))
			out[path] = &tree.Entry{Type: tree.Regular, Mode: 0o644, Size: 1, SHA256: tree.Sum([]byte(text))}
		default:
			out[path] = &tree.Entry{Type: tree.Dir, Mode: 0o755}
		}
	}
	return out
}

// TestOnOneBaseOfARename is the case of a draft's file in a directory that the tree has no more.
func TestOnOneBaseOfARename(t *testing.T) {
	dir, file := &tree.Entry{Type: tree.Dir, Mode: 0o755}, &tree.Entry{Type: tree.Regular, Mode: 0o644}
	touched := []layer.Touched{{Change: tree.Change{Path: "t", New: dir}, NoBase: true}, {Change: tree.Change{Path: "t/f", Old: file, New: dir}}}
	require.Equal(t, touched[1:], onOneBase(slices.Clone(touched), map[tree.Path]bool{"t/f": true}))
}
