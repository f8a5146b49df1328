package recorder

import (
	"context"
	"crypto/rand"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
)

// TestPruneWithoutRoomForPacks: where a full disk keeps prune from writing packs anew, it says
// that the records are gone, and what frees the rest when there is room.
func TestPruneWithoutRoomForPacks(t *testing.T) {
	for name, cause := range map[string]error{"full": syscall.ENOSPC, "broken": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("stays", "stays")
			for range 3 {
				large := make([]byte, 300<<10)
				_, _ = rand.Read(large)
				b.write("large", string(large))
				b.checkpoint(CheckpointOptions{})
			}
			full := true
			b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if full && st.Write && strings.Contains(st.Path, "/packs/") && filepath.Base(st.Path) != "00000001.pack" {
					return disktest.Action{Err: &fs.PathError{Op: "write", Path: st.Path, Err: cause}}
				}
				return disktest.Action{}
			})
			r := b.open()
			one := int64(1)
			_, err := r.Prune(context.Background(), PruneOptions{Last: map[string]int{"manual": 1}, MaxStore: &one})
			require.ErrorIs(t, err, cause)
			require.Equal(t, "2 records were removed, and not all that no record needs any more is freed yet", project.StateOf(err))
			require.Contains(t, project.HintOf(err), "; then the same 'decree prune' frees the rest")
			require.NoError(t, r.Close())
			require.Len(t, b.recordIDs(), 1)
			full = false
			before := b.storeSize()
			_ = with(b, func(r *Recorder) (*Pruned, error) {
				return r.Prune(context.Background(), PruneOptions{Last: map[string]int{"manual": 1}, MaxStore: &one})
			})
			require.Less(t, b.storeSize(), before-500<<10)
			b.requireSound()
		})
	}
}
