//go:build unix

package recorder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/plan"
	"decree/tree"
	"decree/worktree"
)

// TestDeepLooks: what a revert and a recovery look at in a tree of nested directories takes some
// disk steps for each level, however many there are.
func TestDeepLooks(t *testing.T) {
	const levels, most = 600, 30
	b := newBench(t)
	id := b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", "echo said"} }).Record.ID
	require.NoError(t, os.MkdirAll(filepath.Join(b.root, strings.Repeat("d/", levels)), 0o755))
	p := &plan.Plan{}
	var changes []tree.Change
	at := tree.Path("d")
	for range levels {
		p.Steps = append(p.Steps, worktree.Step{Path: at, From: &tree.Entry{Type: tree.Dir, Mode: 0o755}, MayStay: true})
		require.NoError(t, os.WriteFile(filepath.Join(b.root, string(at), "f"), nil, 0o644))
		changes = append(changes, tree.Change{Path: at.Join("f"), New: &tree.Entry{}})
		at = at.Join("d")
	}
	n := 0
	b.disk = disktest.Inject(disk.OS, func(disktest.Step) disktest.Action { n++; return disktest.Action{} })
	r := b.open()
	defer r.Close()

	n = 0
	later, err := r.changedAfter(id, changesInMemory(changes))
	require.NoError(t, err)
	require.Len(t, later, levels)
	require.Less(t, n, most*levels, "changedAfter")

	n = 0
	_, err = r.leaveFullDirs(p)
	require.NoError(t, err)
	require.Len(t, p.Stay, levels)
	require.Empty(t, p.Steps)
	require.Less(t, n, most*levels, "leaveFullDirs")
}
