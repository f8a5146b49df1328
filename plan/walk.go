package plan

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

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
	if err := w.o.see(ctx, w.o.unseen(opt.covered(src))); err != nil {
		return Taken, err
	}
	var before planned
	if skip {
		before = w.o.save()
	}
	needless := true
	for t := range opt.covered(src) {
		path := t.path
		was := w.o.now[path].entry
		err := w.o.planOne(ctx, &t, opt)
		if skip && errors.As(err, new(*worktree.LinkError)) {
			w.o.load(before)
			return Barred, nil
		}
		if err != nil {
			return Taken, err
		}
		needless = needless && w.o.item[path].Verdict != Edited && same(w.o.now[path].entry, was)
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

// Plan is the plan of all sources that were taken.
func (w *Walk) Plan(ctx context.Context) (*Plan, error) { return w.o.plan(ctx, w.parts) }

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
		if _, seen := o.now[t.path]; !seen {
			paths = append(paths, t.path)
		}
	}
	return paths
}

func (o *overlay) barred() bool {
	for _, it := range o.item {
		if it.Verdict == Edited {
			return true
		}
	}
	return false
}

// planned is what an overlay has planned at some moment.
type planned struct {
	now  map[tree.Path]state
	item map[tree.Path]Item
}

func (o *overlay) save() planned {
	p := planned{maps.Clone(o.now), make(map[tree.Path]Item, len(o.item))}
	for path, it := range o.item {
		p.item[path] = *it
	}
	return p
}

func (o *overlay) load(p planned) {
	o.now, o.item = p.now, make(map[tree.Path]*Item, len(p.item))
	for path, it := range p.item {
		o.item[path] = &it
	}
}

// Only leaves in the source the paths that has says yes to.
func (s *Source) Only(has func(path tree.Path) bool) {
	s.Sections = slices.DeleteFunc(s.Sections, func(sec Section) bool { return !has(sec.Path) })
}
