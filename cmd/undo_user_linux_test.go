package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUndoSkipsWhatIsAnothers: a record whose files lie in a directory that has become another user's, as by a container, is
// passed over with --skip like one whose paths were edited.
func TestUndoSkipsWhatIsAnothers(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	root := u.dir(ann, 0o755, "tree")
	run := func(script string) {
		code, out := u.decree(ann, root, nil, "run", "--", "sh", "-c", script)
		require.Zero(t, code, out)
	}
	run("echo first >first")
	run("mkdir built && echo o >built/o")
	require.NoError(t, os.Chown(filepath.Join(root, "built"), bob, bob))

	code, out := u.decree(ann, root, nil, "undo")
	assert.Equal(t, 4, code, out)
	assert.Contains(t, out, "--skip")
	code, out = u.decree(ann, root, nil, "undo", "--skip")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "is passed over: paths that it changed, or their directories, are another user's")
	assert.NoFileExists(t, filepath.Join(root, "first"))
	assert.FileExists(t, filepath.Join(root, "built/o"))
	code, out = u.decree(ann, root, nil, "redo")
	assert.Zero(t, code, out)
	assert.FileExists(t, filepath.Join(root, "first"))
}
