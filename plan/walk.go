package plan

import (
	"context"
	"errors"
	"iter"
	"slices"

	"decree/patch"
	"decree/tree"
	"decree/worktree"
)

// Walk plans sources one on top of the other, as they come: which one comes next may
// depend on what became of those before it.
type Walk struct {
	o     *overlay
	opt   Options
	parts []part
}

// Outcome is what a walk made of a source.
type Outcome uint8

const (
	// Taken: its paths are planned, or are conflicts of the plan.
	Taken Outcome = iota
	// Needless: the tree is already as the source would leave it, or what differs is
	// left alone. It is no part of the plan.
	Needless
	// Barred: paths that it is about were edited since. It is no part of the plan.
	Barred
)

// NewWalk begins a plan over what live has. The options are those of all its sources, but
// for their directions.
func NewWalk(live Looker, o Options) *Walk { return &Walk{o: newOverlay(live), opt: o} }

// Take plans src on top of the sources that were taken before. With skip one that edited
// paths bar is left out, otherwise its conflicts are the plan's.
func (w *Walk) Take(ctx context.Context, src *Source, d Direction, skip bool) (Outcome, error) {
	opt := w.opt
	opt.Direction = d
	w.o.know(src, d)
	if err := w.o.see(ctx, w.o.unseen(opt.covered(src))); err != nil {
		return Taken, err
	}
	var before []Item
	if skip {
		before = w.o.save()
	}
	needless := true
	for t := range opt.covered(src) {
		path := t.path
		was := w.o.entry(path)
		err := w.o.planOne(ctx, &t, opt)
		if skip && errors.As(err, new(*worktree.LinkError)) {
			w.o.load(before)
			return Barred, nil
		}
		if err != nil {
			return Taken, err
		}
		needless = needless && w.o.verdict(path) != Edited && tree.SameEntry(w.o.entry(path), was)
	}
	if needless {
		return Needless, nil
	}
	if skip {
		after := w.o.save()
		if err := w.o.parents(); err != nil {
			return Taken, err
		}
		if w.o.barred() {
			w.o.load(before)
			return Barred, nil
		}
		w.o.load(after)
	}
	w.parts = append(w.parts, part{src, opt})
	return Taken, nil
}

// Covers says whether the plan would be about any path of src.
func (w *Walk) Covers(src *Source) bool {
	return slices.ContainsFunc(src.Sections, func(s Section) bool { return w.opt.covers(s.Path) })
}

// Plan is the plan of all sources that were taken, which ends the walk.
func (w *Walk) Plan(ctx context.Context) (*Plan, error) {
	p, err := w.o.plan(ctx, w.parts)
	w.parts = nil // the sources of very many paths are large
	return p, err
}

// covered are the transitions of src that the plan is about.
func (o *Options) covered(src *Source) iter.Seq[transition] {
	return func(yield func(transition) bool) {
		for t := range src.transitions() {
			if o.covers(t.path) && !yield(t) {
				return
			}
		}
	}
}

// unseen are the paths of list that were not looked at yet.
func (o *overlay) unseen(list iter.Seq[transition]) (paths []tree.Path) {
	for t := range list {
		if !o.seen(t.path) {
			paths = append(paths, t.path)
		}
	}
	return paths
}

func (o *overlay) barred() bool {
	return slices.ContainsFunc(o.items, func(it Item) bool { return it.Verdict == Edited })
}

// save is what the overlay has planned at this moment, for load.
func (o *overlay) save() []Item { return slices.Clone(o.items) }

// load brings that back.
func (o *overlay) load(items []Item) {
	for _, it := range o.items[len(items):] {
		delete(o.index, it.Path)
	}
	o.items = items
}

// Bases are what the source's paths were.
func (s *Source) Bases() map[tree.Path]*tree.Entry {
	bases := map[tree.Path]*tree.Entry{}
	for t := range s.transitions() {
		bases[t.path] = t.old
	}
	return bases
}

// Rebase has the source take those of its paths that from names from the states there. The contents of both sides of these are read from Objects.
func (s *Source) Rebase(from map[tree.Path]*tree.Entry) {
	sections := make([]Section, 0, len(s.Sections))
	for t := range s.transitions() {
		if old, is := from[t.path]; is {
			sections = append(sections, storedSections(tree.Change{Path: t.path, Old: old, New: t.new})...)
		} else {
			sections = append(sections, t.sections...)
		}
	}
	s.Sections = sections
}

// Add has the source make further changes, by their paths, of which it has none. Their contents are read from Objects.
func (s *Source) Add(changes map[tree.Path]tree.Change) {
	for _, c := range changes {
		if !tree.SameEntry(c.Old, c.New) {
			s.Sections = append(s.Sections, storedSections(c)...)
		}
	}
	slices.SortStableFunc(s.Sections, func(a, b Section) int { return a.Path.Compare(b.Path) })
}

// storedSections are those of one change.
func storedSections(c tree.Change) (out []Section) {
	if c.Old != nil && c.New != nil && c.Old.Type == c.New.Type {
		return []Section{{Path: c.Path, Old: c.Old, New: c.New, op: patch.OpModify, stored: true}}
	}
	if c.Old != nil {
		out = append(out, Section{Path: c.Path, Old: c.Old, op: patch.OpDelete, stored: true})
	}
	if c.New != nil {
		out = append(out, Section{Path: c.Path, New: c.New, op: patch.OpCreate, stored: true})
	}
	return out
}

// Only leaves in the source the paths that has says yes to.
func (s *Source) Only(has func(path tree.Path) bool) {
	s.Sections = slices.DeleteFunc(s.Sections, func(sec Section) bool { return !has(sec.Path) })
}
