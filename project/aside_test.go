package project

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestNewDecreeNotSeen: while it cannot be told whether a death left a .decree on its
// way, with what it put aside there, no other one is made beside it.
func TestNewDecreeNotSeen(t *testing.T) {
	root := t.TempDir()
	where := Where{RootFlag: root, Cwd: root, Home: t.TempDir(), DataHome: t.TempDir()}
	left := filepath.Join(root, newDecree, asideDir, "decree")
	write(t, left, "kept")
	blind := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Stat" && filepath.Base(st.Path) == newDecree {
			return disktest.Action{Err: &fs.PathError{Op: "stat", Path: st.Path, Err: syscall.EIO}}
		}
		return disktest.Action{}
	})
	_, err := Open(blind, where, true)
	require.ErrorIs(t, err, syscall.EIO)
	require.NoDirExists(t, filepath.Join(root, dirName))
	require.FileExists(t, left)

	p, err := Open(disk.OS, where, true)
	require.NoError(t, err)
	defer p.Close()
	require.NoDirExists(t, filepath.Join(root, newDecree))
	require.FileExists(t, filepath.Join(root, dirName, asideDir, "decree"))
}
