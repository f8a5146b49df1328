package backup

import (
	"fmt"
	"sync"
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
