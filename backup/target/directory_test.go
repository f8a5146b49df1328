package target_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/backup/target/targettest"
	"decree/disk"
	"decree/disk/disktest"
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

// What lies on a shelf has a directory for each record: to flush each of them would cost what the history is long.
func TestAShelfIsNotFlushed(t *testing.T) {
	flushes := 0
	d, err := target.OpenDirectory(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		if strings.HasSuffix(s.Op, "Sync") {
			flushes++
		}
		return disktest.Action{}
	}), filepath.Join(t.TempDir(), "to"), true)
	require.NoError(t, err)
	defer d.Close()
	for _, name := range []string{"p/now.new/a/x", "p/now.new/b/c/x"} {
		require.NoError(t, d.Write(t.Context(), name, strings.NewReader("x")))
		require.NoError(t, d.Link(t.Context(), name, path.Join("p/now.new/links", name)))
	}
	require.Zero(t, flushes)
	require.NoError(t, d.Exchange(t.Context(), "p/now.new", "p/now"))
	require.Equal(t, 1, flushes)
}
