package target

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestListingBesideAnother: a directory that another backup removes while a target is listed is passed over, whichever moment that is.
func TestListingBesideAnother(t *testing.T) {
	at := t.TempDir()
	for _, dir := range []string{"a", "b/c", "d"} {
		require.NoError(t, os.MkdirAll(filepath.Join(at, dir), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(at, dir, "f"), nil, 0o600))
	}
	tg, err := OpenDirectory(disk.OS, at, false)
	require.NoError(t, err)
	defer tg.Close()
	var names []string
	require.NoError(t, tg.List(t.Context(), "", func(o Object) error {
		names = append(names, o.Name)
		return os.RemoveAll(filepath.Join(at, "b"))
	}))
	require.Equal(t, []string{"a/f", "d/f"}, names)
}
