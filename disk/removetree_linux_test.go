package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestRemoveTreeLeavesMounts: what is mounted below stays as it is, also from the same file system, which no device number tells.
func TestRemoveTreeLeavesMounts(t *testing.T) {
	d, path := open(t)
	data := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(data, "precious"), nil, 0o600))
	at := filepath.Join(path, "layer", "tree", "mnt")
	require.NoError(t, os.MkdirAll(at, 0o700))
	if err := unix.Mount(data, at, "", unix.MS_BIND, ""); err != nil {
		t.Skip("cannot mount: ", err)
	}
	err := RemoveTree(d, "layer")
	require.NoError(t, unix.Unmount(at, 0))
	assert.FileExists(t, filepath.Join(data, "precious"))
	assert.ErrorIs(t, err, unix.EBUSY)
	assert.ErrorContains(t, err, at+": a file system is mounted there; unmount it, then repeat this")
	require.NoError(t, RemoveTree(d, "layer"))
	assert.NoFileExists(t, filepath.Join(path, "layer"))
}
