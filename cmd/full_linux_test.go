package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDiskOfTree: the hint of a move without room names the file on the tree's disk
// that can be done without, and with it gone the move finds room.
func TestFullDiskOfTree(t *testing.T) {
	u := newUsers(t)
	u.dir(0, 0o755, "home")
	root := u.dir(0, 0o755, "tree")
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=6m"); err != nil {
		t.Skip("needs a mount: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) })
	file := filepath.Join(root, "f")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o644))
	code, said := u.decree(0, root, nil, "run", "--", "sh", "-c", "head -c 900000 /dev/urandom >big; rm f; >.git")
	require.Zero(t, code, said)
	_, _ = u.command(0, root, nil, "run", "--", "true").CombinedOutput()
	ballast := u.command(0, root, nil)
	ballast.Path, ballast.Args = "/bin/sh", []string{"sh", "-c", "cat /dev/zero >ballast"}
	_ = ballast.Run()

	code, said = u.decree(0, root, nil, "revert", "last~1")
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "nothing was changed")
	require.NotContains(t, said, "decree gc", "it frees room on the store's disk")
	_, rest, _ := strings.Cut(said, "or delete ")
	copied, _, found := strings.Cut(rest, " (")
	require.True(t, found, said)
	require.NoError(t, os.Remove(copied))
	code, said = u.decree(0, root, nil, "revert", "last~1")
	require.Zero(t, code, said)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "first\n", string(data))
}

// TestFullDiskOfStore: what finds no room for contents names the commands that make some.
func TestFullDiskOfStore(t *testing.T) {
	u := newUsers(t)
	data := u.dir(0, 0o755, "data")
	root := u.dir(0, 0o755, "tree")
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=6m"); err != nil {
		t.Skip("needs a mount: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	more := []string{"XDG_DATA_HOME=" + data}
	code, said := u.decree(0, root, more, "run", "--", "sh", "-c", "echo first >f")
	require.Zero(t, code, said)
	ballast := u.command(0, data, nil)
	ballast.Path, ballast.Args = "/bin/sh", []string{"sh", "-c", "cat /dev/zero >ballast"}
	_ = ballast.Run()
	code, said = u.decree(0, root, more, "run", "--", "sh", "-c", "echo >started")
	require.Equal(t, 125, code, said)
	require.Contains(t, said, "the command was not started")
	require.Contains(t, said, "run 'decree prune' and 'decree gc', which need none to begin")
	require.NoFileExists(t, filepath.Join(root, "started"))
	for _, verb := range []string{"prune", "gc"} {
		code, said = u.decree(0, root, more, verb)
		require.Zero(t, code, said)
	}
}
