package recorder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
)

// died ends the process at the step of that number of a run that fails, and says
// whether it came so far.
func (s *sweep) died(at int) bool {
	i := 0
	_ = s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
		i++
		return disktest.Action{Die: i == at}
	}), func(r *Recorder) error {
		return s.execute(r, 3, shell(`echo work >a; echo more >n; rm gone; exit 3`))
	})
	return i >= at
}

// TestFreeingBesideWhatWaits frees all that can be freed before anything is recovered
// of a run that died at any of its steps: the recovery lacks nothing.
func TestFreeingBesideWhatWaits(t *testing.T) {
	ctx := context.Background()
	step, waited := disktest.Stride(17), 0
	for at := 1; ; at += step {
		s := &sweep{bench: newBench(t), t: t}
		for _, name := range []string{"a", "gone"} {
			for i := range 3 {
				s.write(name, noise(i+at, 20_000))
				s.checkpoint(CheckpointOptions{})
			}
		}
		first := s.tree()
		if !s.died(at) {
			require.Positive(t, waited)
			return
		}
		r := s.open()
		open, _, err := r.history.ListOpen()
		require.NoError(t, err)
		waited += len(open)
		cap := int64(1)
		_, err = r.Prune(ctx, PruneOptions{Last: map[string]int{"manual": 1}, MaxStore: &cap})
		require.NoError(t, err, "step %d", at)
		require.NoError(t, r.Close())
		with(s.bench, func(r *Recorder) (*Collected, error) { return r.Gc(ctx) })
		with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(ctx, false) })
		problems := with(s.bench, func(r *Recorder) ([]Problem, error) { return r.Verify(ctx, VerifyOptions{All: true}) })
		require.Empty(t, problems, "step %d", at)
		last := with(s.bench, func(r *Recorder) (*history.Listing, error) {
			return r.History().List(history.ListOptions{Limit: 1})
		}).Records[0]
		if last.Reason == history.Run && last.Status == history.StatusInterrupted {
			s.revert(last.ID)
		}
		require.Equal(t, first, s.tree(), "step %d", at)
	}
}

// TestFullDiskCanBeLeft: the store's disk is full when a failed run is to be put back,
// and nothing can be written, until prune and gc have made room.
func TestFullDiskCanBeLeft(t *testing.T) {
	ctx := context.Background()
	s := &sweep{bench: newBench(t), t: t}
	small := filepath.Join(s.base, "store")
	require.NoError(t, os.Mkdir(small, 0o700))
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=6m"); err != nil {
		t.Skip("needs root: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	for i := range 4 {
		s.write("f", noise(i, 400_000))
		s.checkpoint(CheckpointOptions{})
	}
	for _, name := range []string{"f", "a", "gone"} {
		s.write(name, "small\n")
		s.checkpoint(CheckpointOptions{})
	}
	first := s.tree()
	fill := func() { fillDisk(t, small) }
	filled := false
	err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if _, err := os.Stat(s.mark()); err == nil && !filled {
			filled = true
			fill()
		}
		return disktest.Action{}
	}), func(r *Recorder) error {
		return s.execute(r, 3, shell(`head -c 1200000 /dev/urandom >f; rm gone; echo >>"$DECREE_TEST_MARK"; exit 3`))
	})
	require.True(t, filled)
	require.ErrorIs(t, err, syscall.ENOSPC)
	try := func(op func(r *Recorder) error) error {
		r, err := s.openOn(disk.OS)
		if err != nil {
			return err
		}
		defer r.Close()
		return op(r)
	}
	recovers := func(r *Recorder) error { _, err := r.Recover(ctx, false); return err }
	fill()
	require.ErrorIs(t, try(recovers), syscall.ENOSPC)

	require.NoError(t, try(func(r *Recorder) error {
		_, err := r.Prune(ctx, PruneOptions{Last: map[string]int{"manual": 1}})
		return err
	}))
	require.NoError(t, try(func(r *Recorder) error { _, err := r.Gc(ctx); return err }))
	require.NoError(t, try(recovers))
	s.revert("last")
	require.Equal(t, first, s.tree())
	with(s.bench, func(r *Recorder) (*RunResult, error) {
		return r.Run(ctx, RunOptions{Args: []string{"true"}, Dir: s.root})
	})
	for _, c := range with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(ctx) }) {
		require.Equal(t, OK, c.Level, c.Text)
	}
	info, err := os.Stat(filepath.Join(with(s.bench, func(r *Recorder) (*project.Project, error) { return r.project, nil }).StorePath, reserveFile))
	require.NoError(t, err)
	require.EqualValues(t, reserveSize, info.Size())
}

// TestRecordAfterDiskFilledInMove: the disk of both the tree and the store fills up
// when the files are moved and their record is not written yet. What the move displaced
// is in the store, so its slots give the room for the record; where they have too little,
// the record is written without its plain files.
func TestRecordAfterDiskFilledInMove(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		dies    bool
		room    bool // for the plain files
	}{
		"goes on":                    {"seq -f %0200g 1700 >f", false, true},
		"dies":                       {"seq -f %0200g 1700 >f", true, true},
		"nothing is displaced":       {"rm g", false, false},
		"nothing is displaced, dies": {"rm g", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweep{bench: newBench(t), t: t}
			small := t.TempDir()
			if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=6m"); err != nil {
				t.Skip("needs root: ", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
			s.base, s.root = small, filepath.Join(small, "tree")
			require.NoError(t, os.Mkdir(s.root, 0o755))
			s.write("f", "small\n")
			s.write("g", strings.Repeat(strings.Repeat("g", 200)+"\n", 1000))
			first := s.tree()
			require.NoError(t, s.try(disk.OS, func(r *Recorder) error {
				return s.execute(r, 3, shell(c.command))
			}))
			settled := false
			s.said = nil
			err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if done, _ := filepath.Glob(filepath.Join(small, "store", "*", "txn", "*.done")); len(done) > 0 && !settled {
					settled = true
					fillDisk(t, small)
					ballast := filepath.Join(small, "ballast")
					info, err := os.Stat(ballast)
					require.NoError(t, err)
					require.NoError(t, os.Truncate(ballast, info.Size()-96<<10)) // enough for the lock, not for the files
					return disktest.Action{Die: c.dies}
				}
				return disktest.Action{}
			}), func(r *Recorder) error {
				_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}})
				return err
			})
			require.True(t, settled)
			if c.dies {
				require.ErrorIs(t, err, disktest.ErrDead)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.room, len(s.said) == 0, "%v", s.said)
			}
			with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
			require.Equal(t, first, s.tree())
			last := with(s.bench, func(r *Recorder) (*history.Listing, error) {
				return r.History().List(history.ListOptions{Limit: 1})
			}).Records[0]
			require.Equal(t, history.Revert, last.Reason)
			require.Equal(t, history.StatusSucceeded, last.Status)
			_, err = os.Stat(filepath.Join(s.root, ".decree/runs", last.ID, "changes.diff"))
			require.Equal(t, c.room, err == nil, "%v", err)
			require.NoError(t, os.Remove(filepath.Join(small, "ballast")))
			with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
			s.sound()
		})
	}
}

// TestMoveOnFullDisk: on a full disk that has the store, or the tree too, all that moves the
// tree finds the room for its journal and its record in the reserve, which is whole again
// once there is room. It does so after a death, too.
func TestMoveOnFullDisk(t *testing.T) {
	ctx := context.Background()
	last := MoveOptions{Refs: []string{"last"}}
	grows := shell(`head -c 900000 /dev/urandom >big; echo more >>a; rm gone`)
	for name, c := range map[string]struct {
		before func(s *sweep, r *Recorder) error // with room
		op     func(s *sweep, r *Recorder) error // without
	}{
		"revert": {
			func(s *sweep, r *Recorder) error { return s.execute(r, 0, grows) },
			func(_ *sweep, r *Recorder) error { _, err := r.Revert(ctx, last); return err },
		},
		"apply": {
			func(s *sweep, r *Recorder) error {
				if err := s.execute(r, 0, grows); err != nil {
					return err
				}
				return s.execute(r, 3, shell(`rm big; exit 3`))
			},
			func(_ *sweep, r *Recorder) error { _, err := r.Apply(ctx, last); return err },
		},
		"restore": {
			func(s *sweep, r *Recorder) error { return s.execute(r, 0, grows) },
			func(_ *sweep, r *Recorder) error {
				_, err := r.Restore(ctx, RestoreOptions{Ref: "last~1", Yes: true})
				return err
			},
		},
		"put-back": {
			func(*sweep, *Recorder) error { return nil },
			func(s *sweep, r *Recorder) error {
				fill := fmt.Sprintf("cat /dev/zero >>'%s/ballast'; ", s.base)
				require.NoError(s.t, os.Truncate(filepath.Join(s.base, "ballast"), 4<<20))
				return s.execute(r, 3, shell("seq 20000 >f; rm gone; "+fill+"exit 3"))
			},
		},
	} {
		for _, both := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tree too=%v", name, both), func(t *testing.T) {
				s := &sweep{bench: newBench(t), t: t}
				small := t.TempDir()
				if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=8m"); err != nil {
					t.Skip("needs root: ", err)
				}
				t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
				s.base = small
				if both {
					s.root = filepath.Join(small, "tree")
					require.NoError(t, os.Mkdir(s.root, 0o755))
				}
				s.write("a", "a\n")
				s.write("gone", "gone\n")
				s.checkpoint(CheckpointOptions{})
				require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return c.before(s, r) }))
				fillDisk(t, small)
				require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return c.op(s, r) }))
				fillDisk(t, small)
				require.NoError(t, s.try(disk.OS, func(r *Recorder) error { _, err := r.Recover(ctx, false); return err }))
				require.NoError(t, s.try(disk.OS, func(r *Recorder) error { _, err := r.Repair(ctx); return err }))
				require.NoError(t, os.Remove(filepath.Join(small, "ballast")))
				s.revert("last")
				s.sound()
				info, err := os.Stat(filepath.Join(small, "store", s.storeID(), reserveFile))
				require.NoError(t, err)
				require.EqualValues(t, reserveSize, info.Size())
			})
		}
	}
}

// TestReserveForPrune: what a move has used up of the reserve in vain is not all of it. Prune
// and gc still begin.
func TestReserveForPrune(t *testing.T) {
	ctx := context.Background()
	s := &sweep{bench: newBench(t), t: t}
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("needs root: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	s.base = small
	for i := range 3 {
		s.write("f", noise(i, 100_000))
		s.checkpoint(CheckpointOptions{})
	}
	fillDisk(t, small)
	full := false
	err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if strings.Contains(st.Path, "/txn/") && st.Write && !full {
			full = true
			fillDisk(t, small) // somebody else is quicker
			require.NoError(t, os.Rename(filepath.Join(small, "ballast"), filepath.Join(small, "theirs")))
		}
		return disktest.Action{}
	}), func(r *Recorder) error {
		_, err := r.Restore(ctx, RestoreOptions{Ref: "last~2", Yes: true})
		return err
	})
	require.True(t, full)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, s.try(disk.OS, func(r *Recorder) error {
		_, err := r.Prune(ctx, PruneOptions{Last: map[string]int{"manual": 1}})
		return err
	}))
	require.Len(t, s.recordIDs(), 1)
}

// fillDisk leaves no room on the disk of dir.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "ballast"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer f.Close()
	for n := 64 << 10; n > 0; {
		if _, err := f.Write(make([]byte, n)); err != nil {
			n /= 2
		}
	}
}

// TestMountInDecree: a file system that somebody has mounted in .decree keeps records'
// files out of .decree/runs, and no record open; without it they come back.
func TestMountInDecree(t *testing.T) {
	for _, name := range []string{"tmp", "runs"} {
		t.Run(name, func(t *testing.T) {
			s := &sweep{bench: newBench(t), t: t}
			s.write("f", "first\n")
			first := s.tree()
			require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 0, shell("echo second >f")) }))
			at := filepath.Join(s.root, ".decree", name)
			if err := syscall.Mount("tmpfs", at, "tmpfs", 0, "size=6m"); err != nil {
				t.Skip("needs root: ", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
			s.said = nil
			require.NoError(t, s.try(disk.OS, func(r *Recorder) error {
				_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}})
				return err
			}))
			require.Equal(t, 1, strings.Count(strings.Join(s.said, "\n"), syscall.EXDEV.Error()), s.said)
			require.Equal(t, first, s.tree())
			s.said = nil
			require.NoError(t, s.try(disk.OS, func(r *Recorder) error {
				_, err := r.SetLabel(context.Background(), "here", "last")
				return err
			}))
			require.Empty(t, s.said, "what makes no record says nothing of it")
			require.NoError(t, s.try(disk.OS, func(r *Recorder) error {
				checks, err := r.Repair(context.Background())
				told := func(c Check) bool { return c.Level == Error && strings.Contains(c.Text, syscall.EXDEV.Error()) }
				require.True(t, slices.ContainsFunc(checks, told), "%v", checks)
				require.False(t, slices.ContainsFunc(checks, func(c Check) bool { return c.Fixed }), "%v", checks)
				return err
			}))
			require.NoError(t, syscall.Unmount(at, 0))
			with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
			s.sound()
			s.revert("last")
			require.NotEqual(t, first, s.tree())
		})
	}
}

// TestReserveAtAQuota: a quota, which no look at the disk tells of ahead, is used up; what moves
// the tree then finds room in the reserve, of which the rest is made again when there is room.
func TestReserveAtAQuota(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write("f", "one\n")
	s.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", "echo two >f"} })
	r := s.open()
	reserve := filepath.Join(r.Project().StorePath, reserveFile)
	require.NoError(t, r.Close())
	store := filepath.Dir(reserve)
	size := func() int64 {
		info, err := os.Stat(reserve)
		require.NoError(t, err)
		return info.Size()
	}
	require.Equal(t, int64(reserveSize), size())
	refused := 0
	quota := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if strings.HasPrefix(st.Op, "Write") && strings.HasPrefix(st.Path, store) && size() >= reserveSize {
			refused++
			return disktest.Action{Err: syscall.EDQUOT}
		}
		return disktest.Action{}
	})
	require.NoError(t, s.try(quota, func(r *Recorder) error {
		_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}, Yes: true})
		return err
	}))
	require.Positive(t, refused)
	require.Equal(t, "one\n", s.read("f"))
	s.checkpoint(CheckpointOptions{})
	require.Equal(t, int64(reserveSize), size(), "made again")
}
