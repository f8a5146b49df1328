package store

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestALookOverTheIndexIsNotKept: the memory of what a look over all entries has passed is given back, never that of what
// is still to come, and all of the index can be read as before.
func TestALookOverTheIndexIsNotKept(t *testing.T) {
	dir, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	const n = 4 * unloaded / entryLen
	made := func(yield func(entry, error) bool) {
		for i := range uint32(n) {
			e := entry{place: place{pack: 1, off: i}, size: 1}
			binary.BigEndian.PutUint32(e.hash[:], i*(1<<32/n))
			if !yield(e, nil) {
				return
			}
		}
	}
	require.NoError(t, writeBase(dir, nil, n, made))
	b, err := openBase(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.release()) }()
	seen, kept, unload := 0, 0, b.unload
	b.unload = func(from, to int) {
		require.Equal(t, kept, from)
		require.Less(t, to, b.front()+seen*entryLen+unloaded, "what is to come stays")
		kept = to
		unload(from, to)
	}
	var hashes []Hash
	for e, err := range b.all() {
		require.NoError(t, err)
		hashes = append(hashes, e.hash)
		seen++
	}
	require.Equal(t, n, seen)
	require.GreaterOrEqual(t, kept, unloaded)
	b.unload = nil
	again := 0
	for e, err := range b.all() {
		require.NoError(t, err)
		require.Equal(t, hashes[again], e.hash)
		again++
	}
	require.True(t, slices.IsSortedFunc(hashes, func(x, y Hash) int { return compareHash(&x, &y) }))
	for _, i := range []int{0, n / 3, n - 1} {
		_, known, err := b.get(&hashes[i])
		require.NoError(t, err)
		require.True(t, known)
	}
}
