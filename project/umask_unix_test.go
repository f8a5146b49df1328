//go:build unix

package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"decree/disk"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrivateWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o002, 0o777} {
		home, root := ground(t)
		old := syscall.Umask(mask)
		p, err := Open(disk.OS, Where{Cwd: root, Home: home}, true)
		if err == nil {
			err = ReplaceFile(p.Store, "x", []byte("y"), PrivateFile, true)
		}
		if err == nil {
			_, err = p.BeginActs(false)
		}
		if err == nil {
			err = p.NoteHook(time.Now(), "why")
		}
		syscall.Umask(old)
		require.NoError(t, err)
		defer p.Close()
		for path, want := range map[string]fs.FileMode{
			filepath.Join(root, ".decree"): 0o755 &^ fs.FileMode(mask&0o077), p.StorePath: 0o700, filepath.Join(p.StorePath, "x"): 0o600,
			filepath.Join(p.StorePath, "own", ActsLog): 0o600, filepath.Join(p.StorePath, hooksLog): 0o600, filepath.Join(p.StorePath, "store.json"): 0o600,
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

// TestStoreIsNotGivenAway: root, with a user's HOME (sudo -E, su -m, macOS's sudo), in a tree that is not that user's makes no store
// which that user could read.
func TestStoreIsNotGivenAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const ann, bob = 60001, 60002
	own := homeOfRoot
	t.Cleanup(func() { homeOfRoot = own })
	for _, c := range []struct {
		name string
		tree int
		w    func(home string) Where
		base string // below the ground
		uid  int
	}{
		{"HOME", 0, func(h string) Where { return Where{Home: h} }, "root/.local/share/decree", 0},
		{"XDG_DATA_HOME", 0, func(h string) Where { return Where{Home: h, DataHome: filepath.Join(h, "data")} }, "root/.local/share/decree", 0},
		{"SUDO_UID", 0, func(h string) Where { return Where{Home: h, Behind: &User{ann, h}} }, "root/.local/share/decree", 0},
		{"a third user's tree", bob, func(h string) Where { return Where{Home: h} }, "root/.local/share/decree", 0},
		{"that user's tree", ann, func(h string) Where { return Where{Home: h} }, "home/.local/share/decree", ann},
		{"DECREE_STORE", 0, func(h string) Where { return Where{Home: h, StoreEnv: filepath.Join(h, "stores")} }, "", 0},
		{"DECREE_STORE, that user's tree", ann, func(h string) Where { return Where{Home: h, StoreEnv: filepath.Join(h, "stores")} }, "home/stores", ann},
		{"the config", 0, func(h string) Where { return Where{Home: h, ConfigStore: true} }, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			home, root := ground(t)
			ground := filepath.Dir(home)
			mkdirs(t, filepath.Join(ground, "root"))
			homeOfRoot = func() string { return filepath.Join(ground, "root") }
			if c.name == "the config" {
				write(t, filepath.Join(root, ".decree/config.yml"), "store: "+home+"/stores")
			}
			require.NoError(t, os.Chown(home, ann, ann))
			require.NoError(t, os.Chown(root, c.tree, c.tree))
			w := c.w(home)
			w.Cwd = root
			p, err := Open(disk.OS, w, true)
			if c.base == "" {
				require.ErrorContains(t, err, "a store in "+home+"/stores would belong to user 60001, and "+root+" belongs to root: user 60001 could read there")
				assert.Contains(t, HintOf(err), "with DECREE_STORE name a directory that belongs to root")
				require.NoDirExists(t, filepath.Join(home, "stores"))
				return
			}
			require.NoError(t, err)
			defer p.Close()
			assert.Equal(t, filepath.Join(ground, c.base, p.ID), p.StorePath)
			st, err := os.Stat(p.StorePath)
			require.NoError(t, err)
			assert.EqualValues(t, c.uid, st.Sys().(*syscall.Stat_t).Uid)
			assert.Equal(t, p.ID, open(t, w, false).ID)
		})
	}
}
