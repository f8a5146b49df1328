package backup

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
)

// TestSeveralRememberAtOnce has backups of one project to several targets end at the same moment.
func TestSeveralRememberAtOnce(t *testing.T) {
	store, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			errs[i] = Remember(store, fmt.Sprint("target", i), func(r *Remembered) { r.Timestamp = time.Unix(int64(i), 0) })
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, ReadMemory(store).Targets, len(errs))
}

// TestAMemoryThatCannotBeReadNow stays: without it a disk that is not mounted would be a target that has never had anything.
func TestAMemoryThatCannotBeReadNow(t *testing.T) {
	store, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	require.NoError(t, Remember(store, "/mnt", func(r *Remembered) { r.Generation = "2026-11-20T030000Z" }))
	broken := disktest.InjectDir(store, func(s disktest.Step) (a disktest.Action) {
		if s.Op == "Read" {
			a.Err = syscall.EIO
		}
		return a
	})
	require.ErrorIs(t, Remember(broken, "/other", func(*Remembered) {}), syscall.EIO)
	require.ErrorIs(t, Missing(broken, "/mnt"), syscall.EIO)
	require.ErrorContains(t, Missing(store, "/mnt"), "held backups of this project")
}
