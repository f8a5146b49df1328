package cmd

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup"
	"decree/recorder"
	"decree/worktree"
)

// TestATreeThatIsNotWhole: what a part of a restore says of itself is not said of the whole, whose records and earlier parts are there.
func TestATreeThatIsNotWhole(t *testing.T) {
	s := &session{}
	full := errors.New("no space left on device")
	for _, c := range []struct {
		there int
		err   error
		want  string
	}{
		{32768, &worktree.Error{Phase: "keep", Path: "f", Err: full}, "f: no space left on device; the records are restored, and of the tree 32,768 paths are there so far"},
		{32768, &worktree.Error{Phase: "move", Err: context.Canceled, Moved: true, RolledBack: true}, "interrupted; the records are restored, and of the tree 32,768 paths are there so far"},
		{1, &recorder.BeginError{Err: context.Canceled}, "interrupted; the records are restored, and of the tree 1 path is there so far"},
		{0, &recorder.BeginError{Err: context.Canceled}, "interrupted; the records are restored, and the tree is not whole yet"},
		{2, &recorder.ConflictError{Verb: "restore", Items: nil}, "0 paths are in the way; the records are restored, and of the tree 2 paths are there so far"},
	} {
		err := notThere(&recorder.FillError{There: c.there, Err: c.err})
		require.Equal(t, c.want, s.describe(err))
		require.Contains(t, s.hintFor(err), "'decree backup restore' there goes on with the tree")
	}
	r := &restore{session: s}
	require.Equal(t, "interrupted; the records are restored, and the tree is as it was", s.describe(r.withoutTree(&recorder.BeginError{Err: context.Canceled})))
}

// TestWhatFreesPacks: that a generation cannot be read, for which packs stay, comes with all that can be done about it.
func TestWhatFreesPacks(t *testing.T) {
	text := unreadArchive(&backup.Prune{Unread: "2026-11-21T070000Z"})
	require.Contains(t, text, "a sound copy of archives/2026-11-21T070000Z.zip is put back")
	require.Contains(t, text, "no rule of backup.retention keeps that generation")
}
