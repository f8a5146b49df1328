package worktree

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

// failing makes the steps that pick wants fail.
func failing(pick func(disktest.Step) bool) func(dirs ...disk.Dir) []disk.Dir {
	return func(dirs ...disk.Dir) []disk.Dir {
		return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
			if pick(s) {
				return disktest.Action{Err: syscall.EIO}
			}
			return disktest.Action{}
		}, dirs...)
	}
}

// takesOut says whether the step takes a path out of the tree.
func takesOut(s disktest.Step) bool {
	return s.Op == "RenameNew" && strings.Contains(s.To, stagePrefix+"t1/d")
}

// TestWhatMayBeFinishedIsNotSaidToBeTakenBack refuses what says, in the store, that all was taken
// back: the next recovery may make the move then, whose record has to be there still.
func TestWhatMayBeFinishedIsNotSaidToBeTakenBack(t *testing.T) {
	was := files{"a": file("1"), "b": file("2")}
	for name, pick := range map[string]func(disktest.Step) bool{
		"no marks": func(s disktest.Step) bool {
			return takesOut(s) && strings.HasSuffix(s.Path, "/b") || s.Op == "Rename" && strings.HasPrefix(s.Path, "/r/txn/")
		},
		"a journal that stays": func(s disktest.Step) bool {
			return s.Op == "Sync" && s.Path == "/r/txn" || s.Op == "Remove" && strings.HasPrefix(s.Path, "/r/txn/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newMemRig(t, was)
			r.wrap = failing(pick)
			_, err := r.move(steps(was, files{}))
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, was, r.state())
			r.wrap = nil
			results, _, rerr := r.recover()
			require.NoError(t, rerr)
			require.Equal(t, []Result{Finished}, results)
			require.Empty(t, r.state())
			require.False(t, e.RolledBack, err)
			require.True(t, e.Moved, err)
			r.clean()
		})
	}
}

// settled is a rig whose move was made, or taken back, and whose journal is still there.
func settled(t *testing.T, back bool) *rig {
	r, _ := newMemRig(t, before)
	r.wrap = failing(func(s disktest.Step) bool {
		return back && takesOut(s) && strings.HasSuffix(s.Path, "/gone") ||
			s.Op == "Remove" && strings.HasPrefix(s.Path, "/r/txn/")
	})
	_, err := r.move(steps(before, after))
	require.Equal(t, back, err != nil, err)
	r.wrap = nil
	pending, err := Pending(r.open("txn"))
	require.NoError(t, err)
	require.Len(t, pending, 1)
	require.True(t, pending[0].Settled)
	return r
}

// TestTornAfterItWasTakenBack loses, with the power, what a command had not flushed and a transaction
// has put back: it is made whole again.
func TestTornAfterItWasTakenBack(t *testing.T) {
	for how := range 3 {
		r := settled(t, true)
		require.Equal(t, before, r.state())
		require.Greater(t, r.tearInPlace(how, false), 3)
		results, out, err := r.recover()
		require.NoError(t, err)
		require.Equal(t, []Result{RolledBack}, results)
		require.Contains(t, strings.Join(out[0].Notes, "\n"), "gone: its content was torn")
		require.Equal(t, before, r.state())
		r.clean()
	}
}

// TestOlderVersionAfterItWasFinished puts the beginning of an old content, with an old time, where the
// transaction had taken that away: it is somebody's.
func TestOlderVersionAfterItWasFinished(t *testing.T) {
	r := settled(t, false)
	root := r.open("tree")
	defer root.Close()
	for _, name := range []string{"edit", "gone"} {
		_ = root.Remove(name)
		f, err := root.Create(name, 0o644)
		require.NoError(t, err)
		_, err = io.WriteString(f, before[tree.Path(name)].data[:2])
		require.NoError(t, err)
		require.NoError(t, f.Close())
		is, err := root.Stat(name)
		require.NoError(t, err)
		require.NoError(t, root.SetMtime(name, is, 1))
	}
	results, _, err := r.recover()
	require.NoError(t, err)
	require.Equal(t, []Result{Finished}, results)
	require.Equal(t, after.with(files{"edit": file("ol"), "gone": file("go")}), r.state())
	r.clean()
}

// TestSlotsAreDeletedMeanwhile deletes what was taken out of the tree, as 'git clean -xfd' does, and has
// the next path fail: what is missing is not what another has deleted.
func TestSlotsAreDeletedMeanwhile(t *testing.T) {
	was := files{"a": file("1"), "b": file("2"), "c": link("3")}
	for name, remove := range map[string]func(string) error{
		"the slot alone": func(dir string) error { return os.Remove(dir + "/d0") },
		"all":            os.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, was)
			r.wrap = func(dirs ...disk.Dir) []disk.Dir {
				return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
					if !takesOut(s) || !strings.HasSuffix(s.Path, "/c") {
						return disktest.Action{}
					}
					require.NoError(t, remove(r.path(".decree/tmp/txn-t1")))
					return disktest.Action{Err: syscall.EIO}
				}, dirs...)
			}
			_, err := r.move(steps(was, files{}))
			r.wrap = nil
			var e *Error
			require.ErrorAs(t, err, &e)
			if e.RolledBack {
				require.Equal(t, was, r.state(), err)
			}
			_, out, err := r.recover()
			require.NoError(t, err)
			for _, o := range out {
				require.Empty(t, o.Left)
			}
			require.Equal(t, was, r.state())
			r.clean()
		})
	}
}
