package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"decree/tree"
)

// takeBack brings every path to its From state, whatever was done of the
// transaction. What another has written meanwhile is left alone; such steps
// carry the reason. An error means that a disk refused: what could not be done
// can be tried again.
func (x *txn) takeBack(ctx context.Context) error {
	for s := range x.steps.allFacts() {
		s.stayed, s.left, s.foreign = false, "", false
	}
	workers := x.t.workers()
	var errs []error
	run := func(pick func(*facts) bool, workers int, do func(*step) error) {
		errs = append(errs, x.try(ctx, x.unsettled(pick), workers, do))
	}
	errs = append(errs, x.loosen(ctx))
	run((*facts).modeOnly, workers, x.modeBack)
	run(func(s *facts) bool { return !s.modeOnly() }, workers, x.observe)
	run((*facts).hasNew, workers, x.newBack)
	made := x.unsettled((*facts).makesDir)
	slices.Reverse(made) // children before parents
	errs = append(errs, x.try(ctx, made, 1, x.unmakeDir))
	run((*facts).hadOther, 1, x.oldBack)
	run((*facts).ofDir, workers, func(s *step) error { return x.giveMode(s, wantFrom) })
	errs = append(errs, x.giveBackOthers(), x.syncDirs(ctx))
	h := newHandles(x.t.root)
	defer h.close()
	run(all, workers, func(s *step) error { return x.proveBack(h, s) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return x.lockDirs(ctx, wantFrom)
}

// proveBack hashes what is at the path in the end. What is not as it was has
// been written by another after we put it back.
func (x *txn) proveBack(h *handles, s *step) error {
	have, err := x.look(h, s, true)
	if err != nil {
		return err
	}
	if err := x.compare(s, have, s.From); err != nil {
		x.leave(s, err.Error())
	}
	return nil
}

// unsettled are the picked steps that are not left yet.
func (x *txn) unsettled(pick func(*facts) bool) []int32 {
	return x.steps.picked(func(s *facts) bool { return s.left == "" && pick(s) })
}

// hadOther says whether something of another kind, or nothing, comes back to
// the path, which has to wait for the directory above it.
func (s *facts) hadOther() bool {
	return s.kind == remove || s.kind == fileToDir || s.kind == rmdir || s.kind == dirToFile
}

// try calls do for all the steps. A step that fails is left, and the others are done
// all the same.
func (x *txn) try(ctx context.Context, todo []int32, workers int, do func(*step) error) error {
	errs := make([]error, len(todo))
	err := each(ctx, workers, len(todo), func(i int) error {
		s := x.steps.at(int(todo[i]))
		err := do(s)
		var forbidden *ForbiddenError
		switch {
		case err == nil:
		case errors.Is(err, ErrStranger):
			x.leave(s, "edited since")
		case goneDir(err):
			x.leave(s, "its directory was replaced by something else")
		case errors.As(err, &forbidden):
			x.leave(s, "another spelling of "+forbidden.Is)
		default:
			s.left, errs[i] = err.Error(), at(s, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	const most = 10 // of one cause there is no use in thousands
	var out []error
	for _, err := range errs {
		if err != nil && len(out) < most {
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// leave gives a path up: what is there is another's.
func (x *txn) leave(s *step, reason string) { s.left = reason }

// leaveForeign gives a path up that nothing of ours has come to.
func (x *txn) leaveForeign(s *step, reason string) { s.left, s.foreign = reason, true }

// modeBack gives a file its old mode again; a directory's comes at the end.
func (x *txn) modeBack(s *step) error {
	if err := x.observe(s); err != nil {
		return err
	}
	switch s.seen.at {
	case newState:
		return x.chmodFile(s, s.From)
	case nothing:
		x.leaveForeign(s, "missing")
	case other:
		x.leaveForeign(s, "edited since")
	}
	return nil
}

// newBack takes the new content out of the tree, and puts what it replaced back.
func (x *txn) newBack(s *step) error {
	if s.kind == replace {
		return x.replaceBack(s)
	}
	switch {
	case s.seen.in == other:
		return x.strangerBack(s, slotIn)
	case s.seen.at == newState && s.seen.in == nothing:
		return x.shift(s, slotIn)
	case s.seen.at == newState:
		x.leaveForeign(s, "made by another process meanwhile")
	case s.seen.at == other && s.seen.in == newState:
		x.leaveForeign(s, "edited since")
	case s.seen.at == other:
		x.leave(s, "edited since")
	}
	return nil
}

func (x *txn) replaceBack(s *step) error {
	at, in, out := s.seen.at, s.seen.in, s.seen.out
	switch {
	case at == oldState && in != other && out != other:
		return nil
	case in == oldState || in == other:
		if at == newState {
			return x.swapBack(s)
		}
		if in == other {
			return x.strangerBack(s, slotIn)
		}
		x.leave(s, sinceWhat(at))
	case out == oldState || out == other:
		if at == newState && in == nothing {
			if err := x.shift(s, slotIn); err != nil {
				return err
			}
		}
		return x.outBack(s)
	case at == newState && in == nothing, at == nothing && (!x.live || s.out != nil):
		// Whether somebody deleted the old one or its slot was lost cannot be
		// told; bringing it back loses nobody's bytes.
		return x.fromStore(s)
	case at == newState:
		x.leaveForeign(s, "made by another process meanwhile")
	default:
		x.leaveForeign(s, sinceWhat(at))
	}
	return nil
}

func sinceWhat(at what) string {
	if at == nothing {
		return "deleted since"
	}
	return "edited since"
}

// swapBack exchanges the path with what came out of it.
func (x *txn) swapBack(s *step) error {
	d, p, done, err := x.both(s)
	if err != nil {
		return err
	}
	defer done()
	err = x.exchange(s, p, d.Dir, s.To)
	if !errors.Is(err, errors.ErrUnsupported) {
		if err == nil && s.seen.at == other {
			x.leaveForeign(s, "edited since")
		}
		return err
	}
	if err := p.RenameNew(p.in, p.Dir, p.out); err != nil {
		return err
	}
	s.seen.in, s.seen.out = nothing, s.seen.in
	return x.replaceBack(s)
}

// outBack renames what was taken out to its place, if that is free.
func (x *txn) outBack(s *step) error {
	if s.seen.out == other {
		return x.strangerBack(s, slotOut)
	}
	if s.seen.at != nothing {
		if s.seen.at != oldState {
			x.leave(s, sinceWhat(s.seen.at))
		}
		return nil
	}
	if err := x.putBack(s, slotOut); err != nil {
		return err
	}
	s.seen.at, s.seen.out = oldState, nothing
	return nil
}

// putBack renames a slot's content to the path, where nothing is.
func (x *txn) putBack(s *step, from slot) error {
	d, p, done, err := x.both(s)
	if err != nil {
		return err
	}
	defer done()
	return p.RenameNew(p.name(from), d.Dir, s.Path.Name())
}

// strangerBack gives another's bytes, which were taken out for the planned
// ones, their place again, or one beside it if there is something else by now.
func (x *txn) strangerBack(s *step, from slot) error {
	holds := s.seen.holds(from)
	if s.seen.at == nothing {
		err := x.putBack(s, from)
		if err == nil {
			s.seen.at, *holds = other, nothing
			x.leaveForeign(s, "edited since")
			return nil
		}
		if !goneDir(err) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	kept, err := x.rescue(s, from)
	if err != nil {
		return err
	}
	*holds = nothing
	x.leave(s, "edited twice since; the first edit is kept as "+tree.Quote(kept))
	return nil
}

// giveBackOthers empties the slots that hold what is neither a step's old state
// nor its new one: somebody's bytes, taken out by mistake, whose way back failed.
// The slots are removed next, unread.
func (x *txn) giveBackOthers() error {
	var errs []error
	for _, n := range x.steps.picked(func(s *facts) bool { return s.seen.in == other || s.seen.out == other }) {
		s := x.steps.at(int(n))
		for _, from := range [...]slot{slotIn, slotOut} {
			if *s.seen.holds(from) == other {
				errs = append(errs, at(s, x.strangerBack(s, from)))
			}
		}
	}
	return errors.Join(errs...)
}

// rescue renames a slot's content to a name of its own, as near to the path as
// there is a directory, and flushes that.
func (x *txn) rescue(s *step, from slot) (tree.Path, error) {
	p, err := x.slots(s)
	if err != nil {
		return "", err
	}
	defer p.close()
	d, dir, err := x.nearestDir(s.Path.Parent())
	if err != nil {
		return "", err
	}
	defer d.release()
	name := fmt.Sprintf("%s%s-%d", keptPrefix, x.id, s.n)
	err = p.RenameNew(p.name(from), d.Dir, name)
	if errors.Is(err, fs.ErrExist) { // the step's other slot held a stranger's file too
		name += "-2"
		err = p.RenameNew(p.name(from), d.Dir, name)
	}
	if err != nil {
		return "", err
	}
	return dir.Join(name), d.Sync()
}

// unmakeDir removes the directory that the step made, unless it holds anything by now.
func (x *txn) unmakeDir(s *step) error {
	switch {
	case s.seen.at == other:
		x.leaveForeign(s, "edited since")
	case s.seen.at != newState:
	case x.live && s.made == 0:
		x.leaveForeign(s, "made by another process meanwhile")
	default:
		err := x.rmdir(s)
		if notEmpty(err) {
			x.leave(s, "it holds files made later")
			return nil
		}
		if err != nil {
			return err
		}
		s.seen.at = nothing
	}
	return nil
}

// oldBack puts back what was removed, or what stood in the place of another kind.
func (x *txn) oldBack(s *step) error {
	if !s.hasOld() { // a directory
		switch s.seen.at {
		case nothing:
			if err := x.mkdir(s, s.From); err != nil {
				return err
			}
			s.seen.at = oldState
		case oldState:
			return x.refit(s, s.From)
		case other, newState:
			x.leave(s, "edited since")
		}
		return nil
	}
	switch {
	case s.seen.out != nothing:
		return x.outBack(s)
	case s.seen.at == oldState:
		return nil
	case s.seen.at == nothing && (!x.live || s.out != nil): // else another deleted it before we came to it
		return x.fromStore(s)
	}
	x.leaveForeign(s, sinceWhat(s.seen.at))
	return nil
}

// refit goes on with a directory that a dead process has just made. One that was there before, or with which that had come to the end, has
// another mode, and its owner and lists are what somebody has given it.
func (x *txn) refit(s *step, e *tree.Entry) error {
	d, st, err := x.statDir(s)
	if err != nil || d == nil {
		return err
	}
	d.release()
	if isNewDirMode(st.Mode) {
		return x.fitDir(s, e)
	}
	return nil
}

// fromStore brings the old content back from the store when the slots are gone
// (.decree/tmp was deleted, or the power went), and no more than the new content,
// or nothing, is at the path.
func (x *txn) fromStore(s *step) error {
	if x.t.opt.Store == nil || s.From.Type == tree.Regular && !x.t.opt.Store.Has(s.From.SHA256) {
		x.leave(s, "its old content is not in the store")
		return nil
	}
	if err := x.restage(s); err != nil {
		return err
	}
	s.seen.out = oldState
	if s.seen.at == newState {
		if err := x.shift(s, slotIn); err != nil {
			return err
		}
	}
	return x.outBack(s)
}

// restage makes the old file or link in the slot for what was taken out. It
// gets that name when it is whole: a torn one must not pass for somebody's.
// Whose it was is known of set-user-ID and set-group-ID files alone; others get,
// as root, the directory's owner.
func (x *txn) restage(s *step) error {
	p, err := x.slots(s)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.Remove(p.draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.From.Type == tree.Symlink {
		if err = p.Symlink(s.From.Target, p.draft); err == nil {
			_, err = x.giveOwner(s, s.From, p, p.draft, nil)
		}
	} else {
		err = x.refill(s, p)
	}
	if err != nil {
		return err
	}
	return p.RenameNew(p.draft, p.Dir, p.out)
}

// refill writes the old bytes, from the store, to the step's draft. Its mode
// comes after its owner: nobody's set-user-ID file is root's for a moment.
func (x *txn) refill(s *step, p slots) error {
	r, _, err := x.t.opt.Store.Open(s.From.SHA256)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := fill(p, p.draft, s.Path, s.From, r, true)
	if err != nil {
		return err
	}
	defer f.Close()
	kept, err := x.giveOwner(s, s.From, p, p.draft, f)
	if err != nil {
		return err
	}
	mode, err := x.groupMode(s.From, p, p.draft)
	if err != nil {
		return err
	}
	if !kept || !s.From.Owner.Known {
		mode &^= tree.SpecialBits
	}
	if err := unlistAndChmod(s.From, p, p.draft, f, mode); err != nil {
		return err
	}
	return f.Sync()
}
