package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/project"
)

// TestStranded: files on a file system that a failed run's command mounted on a directory of its own cannot be renamed out
// of it. The run and its revert say what has to be done first, and that is true.
func TestStranded(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	sub := filepath.Join(b.root, "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	if err := unix.Mount("tmpfs", sub, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	require.NoError(t, unix.Unmount(sub, 0))
	require.NoError(t, os.Remove(sub))
	r := b.commanded(func() int {
		b.write("a", "b\n")
		require.NoError(t, os.Mkdir(sub, 0o755))
		require.NoError(t, unix.Mount("tmpfs", sub, "tmpfs", 0, "size=1m,mode=755"))
		b.write("sub/f", "f\n")
		return 3
	})
	defer r.Close()
	t.Cleanup(func() { _ = unix.Unmount(sub, 0) })
	res, err := r.Run(context.Background(), command(b))
	require.NoError(t, err)
	require.False(t, res.PutBack)
	const why = "sub/f is on a file system or in a subvolume that came since"
	require.Contains(t, strings.Join(res.Notes, "\n"), why)
	_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Yes: true})
	require.Contains(t, project.HintOf(err), why)
	require.Equal(t, "b\n", b.read("a"))
	require.NoError(t, unix.Unmount(sub, 0))
	b.revert(res.Record.ID)
	require.Equal(t, "a\n", b.read("a"))
}
