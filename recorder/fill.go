package recorder

import (
	"context"
	"slices"

	"decree/plan"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// fillPart is how many paths of a tree one transaction brings into an empty directory: of very many, all at once would take
// more memory than all else that a restore does.
const fillPart = 32 << 10

// Fill makes an empty tree equal to one that the store has, by its id. Nothing is replaced by that and the
// history is as the tree's was, so it makes no record, which would hold the whole tree twice more as
// differences. What the store lacks of it is left out, and is Lost in the result. It comes in parts, each of which
// is there whole or not at all: after an error or a death the same call goes on, since what is there already as it
// should be stays. That the tree is not whole is for the caller to write down, as a restore does in project.IntoFile.
func (r *Recorder) Fill(ctx context.Context, id tree.Hash) (*MoveResult, error) {
	x, err := r.enterToMove(ctx, "restore")
	if err != nil {
		return nil, err
	}
	defer x.close()
	f := &filling{Recorder: r, x: x, out: &MoveResult{}}
	err = f.all(ctx, id)
	if err == nil && len(f.conflicts) > 0 {
		err = &ConflictError{Verb: "restore", Subject: "should be an empty directory", Items: f.conflicts}
	}
	if err != nil {
		return nil, &FillError{There: int(f.done), Err: err}
	}
	slices.Sort(f.out.Lost)
	f.out.Lost = slices.Compact(f.out.Lost) // of an object that is in several parts each is asked for
	return f.out, nil
}

// FillError is that Fill did not come to its end. What its cause says of the state in which things are left is true of a part.
type FillError struct {
	There int // how many paths of the tree are there
	Err   error
}

func (e *FillError) Error() string { return e.Err.Error() }

func (e *FillError) Unwrap() error { return e.Err }

// filling is a tree on its way into an empty directory.
type filling struct {
	*Recorder
	x         *writeSession
	out       *MoveResult
	part      []tree.Change
	closed    tree.Path // the directory that nobody could look into once it has its mode; "": none
	conflicts []plan.Item
	done      int64
}

// all brings a tree, part by part, without what the store lacks, which is noted. It may be long: ctx ends it.
func (f *filling) all(ctx context.Context, id tree.Hash) error {
	lacks := func(path tree.Path, h tree.Hash) bool { return f.out.noteIfLost(f.Recorder, path, h) }
	entries := tree.Reader{From: f.history.Directories(), Skip: func(e *tree.DamagedError) bool { return lacks(e.Path, e.Hash) }}
	for it, err := range entries.Downward(id) {
		if err := ctx.Err(); err != nil {
			return &BeginError{err}
		}
		if err != nil {
			return contentError(it.Path, err)
		}
		if it.Entry.Type == tree.Regular && lacks(it.Path, it.Entry.SHA256) {
			continue
		}
		if err := f.add(ctx, it); err != nil {
			return err
		}
	}
	return f.move(ctx)
}

// add takes what comes next. A part does not end in a directory that its owner, as it will be, may not look into.
func (f *filling) add(ctx context.Context, it tree.Item) error {
	if f.closed != "" && !it.Path.Below(f.closed) {
		f.closed = ""
	}
	if f.closed == "" && len(f.part) >= f.partSize() {
		if err := f.move(ctx); err != nil {
			return err
		}
	}
	const look = 0o500
	if f.closed == "" && it.Entry.Type == tree.Dir && it.Entry.Mode&look != look {
		f.closed = it.Path
	}
	f.part = append(f.part, tree.Change{Path: it.Path, Old: &it.Entry})
	return nil
}

func (f *filling) partSize() int {
	if f.fillPart > 0 {
		return f.fillPart
	}
	return fillPart
}

// move brings the part. Where something else is in the way nothing is moved any more, and the rest is only looked at.
func (f *filling) move(ctx context.Context) error {
	changes := f.part
	f.part = nil
	notes, err := f.asCanBe(changes)
	if err != nil {
		return project.Unmoved(err)
	}
	p, err := plan.ForChanges(ctx, f.tree, changes, false)
	if err != nil {
		return &BeginError{lookError(err)}
	}
	f.conflicts = append(f.conflicts, p.Conflicts()...)
	if len(f.conflicts) > 0 {
		return nil
	}
	txn, _, err := f.history.NewID()
	if err != nil {
		return project.Unmoved(err)
	}
	packed, err := worktree.Pack(p.Steps) // the plan needs no room while files are moved
	if err != nil {
		return project.Unmoved(moveError(err))
	}
	f.progress(Progress{Phase: "moving", Done: f.done})
	moved, err := f.transact(ctx, f.x, worktree.Plan{ID: txn, Packed: packed})
	if err != nil {
		return err
	}
	f.done += int64(len(changes))
	f.progress(Progress{Phase: "moving", Done: f.done})
	f.out.Notes = slices.Concat(f.out.Notes, notes, moved.Notes)
	return nil
}

// asCanBe takes from what comes the rights that it cannot have here, and says so, a line a path. That is before anybody looks at what is there:
// what came before a death, without these rights, is nothing that is in the way.
func (f *filling) asCanBe(changes []tree.Change) ([]string, error) {
	steps := make([]worktree.Step, len(changes))
	for i, c := range changes {
		steps[i] = worktree.Step{Path: c.Path, To: c.Old}
	}
	taken, err := f.takeRights(steps, false)
	for i := range steps {
		changes[i].Old = steps[i].To
	}
	return byPath(taken), err
}

// noteIfLost says whether the store does not have what a tree has at a path, and notes that.
func (m *MoveResult) noteIfLost(r *Recorder, at tree.Path, h tree.Hash) bool {
	if r.store.Has(h) {
		return false
	}
	m.Lost = append(m.Lost, at)
	return true
}
