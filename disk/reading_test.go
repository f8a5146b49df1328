//go:build unix

package disk

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReading cuts a mapped file short, which is for the processor what a bad sector is: who looks there is told, and
// the process goes on. Any other panic stays one.
func TestReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, make([]byte, 64<<10), 0o600))
	d, err := OS.OpenRoot(filepath.Dir(path))
	require.NoError(t, err)
	defer d.Close()
	f, err := d.Open("f")
	require.NoError(t, err)
	defer f.Close()
	data, release, err := f.Map()
	require.NoError(t, err)
	defer func() { require.NoError(t, release()) }()
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := byte(0)
	looks := map[string]func(){
		"a byte":       func() { sum += data[50<<10] },
		"a checksum":   func() { crc32.Checksum(data, table) },
		"a copy":       func() { copy(make([]byte, len(data)), data) },
		"the last one": func() { sum += data[len(data)-1] },
	}
	for name, look := range looks {
		require.NoError(t, Reading(data, look), name)
	}
	require.NoError(t, os.Truncate(path, 10))
	for name, look := range looks {
		err := Reading(data, look)
		require.ErrorIs(t, err, ErrUnreadable, name)
		require.ErrorIs(t, err, syscall.EIO, name)
	}
	require.NoError(t, Reading(data, func() { sum += data[3] }))
	require.PanicsWithValue(t, "mine", func() { _ = Reading(data, func() { panic("mine") }) })
	require.Panics(t, func() { _ = Reading(data[:16<<10], looks["a byte"]) }, "what is not of the mapping is not for it to pass over")
	require.Zero(t, sum)
}
