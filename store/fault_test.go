package store

import (
	"testing"

	"decree/disk"
	"decree/disk/disktest"

	"github.com/stretchr/testify/require"
)

// memDir opens a directory of a fresh disk in memory.
func memDir(t testing.TB) (*disktest.Mem, disk.Dir) {
	t.Helper()
	m := disktest.NewMem()
	d, err := m.MkdirAll("/store", 0o700)
	require.NoError(t, err)
	return m, d
}

// countSyncs returns d with its flushes counted in n.
func countSyncs(d disk.Dir, n *int) disk.Dir {
	return disktest.InjectDir(d, func(s disktest.Step) disktest.Action {
		if s.Op == "Sync" || s.Op == "FileSync" {
			*n++
		}
		return disktest.Action{}
	})
}
