package recorder

import (
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestPruneThatDies while it writes its lines has removed some of its records, or none: none that another one needs that is still
// there. What it has left, the next prune removes.
func TestPruneThatDies(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	a := s.run(500, 0, nil).Record.ID
	undo := s.revert(a).Record.ID
	b := s.run(501, 0, nil).Record.ID
	last := s.checkpoint(CheckpointOptions{}).ID
	prune := func(d disk.Disk) error {
		return s.try(d, func(r *Recorder) error {
			_, err := r.Prune(ctx(), PruneOptions{Last: map[string]int{"run": 0, "revert": 0}})
			return err
		})
	}
	s.saved = t.TempDir()
	s.save()
	all, partly := []string{a, undo, b, last}, 0
	require.Equal(t, all, s.recordIDs())
	for torn, fired := 0, true; fired; torn += 20 {
		s.reset()
		fired = false
		_ = prune(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Op != "WriteAt" || path.Base(st.Path) != "records.jsonl" || fired || torn >= st.Size {
				return disktest.Action{}
			}
			fired = true
			return disktest.Action{Die: true, Torn: torn}
		}))
		left := s.recordIDs()
		if len(left) < len(all) && len(left) > 1 {
			partly++
		}
		require.Contains(t, left, last, "%d bytes", torn)
		if slices.Contains(left, undo) {
			require.Contains(t, left, a, "%d bytes: it needs the run that it took back", torn)
		}
		require.NoError(t, prune(disk.OS))
		require.Equal(t, []string{last}, s.recordIDs(), "%d bytes", torn)
		s.requireSound()
	}
	require.Positive(t, partly, "no write was torn between two lines")
}
