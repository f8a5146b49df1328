package recorder

import (
	"context"

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
		r.note("a restore of a backup that had been interrupted was finished")
	}
	return err
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

// Swap replaces all that the project has by what build makes in the swap's directories. prepare
// is called before that, without the lock on the store's contents being given back. An error of
// either leaves everything as it was.
func (r *Recorder) Swap(ctx context.Context, detail string, prepare func() error, build func(s *project.Swap) (store, decree []string, from string, err error)) error {
	x, err := r.enterToMove(ctx, opSwap)
	if err != nil {
		return err
	}
	defer x.close()
	x.held, r.holding = true, x
	err = prepare()
	x.held, r.holding = false, nil
	if err != nil {
		return err
	}
	if x.w != nil { // what follows replaces the packs that it writes to
		x.w.Close()
		x.w = nil
	}
	s, err := r.project.BeginSwap()
	if err != nil {
		return project.Unmoved(err)
	}
	store, decree, from, err := build(s)
	if err == nil {
		err = s.Decide(store, decree, from)
	}
	if err != nil && !r.project.Swapping() {
		_ = s.Drop() // else the next command removes it
		return project.Unmoved(err)
	}
	s.Close()
	if err == nil {
		_, err = r.project.FinishSwap(r.swapped)
	}
	if err != nil {
		return &project.Error{Kind: project.Failed, Msg: "the restore was decided on and is not finished", Err: err, Advice: "free some space or mend what stands in the way; the next command finishes it, and so does 'decree recover'"}
	}
	o := r.audit(opSwap, "done")
	o.Detail = detail
	return r.history.Audit(o)
}

const opSwap = "restore-backup"

// RestoreState makes the tree equal to one that the store has, by its id: a record that can be taken
// back like any restore. what says in words which state it is.
func (r *Recorder) RestoreState(ctx context.Context, id tree.Hash, what string) (*MoveResult, error) {
	x, err := r.enterToMove(ctx, "restore")
	if err != nil {
		return nil, err
	}
	defer x.close()
	cache := newContentCache()
	res, full, err := r.present(ctx, x, cache)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	changes, err := r.toTarget(ctx, RestoreOptions{}, res, nil, id)
	if err != nil {
		return nil, err
	}
	p, err := plan.ForChanges(ctx, r.tree, changes, true)
	if err != nil {
		return nil, &BeginError{lookError(err)}
	}
	if c := p.Conflicts(); len(c) > 0 {
		return nil, &ConflictError{Verb: "restore", Subject: "can be restored", Items: c}
	}
	out := &MoveResult{Plan: p}
	if p.Empty() {
		return out, nil
	}
	if err := r.verifyContents(ctx, p, cache); err != nil {
		return nil, err
	}
	out.Record, out.Outcome, err = r.perform(ctx, x, action{reason: history.Restore, plan: p, full: full, cache: cache, description: "Restore to " + what})
	return out, err
}
