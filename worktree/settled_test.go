package worktree

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
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
