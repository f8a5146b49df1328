package recorder

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/store"
	"decree/tree"
)

// keepers are the operations that free or mend what a store holds.
var keepers = map[string]func(r *Recorder) error{
	"prune": func(r *Recorder) error {
		_, err := r.Prune(context.Background(), PruneOptions{Last: map[string]int{"run": 2, "auto": 1}})
		return err
	},
	"gc": func(r *Recorder) error { _, err := r.Gc(context.Background()); return err },
	"forget": func(r *Recorder) error {
		_, err := r.Forget(context.Background(), ForgetOptions{Paths: []tree.Path{"conf"}, Yes: true})
		return err
	},
	"repair": func(r *Recorder) error { _, err := r.Repair(context.Background()); return err },
}

// prepareHousekeeping makes records that a prune removes and records that stay, a secret, and
// a record of whose directory a file is missing.
func prepareHousekeeping(s *sweep) {
	s.ids = secretBench(s.bench)
	for i := range int64(3) {
		s.run(500+i, 0, nil)
		s.checkpoint(CheckpointOptions{Reason: "auto"})
	}
	require.NoError(s.t, os.Remove(filepath.Join(s.root, ".decree", "runs", s.ids[1], diffFile)))
}

// TestSweepSecond lets an operation that keeps the store in order fail or die at its steps, and
// another one follow at once, as a user's next command does: the tree is as it was, what stays in
// the history is whole, and what says that it is forgotten is nowhere.
func TestSweepSecond(t *testing.T) {
	step, faults := disktest.Stride(97), 0
	for first, do := range keepers {
		for second, then := range keepers {
			t.Run(first+", then "+second, func(t *testing.T) {
				op := operation{first, prepareHousekeeping, func(_ *sweep, r *Recorder) error { return do(r) }, judgeUntouched}
				s := begin(t, op, int64(seedOf(t, 1)))
				for i, cause := range []error{syscall.EIO, syscall.ENOSPC, nil} {
					for n, fired := s.rng.Intn(step)*i/2, true; fired; n += step {
						if fired = s.fault(n, cause); !fired {
							break
						}
						faults++
						with(s.bench, func(r *Recorder) (any, error) { return nil, then(r) })
						s.judgeSecond()
					}
				}
			})
		}
	}
	require.GreaterOrEqual(t, faults, len(keepers)*len(keepers), "each pair has had a fault")
}

// fault does the operation with a fault at its n-th step, or with nil its death there, and leaves
// things as they are then; false: it did not come so far.
func (s *sweep) fault(n int, cause error) (fired bool) {
	s.t.Helper()
	s.reset()
	i := 0
	err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if !st.Write {
			return disktest.Action{}
		}
		i++
		if i-1 != n {
			return disktest.Action{}
		}
		fired = true
		if cause == nil {
			return disktest.Action{Die: true, Torn: s.rng.Intn(st.Size + 1)}
		}
		return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: cause}}
	}), func(r *Recorder) error { return s.op.do(s, r) })
	if !fired {
		require.NoError(s.t, err)
	}
	return fired
}

// judgeSecond holds what is left after the second operation against what there was.
func (s *sweep) judgeSecond() {
	s.t.Helper()
	s.settle(0)
	require.Equal(s.t, s.before, s.tree())
	require.Empty(s.t, s.fresh(), "a record of nothing")
	list := with(s.bench, func(r *Recorder) (*store.Forgotten, error) { return store.ReadForgotten(r.project.Store) })
	require.Empty(s.t, list.Pending, "begun and not finished")
	if len(list.Contents) > 0 {
		require.Empty(s.t, s.holds("hunter2"), "it is forgotten")
	}
	with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
	s.sound()
	s.goOn()
}
