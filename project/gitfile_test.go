package project

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestLargeGitFile: a file named .git that is too large to name a repository names none.
func TestLargeGitFile(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, ".git"), make([]byte, maxIdentity+1), 0o644))
	own, common, err := gitFiles{disk: disk.OS}.repository(root)
	require.NoError(t, err)
	require.Empty(t, own+common)
}
