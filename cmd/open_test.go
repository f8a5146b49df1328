package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/project"
	"decree/tree"
)

// TestBelow holds how PATHs of the command line become paths of the tree.
func TestBelow(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root := filepath.Join(real, "root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sub", "deep"), 0o755))
	require.NoError(t, os.Symlink(root, filepath.Join(real, "link")))
	tests := []struct{ cwd, path, want string }{
		{root, "a.txt", "a.txt"},
		{root, "sub/", "sub"},
		{root, ".", ""},
		{root, "./sub/../b", "b"},
		{filepath.Join(root, "sub"), "a", "sub/a"},
		{filepath.Join(root, "sub"), "..", ""},
		{filepath.Join(root, "sub", "deep"), "../x", "sub/x"},
		{root, "gone/with/it", "gone/with/it"},
		{root, filepath.Join(root, "abs"), "abs"},
		{root, filepath.Join(real, "link", "via"), "via"},
		{root, filepath.Join(real, "link"), ""},
		{root, "..dots", "..dots"},
	}
	for _, tt := range tests {
		got, err := below(root, tt.cwd, tt.path)
		require.NoError(t, err, tt.path)
		assert.Equal(t, tree.Path(tt.want), got, tt.path)
	}
	for _, path := range []string{"", "../x", "..", "/", "sub/../../x"} {
		_, err := below(root, root, path)
		require.Error(t, err, path)
		assert.Equal(t, project.Usage, project.KindOf(err), path)
	}
}

func TestActor(t *testing.T) {
	s := &session{env: Env{User: "u", Host: "h", Environ: []string{"DECREE_AGENT=a", "DECREE_TURN=3", "DECREE_TURN=7"}}}
	a, err := s.actor()
	require.NoError(t, err)
	assert.Equal(t, "u@h, agent a, turn 7", actorText(a))
	s.env.Environ = append(s.env.Environ, "DECREE_TURN=seven")
	_, err = s.actor()
	assert.Equal(t, project.Usage, project.KindOf(err))
}
