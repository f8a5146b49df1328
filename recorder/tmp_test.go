package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestTmpAfterOthers: what a death leaves in .decree/tmp is known for decree's own also when
// the next command is one that does not clean up.
func TestTmpAfterOthers(t *testing.T) {
	ctx := context.Background()
	step, left := 1, 0
	if testing.Short() {
		step = 4
	}
	for at := 0; ; at += step {
		s := &sweep{bench: newBench(t), t: t}
		s.write("f", "first\n")
		s.checkpoint(CheckpointOptions{})
		s.write("f", "second\n")
		n, died := 0, false
		_ = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Write {
				n++
			}
			died = died || n > at
			return disktest.Action{Die: died}
		}), func(r *Recorder) error {
			_, err := r.Restore(ctx, RestoreOptions{Ref: "last", Yes: true})
			return err
		})
		if !died {
			require.Positive(t, left)
			return
		}
		tmp, err := os.ReadDir(filepath.Join(s.root, ".decree/tmp"))
		require.NoError(t, err)
		left += len(tmp)
		with(s.bench, func(r *Recorder) (*Collected, error) { return r.Gc(ctx) })
		with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(ctx, false) })
		require.NoDirExists(t, filepath.Join(s.root, ".decree/aside"), "step %d", at)
		require.NoFileExists(t, filepath.Join(s.base, "store", s.storeID(), "lock.json"), "step %d", at)
	}
}
