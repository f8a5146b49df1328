package backup

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// TestDraftsOfTheInboxAlone: what decree builds in the inbox is in no backup, and what a person calls so elsewhere is.
func TestDraftsOfTheInboxAlone(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"inbox/.queue-message-1", "inbox/dead/.queue-draft", "inbox/a.md", "notes/.queue-rc", ".queue-mine/x"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
	}
	dir, err := disk.OS.OpenRoot(root)
	require.NoError(t, err)
	defer dir.Close()
	g := &gathering{files: map[FileName]File{}, tell: func(text string) { t.Error(text) }, put: func(io.Reader, int64) (tree.Hash, int64, error) { return tree.Hash{}, 0, nil }}
	require.NoError(t, g.directory(dir, ""))
	want := []FileName{FileName(fileOf(".queue-mine/x")), FileName(fileOf("inbox/a.md")), FileName(fileOf("notes/.queue-rc"))}
	slices.Sort(want)
	require.Equal(t, want, slices.Sorted(maps.Keys(g.files)))
}
