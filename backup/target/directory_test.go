package target_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/backup/target/targettest"
	"decree/disk"
)

func TestADirectoryIsATarget(t *testing.T) {
	targettest.Run(t, func(t *testing.T) target.Target {
		d, err := target.OpenDirectory(disk.OS, filepath.Join(t.TempDir(), "to"), true)
		require.NoError(t, err)
		return d
	})
}

func TestADirectoryThatIsNotThereIsGone(t *testing.T) {
	_, err := target.OpenDirectory(disk.OS, filepath.Join(t.TempDir(), "to"), false)
	require.ErrorIs(t, err, target.ErrGone)
}

func TestLinksInADirectoryAreNotFollowed(t *testing.T) {
	at, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(at, "p")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(at, "x")))
	d, err := target.OpenDirectory(disk.OS, at, false)
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.List(t.Context(), "", func(o target.Object) error {
		require.Fail(t, "listed", o.Name)
		return nil
	}))
	for _, name := range []string{"p/secret", "x"} {
		_, _, err := d.Open(t.Context(), name, 0, -1)
		require.Error(t, err, name)
	}
	_, err = d.Create(t.Context(), "p/new")
	require.Error(t, err)
	require.Error(t, d.Delete(t.Context(), "p/secret"))
	require.FileExists(t, filepath.Join(outside, "secret"))
}

func TestATargetIsPrivate(t *testing.T) {
	at := filepath.Join(t.TempDir(), "to")
	d, err := target.OpenDirectory(disk.OS, at, true)
	require.NoError(t, err)
	defer d.Close()
	u, err := d.Create(t.Context(), "p/packs/a")
	require.NoError(t, err)
	require.NoError(t, u.Commit(t.Context(), "p/packs/a"))
	for name, mode := range map[string]os.FileMode{"": 0o700, "p": 0o700, "p/packs": 0o700, "p/packs/a": 0o600} {
		st, err := os.Stat(filepath.Join(at, name))
		require.NoError(t, err)
		require.Equal(t, mode, st.Mode().Perm(), name)
	}
}
