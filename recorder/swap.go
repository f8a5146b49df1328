package recorder

import (
	"cmp"
	"context"
	"slices"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/tree"
)

// finishSwap does the rest of a replacement of the whole project that a dead process has decided on.
// The caller has the lock.
func (r *Recorder) finishSwap() error {
	finished, err := r.project.FinishSwap(r.swapped)
	if finished {
		r.note("a restore of a backup that had been interrupted was finished; the files of the tree are as they were")
		if in, err := project.ReadInto(r.project.Disk, r.project.Root); err == nil && in != nil {
			why := in.Unfinished(r.project.Root)
			r.note("%s: %s", why.Msg, why.Advice)
		}
	}
	return err
}

// Holds says whether the store has all of a tree.
func (r *Reader) Holds(id tree.Hash) bool {
	for it, err := range (tree.Reader{From: r.history.Directories()}).Entries(id) {
		if err != nil || it.Entry.Type == tree.Regular && !r.store.Has(it.Entry.SHA256) {
			return false
		}
	}
	return true
}

// swapped sees what a swap has put into the store, and writes .decree/runs from it.
func (r *Recorder) swapped() error {
	r.own.forget()
	r.history.Refresh()
	if err := r.reopen(); err != nil {
		return err
	}
	if err := r.project.EnsureDecree(); err != nil {
		return err
	}
	_, err := r.history.Repair()
	return err
}

// Swap replaces all that the project has by what build makes in the swap's directories. Once that is built, prepare is
// called, which keeps what is here. An error of either leaves everything as it was. While a command works in a run it is
// refused: what that run has recorded when it began, and needs to be put back, would be gone.
// done says that all is in its place: then an error is about what follows, and nothing may be taken back for it.
func (r *Recorder) Swap(ctx context.Context, detail string, build func(s *project.Swap) (store, decree []string, from string, err error), prepare func() error) (done bool, err error) {
	x, err := r.enterToMove(ctx, opSwap)
	if err != nil {
		return false, err
	}
	defer x.close()
	if l := x.activity.leases; len(l) > 0 {
		err := swapInRun(l[0].ID)
		r.auditFailure(opSwap, err)
		return false, err
	}
	s, err := r.project.BeginSwap()
	if err != nil {
		return false, project.Unmoved(err)
	}
	store, decree, from, err := build(s)
	if err == nil {
		x.underHold, r.holding = true, x
		err = prepare()
		x.underHold, r.holding = false, nil
	}
	if x.w != nil { // what follows replaces the packs that it writes to
		x.w.Close()
		x.w = nil
	}
	if err == nil {
		err = s.Decide(store, decree, from)
	}
	if err != nil && !r.project.Swapping() {
		_ = s.Drop() // else the next command removes it
		return false, project.Unmoved(err)
	}
	s.Close()
	if err == nil {
		done, err = r.project.FinishSwap(r.swapped)
	}
	if err != nil && (!done || r.project.Swapping()) {
		return false, &project.Error{Kind: project.Failed, Msg: "the restore was decided on and is not finished", Err: err, Advice: "free some space or mend what stands in the way; the next command finishes it, and so does 'decree recover'"}
	}
	o := r.audit(opSwap, "done")
	o.Detail = detail
	err = cmp.Or(err, r.history.Audit(o))
	c := &recovery{r: r, x: x}
	err = cmp.Or(err, c.tidyLayers()) // so that it is told now which layers have lost their drafts
	for _, d := range c.done {
		r.note("%s", d.What)
	}
	return true, err
}

const opSwap = "restore-backup"

func swapInRun(id string) *project.Error {
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "run " + id + " is going on, and needs the records that a restore would replace",
		Advice: "repeat it when the run has ended, or restore into another directory with --into"}
}

// RefuseSwapInRun is the refusal of Swap as far as it can be told without the lock.
func (r *Recorder) RefuseSwapInRun() error {
	b, err := r.currentActivity()
	if err == nil && len(b.leases) > len(b.others) {
		err = swapInRun(b.leases[0].ID)
	}
	return err
}

// RestoreState makes the tree equal to one that the store has, by its id: a record that can be taken
// back like any restore. what says in words which state it is. Files whose contents the store lacks are left as
// they are, and are Lost in the result; what is at or below one of apart, such as the backup that the state comes from, is left alone.
func (r *Recorder) RestoreState(ctx context.Context, id tree.Hash, what string, apart []tree.Path) (*MoveResult, error) {
	x, err := r.enterToMove(ctx, "restore")
	if err != nil {
		return nil, err
	}
	defer x.close()
	cache := newContentCache()
	res, full, err := r.capturePresent(ctx, x, cache)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	changes, err := r.toTarget(ctx, RestoreOptions{}, res, nil, id)
	if err != nil {
		return nil, err
	}
	out := &MoveResult{}
	changes = slices.DeleteFunc(changes, func(c tree.Change) bool {
		return len(apart) > 0 && c.Path.Within(apart...) || c.Old.IsFile() && out.noteIfLost(r, c.Path, c.Old.SHA256)
	})
	p, err := plan.ForChanges(ctx, r.tree, changes, true)
	if err != nil {
		return nil, &BeginError{lookError(err)}
	}
	if c := p.Conflicts(); len(c) > 0 {
		return nil, &ConflictError{Verb: "restore", Subject: "can be restored", Items: c}
	}
	out.Plan = p
	if p.Empty() {
		return out, nil
	}
	if err := r.verifyContents(ctx, p, cache); err != nil {
		return nil, err
	}
	out.Record, out.Outcome, err = r.perform(ctx, x, action{reason: history.Restore, plan: p, full: full, cache: cache, description: "Restore to " + what})
	return out, err
}
