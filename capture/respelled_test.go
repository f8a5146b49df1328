package capture

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
	"decree/tree"
)

// TestRespelled: .git and .decree are left out under each spelling that the file system
// takes for them, and what only looks like one where case counts is recorded.
func TestRespelled(t *testing.T) {
	for _, folds := range []bool{false, true} {
		m := disktest.NewMem()
		m.FoldCase = folds
		for _, dir := range []string{".GIT", "sub/.Git", ".DECREE/runs"} {
			d, err := m.MkdirAll("/w/"+dir, 0o755)
			require.NoError(t, err)
			_, err = d.Create("file", 0o644)
			require.NoError(t, err)
		}
		root, err := m.OpenRoot("/w")
		require.NoError(t, err)
		res, err := Capture(context.Background(), Request{Root: root})
		require.NoError(t, err)
		t.Cleanup(func() { res.Close() })
		files := 3
		if folds {
			files = 0
		}
		require.Equal(t, files, res.Files)
		answers, err := Explain(context.Background(), Request{Root: root}, []tree.Path{".GIT", "sub/.Git/file", ".Gi"})
		require.NoError(t, err)
		for i, want := range []bool{folds, folds, false} {
			require.Equal(t, want, answers[i].Ignored, answers[i].Path)
		}
	}
}
