//go:build unix

package recorder

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/runner"
)

// diesInPlace is a decree that runs a command in place, which writes theirs/mine, and is killed meanwhile. leader is the command's.
func (b *bench) diesInPlace(leader runner.Leader) {
	died := false
	b.disk = disktest.Inject(disk.OS, func(disktest.Step) disktest.Action { return disktest.Action{Die: died} })
	r := b.outsider()
	b.disk = nil
	defer r.Close()
	r.execute = func(_ context.Context, c runner.Command) (runner.Result, error) {
		require.NoError(b.t, c.Starting(leader))
		b.write("theirs/mine", "mine\n")
		died = true
		return runner.Result{}, errors.New("killed")
	}
	_, err := r.Run(context.Background(), command(b))
	require.Error(b.t, err)
}

// TestDiesBesideAnIsolatedRun: what a decree that is killed beside an isolated run did in place is recorded before the
// work of that is published: else the one would count as a part of the other, and go with it.
func TestDiesBesideAnIsolatedRun(t *testing.T) {
	for name, publish := range map[string]IsolatedOptions{"auto": {Auto: true}, "queued": {Queued: true}} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			b := newBench(t)
			b.write("ours/work", "")
			b.write("theirs/mine", "")
			b.checkpoint(CheckpointOptions{})
			(&sweep{bench: b, t: t}).age()
			null, err := os.Open(os.DevNull)
			require.NoError(t, err)
			defer null.Close()
			r := b.open()
			defer r.Close()
			publish.Copy = !overlays()
			isolate := func() error {
				res, err := r.RunIsolated(ctx, RunOptions{Args: []string{"sh", "-c", "echo did >>ours/work"}, Dir: b.root, Stdin: null, Env: os.Environ(),
					Freed: func() { b.diesInPlace(runner.Leader{PID: 1 << 30, PGID: 1 << 30}) }}, publish)
				if err == nil && !publish.Auto {
					_, err = r.Publish(ctx, PublishOptions{Ref: res.Record.ID, Unasked: true})
				}
				return err
			}
			require.NoError(t, r.Hold(ctx, 0, false, isolate))
			require.Equal(t, "did\n", b.read("ours/work"))
			var dead *history.Record
			list := with(b, func(r *Recorder) (*history.Listing, error) { return r.History().List(history.ListOptions{}) })
			for _, rec := range list.Records {
				if rec.Reason == history.Run && rec.Isolated == "" {
					dead = rec
				}
			}
			require.Equal(t, history.StatusInterrupted, dead.Status)
			require.Equal(t, history.Publish, list.Records[0].Reason)
			require.Empty(t, list.Records[0].Inside)
			b.revert(dead.ID)
			require.Equal(t, "did\n", b.read("ours/work"))
			require.Empty(t, b.read("theirs/mine"))
			b.requireSound()
		})
	}
}
