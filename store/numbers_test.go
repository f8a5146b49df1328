package store

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbersAreAMap compares one with a map: of a store part of whose objects its index has, and part what came since, and
// whose index is given up and made anew meanwhile.
func TestNumbersAreAMap(t *testing.T) {
	dir := openDir(t)
	s := openStore(t, dir, Options{FoldAt: 50})
	var hashes []Hash
	put := func(seed byte, n int) {
		w, err := s.Writer(t.Context())
		require.NoError(t, err)
		for i := range n {
			h, err := w.PutBytes([]byte{seed, byte(i), byte(i >> 8)})
			require.NoError(t, err)
			hashes = append(hashes, h)
		}
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
	}
	put(1, 300)
	put(2, 20)
	require.Positive(t, s.base.count)
	require.Positive(t, s.recent.n)
	for name, of := range map[string]*Numbers{"a store's": s.Numbers(), "of nothing": {}} {
		random, want := rand.New(rand.NewPCG(1, 2)), map[Hash]uint32{}
		for i := range 4000 {
			switch i {
			case 1000:
				put(3, 20)
			case 2000:
				s.mu.Lock()
				s.doubt()
				s.mu.Unlock()
			case 3000:
				require.True(t, s.Has(hashes[0]))
			}
			h, v := hashes[random.IntN(len(hashes))], random.Uint32N(3)
			of.Set(h, v)
			if want[h] = v; v == 0 {
				delete(want, h)
			}
			require.Equal(t, len(want), of.Len(), name)
		}
		require.Equal(t, want, maps.Collect(of.All()), name)
		for _, h := range hashes {
			require.Equal(t, want[h], of.Get(h), name)
		}
		copy := of.Clone()
		for h := range of.All() {
			of.Set(h, 0)
		}
		require.Zero(t, of.Len(), name)
		require.Empty(t, maps.Collect(of.All()), name)
		require.Equal(t, want, maps.Collect(copy.All()), name)
	}
}

// TestFrozenTableStays: what is added to a table and changed in it after it was frozen is not in the copy, whatever pages
// they share, and is in the table.
func TestFrozenTableStays(t *testing.T) {
	at := func(i, pack int) entry {
		return entry{hash: Hash{8: byte(i), 9: byte(i >> 8), 20: byte(i >> 16)}, place: place{pack: uint32(pack)}}
	}
	var now table
	for i := range 2*tablePage + 7 {
		now.add(at(i, 1))
	}
	was := now.freeze()
	for i := range 3 * tablePage {
		now.put(at(i, 2))
	}
	require.Equal(t, 2*tablePage+7, was.n)
	for i := range was.n {
		require.Equal(t, at(i, 1), *was.at(i))
		h := at(i, 0).hash
		require.Equal(t, i, was.number(&h))
	}
	for i := range 3 * tablePage {
		require.Equal(t, at(i, 2), *now.at(i))
	}
	later := at(2*tablePage+100, 0).hash
	require.Equal(t, -1, was.number(&later))
}
