//go:build unix

package queue

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
)

// TestStateAfterAPowerLoss: whatever of the last write came to the disk, the state can be read,
// and is the one before it or the new one. XFS leaves a file that is renamed into its place
// and was not flushed empty.
func TestStateAfterAPowerLoss(t *testing.T) {
	u := &underWay{Name: "a.md", ID: "2026112107015900-0", Record: "2026112107015900-0"}
	for seed := range uint64(50) {
		m := disktest.NewMem()
		store, err := m.OpenRoot("/")
		require.NoError(t, err)
		s := &state{Version: stateVersion, UnderWay: []*underWay{u}}
		require.NoError(t, s.write(store))
		s.over(u)
		s.Last = "2026112107015900"
		require.NoError(t, s.write(store))
		after, err := m.Crash(rand.New(rand.NewPCG(1, seed))).OpenRoot("/")
		require.NoError(t, err)
		found, err := readState(after)
		require.NoError(t, err, "seed %d", seed)
		require.NotEqual(t, len(found.UnderWay) == 0, found.Last == "", "seed %d: %+v", seed, found)
	}
}
