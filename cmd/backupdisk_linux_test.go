package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRestoresFromADiskOfItsOwn: a directory of root's beside the backups, as lost+found at the top of a disk, keeps nobody from restoring.
func TestRestoresFromADiskOfItsOwn(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	disk := u.dir(ann, 0o755, "usb")
	u.dir(0, 0o700, "usb", "lost+found")
	ok := func(dir string, args ...string) string {
		code, out := u.decree(ann, dir, nil, args...)
		require.Zero(t, code, out)
		return out
	}
	file := filepath.Join(root, "f")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o644))
	require.NoError(t, os.Chown(file, ann, ann))
	code, out := u.decree(ann, root, nil, "backup", "restore", "--from", disk, "--into", "../home/none")
	require.Equal(t, 3, code, out)
	require.Contains(t, out, "has no backups of decree's: ")
	require.Contains(t, out, "lost+found")
	ok(root, "checkpoint")
	ok(root, "backup", "-q", "--to", disk)
	ok(root, "run", "--", "sh", "-c", "echo second >f")

	ok(root, "backup", "restore", "--from", disk, "--tree", "--yes")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "first\n", string(data))
	ok(filepath.Join(u.base, "home"), "backup", "restore", "--from", disk, "--into", "new")
	require.FileExists(t, filepath.Join(u.base, "home", "new", "f"))

	// A target at the root itself, where what lies there is asked for, and said before anything is changed.
	own := u.dir(ann, 0o755, "own")
	u.dir(0, 0o700, "own", "lost+found")
	require.NoError(t, os.WriteFile(filepath.Join(own, ".decreeignore"), []byte("lost+found/\n"), 0o644))
	require.NoError(t, os.CopyFS(filepath.Join(own, "tree"), os.DirFS(filepath.Join(disk, "tree"))))
	require.NoError(t, filepath.WalkDir(filepath.Join(own, "tree"), func(path string, _ os.DirEntry, err error) error {
		require.NoError(t, err)
		return os.Chown(path, ann, ann)
	}))
	ok(own, "backup", "restore", "--from", ".", "--tree", "--yes")
	require.FileExists(t, filepath.Join(own, "tree", "manifest.json"))
	require.FileExists(t, filepath.Join(own, "f"))
}
