package worktree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// opens counts the directories that are opened below it.
type opens struct {
	disk.Dir
	opened *int
}

func (c opens) OpenDir(name string) (disk.Dir, error) {
	*c.opened++
	d, err := c.Dir.OpenDir(name)
	return opens{d, c.opened}, err
}

// TestDeepPaths goes up a path of 1,000 levels and down again: the directories that
// are opened are a few for each level, not all above it.
func TestDeepPaths(t *testing.T) {
	const levels = 1000
	root, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	at := root
	for range levels {
		require.NoError(t, at.Mkdir("d", 0o700))
		below, err := at.OpenDir("d")
		require.NoError(t, err)
		defer below.Close()
		at = below
	}
	opened := 0
	h := newHandles(opens{root, &opened})
	defer h.close()
	path := tree.Path(strings.TrimSuffix(strings.Repeat("d/", levels), "/"))
	visit := func(n int) {
		d, err := h.dir(path[:2*n-1])
		require.NoError(t, err)
		d.release()
	}
	for n := levels; n > 0; n-- {
		visit(n)
	}
	for n := 1; n <= levels; n++ {
		visit(n)
	}
	assert.Less(t, opened, 12*levels)
}
