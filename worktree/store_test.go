package worktree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// TestStoresAreNotMoved, also where a record of an earlier version has their files.
func TestStoresAreNotMoved(t *testing.T) {
	id := tree.Path(strings.Repeat("0123456789abcdef", 2))
	was := files{"base": dir(0o755), "base/" + id: dir(0o700), "base/" + id + "/store.json": file("{}"), "base/" + id + "/index": file("new"), "z": file("z")}
	r := newRig(t, was)
	for _, path := range []tree.Path{"base/" + id + "/index", "base/" + id + "/more"} {
		want := files{"z": file("changed"), path: file("old")}
		_, err := r.move(steps(files{"z": file("z"), "base/" + id + "/index": file("new")}, want))
		require.ErrorContains(t, err, "a store of decree")
	}
	require.Equal(t, treeText(t, newRig(t, was).path("")), treeText(t, r.path("")))
	// A directory that only is named like one is moved as others are.
	was = files{id: dir(0o700), id + "/f": file("1")}
	r = newRig(t, was)
	_, err := r.move(steps(was, files{id: dir(0o700), id + "/f": file("2")}))
	require.NoError(t, err)
}
