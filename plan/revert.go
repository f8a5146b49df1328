package plan

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sort"
	"strings"

	"decree/manifest"
	"decree/patch"
)

// Options of a revert or apply.
type Options struct {
	Direction Direction
	// Paths, relative to the root, restrict the plan to them and what is below.
	Paths []string
	// Merge takes edited text files hunk by hunk, where every hunk's lines stand
	// exactly once.
	Merge bool
	// Force takes edited paths to the goal whatever they hold.
	Force bool
	// Ignored says whether today's rules ignore a path: an edited one of these
	// is left and named.
	Ignored func(path string, dir bool) (bool, error)
}

// Turn plans sources in the order given: for a revert newest first, for an
// apply oldest first.
func Turn(ctx context.Context, tree Looker, sources []*Source, o Options) (*Plan, error) {
	ov := newOverlay(tree)
	var paths []string
	for _, src := range sources {
		for _, sec := range src.Sections {
			if Within(sec.Path, o.Paths) {
				paths = append(paths, sec.Path)
			}
		}
	}
	slices.Sort(paths)
	if err := ov.see(ctx, slices.Compact(paths)); err != nil {
		return nil, err
	}
	var whole []string
	for _, src := range sources {
		all := true
		for _, t := range src.transitions() {
			if !Within(t.path, o.Paths) {
				all = false
				continue
			}
			if err := ov.turn(&t, o); err != nil {
				return nil, err
			}
		}
		if all {
			whole = append(whole, src.ID)
		}
	}
	p, err := ov.finish()
	if err != nil {
		return nil, err
	}
	p.Touched = whole
	return p, nil
}

// Within says whether path is one of paths or below one; no paths means all.
func Within(path string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	for _, p := range paths {
		if p == "" || p == path || strings.HasPrefix(path, p) && path[len(p)] == '/' {
			return true
		}
	}
	return false
}

func (o *overlay) turn(t *transition, opt Options) error {
	cur, err := o.at(t.path)
	if o.special(t.path, err) {
		return nil
	}
	if err != nil {
		return err
	}
	want, goal := t.ends(opt.Direction)
	switch {
	case same(cur.entry, goal):
		o.note(t.path, Done, "")
		return nil
	case same(cur.entry, want):
		o.set(t.path, state{goal, t.content(opt.Direction, cur.content)}, Move)
		return nil
	}
	return o.edited(t, opt, cur)
}

// edited decides about a path that is neither what the run left nor what was
// before it.
func (o *overlay) edited(t *transition, opt Options, cur state) error {
	want, _ := t.ends(opt.Direction)
	if opt.Ignored != nil {
		isDir := cur.entry != nil && cur.entry.Type == manifest.Dir
		ignored, err := opt.Ignored(t.path, isDir)
		if err != nil {
			return err
		}
		if ignored {
			o.note(t.path, Left, describe(cur.entry, want)+", and ignored by today's rules")
			return nil
		}
	}
	if opt.Force {
		o.set(t.path, o.forced(t, opt, cur), Forced)
		return nil
	}
	if opt.Merge {
		merged, err := t.merge(opt.Direction, cur)
		if err != nil {
			o.note(t.path, Edited, err.Error())
			return nil
		}
		if merged != nil {
			o.set(t.path, *merged, Merged)
			return nil
		}
	}
	o.note(t.path, Edited, describe(cur.entry, want))
	return nil
}

// forced needs the goal's bytes without the run's: hunks cannot give them, so
// they come from the store.
func (o *overlay) forced(t *transition, opt Options, cur state) state {
	_, goal := t.ends(opt.Direction)
	if goal == nil || goal.Type != manifest.Regular {
		return state{entry: goal}
	}
	if sec := t.bearer(opt.Direction); sec.Binary && !sec.Stored || sec.Op == patch.OpCreate || sec.Op == patch.OpDelete {
		return state{goal, t.content(opt.Direction, nil)}
	}
	return state{goal, func() (io.ReadCloser, error) { return t.stored(goal) }}
}

// merge takes the hunks of a text file back one by one. It returns nil where
// there is nothing to merge: no text, or not a modification of a file.
func (t *transition) merge(d Direction, cur state) (*state, error) {
	sec := t.bearer(d)
	if len(t.sections) != 1 || sec.Op != patch.OpModify || sec.Binary || sec.Old.Type != manifest.Regular ||
		cur.entry == nil || cur.entry.Type != manifest.Regular {
		return nil, nil
	}
	have, err := readAll(cur.content, sec.Op)
	if err != nil {
		return nil, err
	}
	full, err := t.source.whole(sec)
	if err != nil {
		return nil, err
	}
	data, err := full.Merge(have, d == Back)
	if err != nil {
		return nil, err
	}
	e := *cur.entry
	e.SHA256, e.Size = patch.Sum(data), int64(len(data))
	want, goal := t.ends(d)
	// The run's own change of mode goes along; a mode set since by hand stays.
	if cur.entry.Mode == want.Mode {
		e.Mode, e.Owner = goal.Mode, goal.Owner
	}
	return &state{&e, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}, nil
}

// To plans that the tree goes from the states in changes' New to those in their
// Old: what a failed run's putting back and a restore do. Content gives the
// bytes of a hash.
func To(ctx context.Context, tree Looker, changes []manifest.Change, objects Objects, force bool) (*Plan, error) {
	ov := newOverlay(tree)
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	if err := ov.see(ctx, paths); err != nil {
		return nil, err
	}
	for _, c := range changes {
		cur, err := ov.at(c.Path)
		if ov.special(c.Path, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		goal := state{entry: c.Old}
		if c.Old != nil && c.Old.Type == manifest.Regular {
			h := c.Old.SHA256
			goal.content = func() (io.ReadCloser, error) { r, _, err := objects.Open(h); return r, err }
		}
		switch {
		case same(cur.entry, c.Old):
			ov.note(c.Path, Done, "")
		case same(cur.entry, c.New):
			ov.set(c.Path, goal, Move)
		case force:
			ov.set(c.Path, goal, Forced)
		default:
			ov.note(c.Path, Edited, describe(cur.entry, c.New))
		}
	}
	return ov.finish()
}

// Changes are the plan's steps as changes of the tree, in path order.
func (p *Plan) Changes() []manifest.Change {
	out := make([]manifest.Change, 0, len(p.Steps))
	for _, s := range p.Steps {
		out = append(out, manifest.Change{Path: s.Path, Old: s.From, New: s.To})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}
