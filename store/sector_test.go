package store

import (
	"testing"

	"decree/disk/disktest"

	"github.com/stretchr/testify/require"
)

// TestUnreadableSector has a disk that cannot read a sector of a pack, each in turn, or the index or its log: nothing
// but what lies there is lost, that is told as damage, nothing is cut, and all of it can be stored again.
func TestUnreadableSector(t *testing.T) {
	all := [][]byte{noise(1, 6000), noise(2, 30000), noise(3, 6000)}
	states := built(t, Options{}, all[:1], all[1:2], all[2:])
	whole, last := states[2], int64(len(states[2][firstPack]))
	for at := int64(0); at < last; at += 4 << 10 {
		for _, index := range []bool{true, false} {
			state := whole
			if !index {
				state = state.with(logName, nil)
			}
			unreadableSector(t, state, all, firstPack, at, at == 0 && index)
		}
	}
	unreadableSector(t, whole, all, logName, 0, true)
	folded := built(t, Options{FoldAt: 1}, all[:1], all[1:2], all[2:])[2]
	require.Contains(t, folded, baseName)
	unreadableSector(t, folded.with(logName, nil), all, firstPack, 8<<10, false)
}

func unreadableSector(t *testing.T, state files, all [][]byte, name string, at int64, mayBeWhole bool) {
	t.Helper()
	_, d := state.disk(t)
	bad := disktest.InjectDir(d, func(s disktest.Step) disktest.Action { return disktest.Unreadable(s, "/store/"+name, at) })
	s := openStore(t, bad, Options{})
	lost := map[Hash]bool{}
	for _, b := range all {
		if err := s.Verify(sum(b)); err != nil {
			require.True(t, IsLost(err), "sector %d of %s: %v", at, name, err)
			lost[sum(b)] = true
		}
	}
	require.LessOrEqual(t, len(lost), 2, "sector %d", at)
	problems, err := s.Check(t.Context())
	require.NoError(t, err, "sector %d of %s", at, name)
	if !mayBeWhole {
		require.NotEmpty(t, lost)
		require.NotEmpty(t, problems)
	}
	_, err = s.Rebuild(t.Context())
	require.NoError(t, err)
	w := openWriter(t, s)
	for _, b := range all {
		_, err := w.PutBytes(b)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	for _, b := range all {
		require.Equal(t, b, content(t, s, sum(b)), "stored again, sector %d", at)
	}
	res, err := s.Compact(t.Context(), func(h Hash) bool { return !lost[h] && h != sum(all[0]) }, CompactOptions{Force: true})
	require.NoError(t, err)
	if name == firstPack {
		if at > int64(len(all[0])) {
			require.Equal(t, []string{"00000001.pack"}, res.Kept, "sector %d", at)
		}
		pack := snapshotOf(t, d)[firstPack]
		require.GreaterOrEqual(t, len(pack), len(state[firstPack]), "nothing is cut, sector %d", at)
		require.Equal(t, state[firstPack], pack[:len(state[firstPack])])
	}
}
