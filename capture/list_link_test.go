package capture

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// TestListNamesLinks: a listing reads no targets, of whatever the links are called.
func TestListNamesLinks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".gitignore", "plain"} {
		require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, name)))
	}
	root, err := disk.OS.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	var got []string
	err = List(context.Background(), Request{Root: root}, ListOptions{}, func(path tree.Path, k disk.Kind) error {
		require.Equal(t, disk.Symlink, k)
		got = append(got, string(path))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{".gitignore", "plain"}, got)
}
