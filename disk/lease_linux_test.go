package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestBeingWritten asks while a file is read, written, and mapped by somebody.
func TestBeingWritten(t *testing.T) { testBeingWritten(t, t.TempDir()) }

func TestBeingWrittenOnAFUSE(t *testing.T) {
	_, seen := bindMount(t, "attr_timeout=1")
	testBeingWritten(t, seen)
}

func testBeingWritten(t *testing.T, dir string) {
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o644))
	d, err := OS.OpenRoot(dir)
	require.NoError(t, err)
	defer d.Close()
	busy := func() bool {
		f, err := d.Open("f")
		require.NoError(t, err)
		defer f.Close()
		return f.BeingWritten()
	}
	require.False(t, busy())
	r, err := os.Open(path)
	require.NoError(t, err)
	defer r.Close()
	require.False(t, busy(), "a reader")
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	if !busy() {
		w.Close()
		t.Skip("the file system of the temporary directory gives no leases")
	}
	data, err := unix.Mmap(int(w.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.True(t, busy(), "a mapping outlives its descriptor")
	require.NoError(t, unix.Munmap(data))
	require.False(t, busy())
}
