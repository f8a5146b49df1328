package store

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestHugeFilesTakeNoMemory: files of the store that a hole makes larger than any are not read into memory. The list of what was forgotten is
// never taken for an empty one.
func TestHugeFilesTakeNoMemory(t *testing.T) {
	at := t.TempDir()
	dir, err := disk.OS.OpenRoot(at)
	require.NoError(t, err)
	defer dir.Close()
	s := openStore(t, dir, Options{})
	var h Hash
	for _, content := range []string{"in the base", "in the log"} {
		w, err := s.Writer(t.Context())
		require.NoError(t, err)
		h, err = w.PutBytes([]byte(content))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
	}
	require.NoError(t, os.WriteFile(filepath.Join(at, forgottenName), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(at, forgottenName), maxForgotten+2))
	require.NoError(t, os.Truncate(filepath.Join(at, logName), maxLog))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = ReadForgotten(dir)
	require.ErrorContains(t, err, "damaged: it is larger than")
	require.NoError(t, s.load())
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
	require.NotZero(t, s.logged, "the sound part of the log counts")
	require.True(t, s.Has(h))
}
