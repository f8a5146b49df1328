package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"decree/history"
	"decree/tree"

	"decree/project"
	"decree/worktree"
)

// A draft is no state of the tree: what is known of it are the paths that its run changed, as
// they were when it began and as it left them. As a point it stands for the latter, and what
// would need the rest of a tree is answered for these paths alone, or refused.

func (p Point) draft() bool { return p.Record != nil && p.Record.Isolated != "" }

// draftChanges are what an isolated run changed, in path order.
func (r *Reader) draftChanges(rec *history.Record) ([]tree.Change, error) {
	if rec.Status == history.StatusOpen {
		return nil, &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("isolated run %s has not ended: what it changed is not known yet", rec.ID),
			Advice: "wait until it has ended, or, if its process died, 'decree recover' closes it"}
	}
	changes, err := r.history.DiffChanges(rec)
	slices.SortFunc(changes, func(a, b tree.Change) int { return a.Path.Compare(b.Path) })
	return changes, err
}

// leftByDraft is what an isolated run left at path: nil where it deleted that. A directory
// with paths that it changed is one, also where it did not change the directory itself.
func (r *Reader) leftByDraft(rec *history.Record, path tree.Path) (*tree.Entry, error) {
	changes, err := r.draftChanges(rec)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Path == path {
			return c.New, nil
		}
	}
	if slices.ContainsFunc(changes, func(c tree.Change) bool { return path == "." || c.Path.Within(path) }) {
		return &tree.Entry{Type: tree.Dir}, nil
	}
	return nil, &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s: isolated run %s did not change it", tree.Quote(path), rec.ID),
		Advice: "a draft holds only the paths that its run changed; all others are as the tree has them"}
}

// betweenDrafts compares two points of which one is a draft or both are: at the paths that
// the draft changed, of two at those that both did. A draft that the comparison begins at
// stands for what its run began with, as any record does, but beside another draft for what
// it left.
func (r *Reader) betweenDrafts(ctx context.Context, from, to Point) (out []tree.Change, err error) {
	draft := to
	if !draft.draft() {
		draft = from
	}
	changes, err := r.draftChanges(draft.Record)
	if err != nil {
		return nil, err
	}
	var other func(i int, path tree.Path) (e *tree.Entry, known bool, err error)
	switch {
	case from.draft() && to.draft():
		other, err = r.otherDraft(from.Record)
	case to.Now:
		other, err = r.nowAt(ctx, changes)
	case from.draft():
		other = r.recordedAt(to)
	default:
		other = r.recordedAt(from)
	}
	if err != nil {
		return nil, err
	}
	for i, c := range changes {
		e, known, err := other(i, c.Path)
		if err != nil {
			return nil, err
		}
		if to.draft() {
			c.Old = e
		} else {
			c.New = e
		}
		if known && !tree.SameEntry(c.Old, c.New) {
			out = append(out, c)
		}
	}
	return out, nil
}

func (r *Reader) otherDraft(rec *history.Record) (func(int, tree.Path) (*tree.Entry, bool, error), error) {
	changes, err := r.draftChanges(rec)
	left := map[tree.Path]*tree.Entry{}
	for _, c := range changes {
		left[c.Path] = c.New
	}
	return func(_ int, path tree.Path) (*tree.Entry, bool, error) {
		e, known := left[path]
		return e, known, nil
	}, err
}

func (r *Reader) recordedAt(p Point) func(int, tree.Path) (*tree.Entry, bool, error) {
	return func(_ int, path tree.Path) (*tree.Entry, bool, error) {
		e, err := r.history.FindEntry(p.tree(), path)
		return e, true, err
	}
}

// nowAt looks at the paths of changes in the tree. A pipe, socket or device is not recorded,
// and what is behind a link is not in the tree.
func (r *Reader) nowAt(ctx context.Context, changes []tree.Change) (func(int, tree.Path) (*tree.Entry, bool, error), error) {
	paths := make([]tree.Path, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	found, err := r.tree.LookAll(ctx, paths)
	return func(i int, _ tree.Path) (*tree.Entry, bool, error) {
		err := found[i].Err
		if errors.As(err, new(*worktree.SpecialError)) || errors.As(err, new(*worktree.LinkError)) {
			return nil, true, nil
		}
		return found[i].Entry, true, lookError(err)
	}, err
}
