package project

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

func TestOrphans(t *testing.T) {
	home, work := ground(t)
	stores := map[string]string{}
	for _, name := range []string{"mine", "there", "deleted", "replaced", "forgot"} {
		root := filepath.Join(work, name)
		mkdirs(t, root)
		stores[name] = open(t, Where{Cwd: root, Home: home}, true).StorePath
	}
	require.NoError(t, os.RemoveAll(filepath.Join(work, "deleted")))
	// Kept, so that the new directory cannot get its inode.
	require.NoError(t, os.Rename(filepath.Join(work, "replaced"), filepath.Join(work, "elsewhere")))
	mkdirs(t, filepath.Join(work, "replaced"))
	// Its next record takes its store up again.
	require.NoError(t, os.RemoveAll(filepath.Join(work, "forgot/.decree")))
	mkdirs(t, filepath.Join(filepath.Dir(stores["mine"]), "00000000000000000000000000000000"))

	p := open(t, Where{Cwd: filepath.Join(work, "mine"), Home: home}, false)
	found := map[string]string{}
	require.NoError(t, p.Orphans(func(o Orphan, store disk.Dir) error {
		require.Equal(t, o.Path, store.Path())
		found[o.Root] = o.Path
		return nil
	}))
	require.Equal(t, map[string]string{
		filepath.Join(work, "deleted"):  stores["deleted"],
		filepath.Join(work, "replaced"): stores["replaced"],
	}, found)
}
