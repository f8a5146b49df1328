package recorder

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
)

// TestRecoveryMayBeStopped: who stops a recovery, at any of its steps, finds the tree as it was before it, and the
// next one records what the command did.
func TestRecoveryMayBeStopped(t *testing.T) {
	step, stopped := disktest.Stride(41), 0
	for n := 0; ; n += step {
		s := &sweep{bench: newBench(t), t: t}
		s.write("a", "a\n")
		s.write("d/b", "b\n")
		s.checkpoint(CheckpointOptions{})
		dead := s.commanded(func() int {
			s.write("a", "work\n")
			s.write("d/new", "new\n")
			panic("dies")
		})
		require.Panics(t, func() { _, _ = dead.Run(t.Context(), command(s.bench)) })
		dead.Close()
		left := s.tree()

		stop, cancel := context.WithCancel(t.Context())
		i := 0
		err := s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
			if i++; i == n+1 {
				cancel()
			}
			return disktest.Action{}
		}), func(r *Recorder) error { _, err := r.Recover(stop, false); return err })
		require.Equal(t, left, s.tree(), "step %d", n)
		if err != nil {
			require.ErrorIs(t, err, context.Canceled, "step %d", n)
			if strings.Contains(err.Error(), "what an earlier command left is not recorded yet") {
				require.Contains(t, project.HintOf(err), "the tree was left as it is")
				stopped++
			}
		}
		with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(t.Context(), false) })
		last := with(s.bench, func(r *Recorder) (*history.Listing, error) {
			return r.History().List(history.ListOptions{Limit: 1})
		}).Records[0]
		require.Equal(t, history.StatusInterrupted, last.Status, "step %d", n)
		require.Equal(t, 1, last.Changes.Modified, "step %d", n)
		require.Equal(t, 1, last.Changes.Created, "step %d", n)
		require.Equal(t, left, s.tree(), "step %d", n)
		s.sound()
		if i <= n {
			require.Greater(t, stopped, 1)
			return
		}
		cancel()
	}
}
