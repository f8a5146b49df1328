package worktree

import (
	"context"
	"errors"
)

// Result is what became of a transaction that a process had left.
type Result uint8

const (
	// Finished: every path is in its To state.
	Finished Result = iota + 1
	// RolledBack: every path is in its From state, but for those in Outcome.Left.
	RolledBack
)

func (r Result) String() string {
	switch r {
	case Finished:
		return "finished"
	case RolledBack:
		return "taken back"
	}
	return "not settled"
}

// Recover finishes what j's process left, if every content that it needs is
// there and nobody has changed any of its paths; otherwise it takes it back. It
// looks at each path and slot and believes nothing else, so it may itself be
// interrupted, anywhere and any number of times.
//
// A path that is neither in its old state nor in its new one is left alone and
// named in Outcome.Left. A damaged journal is set aside and never acted on, one of a
// newer version left where it is: the error is *JournalError. Another error, an *Error, means that the journal
// still waits.
func (t *Tree) Recover(ctx context.Context, j Journal) (Result, *Outcome, error) {
	if j.Err != nil && j.Err.Newer {
		return 0, nil, j.Err
	}
	if j.Err != nil {
		return 0, nil, j.setAside()
	}
	x := &txn{t: t, id: j.ID, meta: j.Meta, steps: j.steps, journals: j.dir, h: newHandles(t.root), sp: markEarly(j.steps), ext: j.ext}
	defer x.close()
	if st, err := j.dir.Stat(j.ID + j.ext); err == nil {
		x.began = st.Mtime
	}
	result, err := x.recover(ctx)
	if err != nil {
		if _, ok := errors.AsType[*Error](err); !ok {
			err = &Error{Phase: "recover", Path: pathOf(err), Err: err, Moved: true, Left: x.leftOver()}
		}
		return 0, nil, err
	}
	_ = x.emptySlots() // all is settled and stored: the owner may need the room. clean names what stays.
	out := x.outcome()
	if j.Commit != nil {
		if err := j.Commit(result, out); err != nil {
			return result, out, err
		}
	}
	if err := x.clean(); err != nil {
		return result, out, &Error{Phase: "clean", Err: err, Moved: true}
	}
	return result, out, nil
}

// setAside gives a damaged journal another name. What it staged stays too.
func (j *Journal) setAside() error {
	err := *j.Err
	kept := j.ID + extDamaged
	if rerr := j.dir.RenameNew(j.ID+j.ext, j.dir, kept); rerr != nil {
		return errors.Join(&err, rerr)
	}
	err.Kept = kept
	return errors.Join(&err, j.dir.Sync())
}

// recover settles the transaction and marks its journal with the result.
func (x *txn) recover(ctx context.Context) (Result, error) {
	if err := x.openStage(false); err != nil {
		return 0, err
	}
	switch x.ext {
	case extDone:
		return Finished, x.emptyOfOthers(ctx, wantTo)
	case extUndone:
		return RolledBack, x.emptyOfOthers(ctx, wantFrom)
	}
	if x.ext == extJournal {
		ok, err := x.finish(ctx)
		if err != nil {
			return 0, err
		}
		if ok {
			return Finished, x.mark(extDone)
		}
		if err := x.mark(extBack); err != nil {
			return 0, err
		}
	}
	if err := x.takeBack(ctx); err != nil {
		return 0, err
	}
	return RolledBack, x.mark(extUndone)
}

// emptyOfOthers gives back what is somebody's in the slots of a settled
// transaction: they are removed next, and only what is a step's own may be. What
// was torn after it had been put back is made whole. Directories have the modes that are wanted already,
// and get them again: these may forbid us to look into them.
func (x *txn) emptyOfOthers(ctx context.Context, want wanted) error {
	if err := x.loosen(ctx); err != nil {
		return err
	}
	if err := x.each(ctx, func(s *facts) bool { return s.hasNew() || s.hasOld() }, x.observe); err != nil {
		return err
	}
	if err := x.each(ctx, func(s *facts) bool { return s.torn }, x.remake); err != nil {
		return err
	}
	if err := x.giveBackOthers(); err != nil {
		return err
	}
	return x.upward(ctx, (*facts).ofDir, func(s *step) error {
		mode, ok := s.mode(want)
		if !ok || !x.lacksRights(mode) {
			return nil
		}
		d, st, err := x.statDir(s)
		if err != nil || d == nil {
			return err
		}
		d.release()
		if st.UID != x.uid || !x.ownMode(s, st.Mode) {
			return nil // somebody's since
		}
		return x.setMode(s, want)
	})
}

// remake brings the old content of a settled step from the store, durably.
func (x *txn) remake(s *step) error {
	if err := x.fromStore(s); err != nil {
		return err
	}
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return err
	}
	defer d.release()
	return d.Sync()
}

// finish goes forward if that is possible and says whether it came to the end.
// What stops it on the way is no error: then everything is taken back.
func (x *txn) finish(ctx context.Context) (bool, error) {
	if err := x.loosen(ctx); err != nil {
		return false, err
	}
	if err := x.observeAll(ctx); err != nil {
		return false, err
	}
	for s := range x.steps.allFacts() {
		if !s.canFinish() {
			return false, nil
		}
	}
	err := x.forward(ctx)
	if ctx.Err() != nil {
		return false, err
	}
	if err != nil {
		x.note("it could not be finished and is taken back: " + err.Error())
	}
	return err == nil, nil
}

// canFinish says whether the step is done, or all that it still needs is there.
func (s *facts) canFinish() bool {
	at, in, out := s.seen.at, s.seen.in, s.seen.out
	if at == other || in == other || out == other {
		return false
	}
	switch s.kind {
	case create:
		return at == newState || in == newState
	case replace:
		return at == newState || in == newState && (at == oldState && out == nothing || at == nothing && (out == oldState || s.torn))
	case remove:
		return at == nothing || out == nothing
	case dirToFile:
		return at == newState || in == newState
	case fileToDir:
		return at == newState || at == nothing || out == nothing
	case chmodFile, chmodDir:
		return at != nothing
	}
	return true // a directory that is made or removed
}
