package store

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInOrderEachBlockComesOnce(t *testing.T) {
	s := openStore(t, openDir(t), Options{PackSize: 64 << 10, BlockSize: 2 << 10})
	have := contents(t, s, 60)
	lacks := Hash{1}
	have[lacks] = nil

	list, err := s.InOrder(maps.Keys(have))
	require.NoError(t, err)
	require.Len(t, list, len(have))
	require.Equal(t, lacks, list[0])
	seen, last := map[place]bool{}, place{}
	for _, h := range list[1:] {
		e, ok, err := s.find(&h)
		require.NoError(t, err)
		require.True(t, ok)
		block := place{e.pack, e.off, 0}
		require.False(t, block != last && seen[block], "a block is left and come back to")
		seen[block], last = true, block
	}
	require.Greater(t, len(seen), 5)
	require.ElementsMatch(t, slices.Collect(maps.Keys(have)), list)
}

func TestPlaceIsTheOrderOfThePacks(t *testing.T) {
	s := openStore(t, openDir(t), Options{PackSize: 64 << 10, BlockSize: 2 << 10})
	list, err := s.InOrder(maps.Keys(contents(t, s, 60)))
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(list, func(a, b Hash) int { return cmp.Compare(s.Place(a), s.Place(b)) }))
	require.NotZero(t, s.Place(list[0]))
	require.Zero(t, s.Place(Hash{1}))
}
