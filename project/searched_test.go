package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestStoreThatCannotBeReadNow: without project.json no second history begins where the store of
// this root cannot be read just now, or is a newer decree's. Another root's stands in nobody's way.
func TestStoreThatCannotBeReadNow(t *testing.T) {
	eio := disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		if s.Op == "Open" && strings.HasSuffix(s.Path, memoryFile) {
			return disktest.Action{Err: &fs.PathError{Op: "open", Path: s.Path, Err: syscall.EIO}}
		}
		return disktest.Action{}
	})
	newer := func(t *testing.T, store string) {
		at := filepath.Join(store, memoryFile)
		data, err := os.ReadFile(at)
		require.NoError(t, err)
		changed := strings.Replace(string(data), `"version":`, `"version":9`, 1)
		require.NotEqual(t, string(data), changed)
		require.NoError(t, os.WriteFile(at, []byte(changed), 0o600))
	}
	home, work := ground(t)
	root, other := filepath.Join(work, "mine"), filepath.Join(work, "other")
	mkdirs(t, root, other)
	p := open(t, Where{Cwd: root, Home: home}, true)
	require.NoError(t, os.RemoveAll(filepath.Join(root, dirName)))
	_, err := Open(eio, Where{Cwd: root, Home: home}, true)
	require.ErrorIs(t, err, syscall.EIO)
	newer(t, p.StorePath)
	_, err = Open(disk.OS, Where{Cwd: root, Home: home}, true)
	require.ErrorContains(t, err, "newer")
	require.Equal(t, Refused, KindOf(err))
	require.NotEqual(t, p.ID, open(t, Where{Cwd: other, Home: home}, true).ID)
}
