package worktree

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
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

// TestAMissingDirectoryIsAskedForOnce: of a tree that is to be filled nothing is there yet, and a look at each of its
// paths asks for the directory above them all once. What is made later is found.
func TestAMissingDirectoryIsAskedForOnce(t *testing.T) {
	root, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	var paths []tree.Path
	for i := range 200 {
		paths = append(paths, tree.Path(fmt.Sprintf("a/b%02d/c", i)))
	}
	opened := 0
	tr := Open(opens{root, &opened}, Options{Workers: 1})
	look := func() (there int) {
		list, err := tr.LookAll(t.Context(), append(paths, "z"))
		require.NoError(t, err)
		for _, l := range list {
			require.NoError(t, l.Err)
			if l.Entry != nil {
				there++
			}
		}
		return there
	}
	assert.Zero(t, look())
	assert.Equal(t, 1, opened)
	require.NoError(t, os.MkdirAll(filepath.Join(root.Path(), "a/b07/c"), 0o700))
	assert.Equal(t, 1, look())
	h := newHandles(root)
	defer h.close()
	looked := h.onlyLook()
	_, err = h.dir("a/new/below")
	require.ErrorIs(t, err, errNoDir)
	looked()
	above, err := h.dir("a")
	require.NoError(t, err)
	defer above.release()
	require.NoError(t, above.Mkdir("new", 0o700))
	d, err := h.dir("a/new")
	require.NoError(t, err)
	d.release()
}

// TestStagedInTheOrderOfTheStore: contents that the store gives are asked for as they lie in it.
func TestStagedInTheOrderOfTheStore(t *testing.T) {
	want := files{}
	for i := range 300 {
		want[tree.Path(fmt.Sprintf("f%03d", i))] = file(fmt.Sprint("content ", i))
	}
	r := newRig(t, nil)
	plan := steps(files{}, want)
	for i := range plan {
		_, _, err := r.vault.Put(strings.NewReader(want[plan[i].Path].data), -1)
		require.NoError(t, err)
		plan[i].Content = nil
	}
	require.NoError(t, r.vault.Flush())
	_, err := r.move(plan)
	require.NoError(t, err)
	require.Equal(t, want, r.state())
	require.Len(t, r.vault.opened, len(want))
	require.True(t, slices.IsSortedFunc(r.vault.opened, func(a, b tree.Hash) int { return cmp.Compare(r.vault.Place(a), r.vault.Place(b)) }))
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

// TestDeepMoves brings a tree of nested directories, takes it away, and does both again
// by a recovery from a death half way: the steps on the disk are a few dozen for each
// level, however many there are.
func TestDeepMoves(t *testing.T) {
	const levels, most = 600, 100
	nested := func(levels int) files {
		out := files{}
		at := tree.Path("d")
		for range levels {
			out[at], out[at+"/f"] = dir(0o755), file("content")
			at += "/d"
		}
		return out
	}
	// count makes a move, or ends it half way and recovers, and counts the steps.
	count := func(from, to files, die int) (n int) {
		r, _ := newMemRig(t, from)
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			return disktest.InjectDirs(func(disktest.Step) disktest.Action {
				n++
				return disktest.Action{Die: n == die}
			}, dirs...)
		}
		_, err := r.move(steps(from, to))
		if die > 0 {
			require.Error(t, err)
			r.vault.crash()
			n, die = 0, 0
			_, _, err = r.recover()
		}
		require.NoError(t, err)
		r.wrap = nil
		require.NotEmpty(t, oldOrNew(r, from, to))
		return n
	}
	for _, way := range []struct {
		name string
		move func(levels, die int) int
	}{
		{"come", func(levels, die int) int { return count(files{}, nested(levels), die) }},
		{"go", func(levels, die int) int { return count(nested(levels), files{}, die) }},
	} {
		whole := way.move(levels, 0)
		assert.Less(t, whole, most*levels, "%s", way.name)
		for _, part := range []int{3, 6, 8} {
			assert.Less(t, way.move(levels, whole*part/10), most*levels, "%s, recovered after %d tenths", way.name, part)
		}
	}
}
