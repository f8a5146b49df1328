//go:build unix

package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"decree/disk"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrivateWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o777} {
		home, root := ground(t)
		old := syscall.Umask(mask)
		p, err := Open(disk.OS, Where{Cwd: root, Home: home}, true)
		if err == nil {
			err = ReplaceFile(p.Store, "x", []byte("y"), PrivateFile, true)
		}
		syscall.Umask(old)
		require.NoError(t, err)
		defer p.Close()
		for path, want := range map[string]fs.FileMode{
			p.StorePath: 0o700, filepath.Join(p.StorePath, "x"): 0o600, filepath.Join(p.StorePath, "store.json"): 0o600,
			filepath.Join(root, ".decree/runs"): 0o700, filepath.Join(root, ".decree/tmp"): 0o700,
		} {
			st, err := os.Stat(path)
			require.NoError(t, err)
			assert.Equal(t, want, st.Mode().Perm(), path)
		}
	}
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	p := open(t, w, true)
	require.NoError(t, os.Chmod(p.StorePath, 0o755))
	open(t, w, true)
	st, err := os.Stat(p.StorePath)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), st.Mode().Perm())
}
