//go:build unix

package recorder

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
)

// TestCopyOfARecordBesideARun has the readable copy of a checkpoint that is made beside a run
// fail to be written, once at each step: if the record is there, the next writing command has
// written its copy again, also after the run has ended.
func TestCopyOfARecordBesideARun(t *testing.T) {
	failed := 0
	for n, fired := 0, true; fired; n++ {
		fired = false
		b := newBench(t)
		var beside error
		run := b.commanded(func() int {
			seen, armed := 0, false
			b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if !armed || !strings.Contains(st.Path, "/.decree/runs") {
					return disktest.Action{}
				}
				seen++
				fired = fired || seen == n+1
				return disktest.Action{Err: map[bool]error{true: syscall.EIO}[seen == n+1]}
			})
			r := b.outsider()
			defer r.Close()
			armed = true
			_, beside = r.Checkpoint(context.Background(), CheckpointOptions{})
			armed, b.disk = false, nil
			return 0
		})
		_, err := run.Run(context.Background(), command(b))
		require.NoError(t, err)
		require.NoError(t, run.Close())
		if beside != nil {
			failed++
			t.Log(n, beside)
		}
		b.checkpoint(CheckpointOptions{})
		list := with(b, func(r *Recorder) (*history.Listing, error) { return r.History().List(history.ListOptions{}) })
		require.Empty(t, list.Missing, "EIO at step %d: %v", n, beside)
		require.Empty(t, list.Damaged)
	}
	require.Positive(t, failed)
}
