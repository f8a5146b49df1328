package plan

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"decree/patch"
	"decree/tree"
	"decree/worktree"
)

// Options of a revert or apply.
type Options struct {
	Direction Direction
	// Paths, relative to the root, restrict the plan to them and what is below.
	Paths []tree.Path
	// Exclude leaves paths, and what is below them, out.
	Exclude []tree.Path
	// Merge takes edited text files by a three-way merge.
	Merge Merging
	// Begun says that the tree has at a path what an earlier part of the same work left there:
	// the rest is merged with it, whatever Merge says. Nil: nothing is begun.
	Begun func(path tree.Path, now *tree.Entry) bool
	// Force takes edited paths to the goal whatever they hold.
	Force bool
	// Ignored says whether today's rules ignore a path: an edited one of these
	// is left and named.
	Ignored func(path tree.Path, dir bool) (bool, error)
}

// ForDiffs plans a revert or an apply of sources in the order given: for a revert newest
// first, for an apply oldest first.
func ForDiffs(ctx context.Context, live Looker, sources []*Source, o Options) (*Plan, error) {
	ov := newOverlay(live)
	var paths []tree.Path
	for _, src := range sources {
		for _, sec := range src.Sections {
			if o.covers(sec.Path) {
				paths = append(paths, sec.Path)
			}
		}
		ov.know(src, o.Direction)
	}
	slices.Sort(paths)
	if err := ov.see(ctx, slices.Compact(paths)); err != nil {
		return nil, err
	}
	for _, src := range sources {
		for t := range o.covered(src) {
			if err := ov.planOne(ctx, &t, o); err != nil {
				return nil, err
			}
		}
	}
	parts := make([]part, len(sources))
	for i, src := range sources {
		parts[i] = part{src, o}
	}
	return ov.plan(ctx, parts)
}

// part is a source of a plan, and what is asked of it.
type part struct {
	src *Source
	opt Options
}

// plan is the plan of what the overlay has, which parts led to.
func (o *overlay) plan(ctx context.Context, parts []part) (*Plan, error) {
	p, err := o.finish()
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		n, err := p.standing(ctx, o.tree, part)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			p.Standing = append(p.Standing, Standing{part.src.ID, n})
		} else {
			p.Touched = append(p.Touched, part.src.ID)
		}
	}
	return p, nil
}

// covers says whether the plan is about path.
func (o *Options) covers(path tree.Path) bool {
	return path.Within(o.Paths...) && (len(o.Exclude) == 0 || !path.Within(o.Exclude...))
}

// standing counts the paths of a source in which the record's change is after the plan:
// files and links as everywhere, and directories where there is nothing else. Those that
// the plan is not about are looked at.
func (p *Plan) standing(ctx context.Context, live Looker, of part) (n int, err error) {
	files, dirs := 0, 0
	add := func(goal *tree.Entry, now *tree.Entry) {
		if !isFile(goal) && !isFile(now) {
			dirs++
		} else {
			files++
		}
	}
	var others []tree.Path
	goals := map[tree.Path]*tree.Entry{}
	for t := range of.src.transitions() {
		if !of.opt.covers(t.path) {
			_, goals[t.path] = t.ends(of.opt.Direction)
			others = append(others, t.path)
		} else if p.verdict(t.path) == Kept {
			add(t.ends(of.opt.Direction))
		}
	}
	answers, err := live.LookAll(ctx, others)
	if err != nil {
		return 0, err
	}
	for i, a := range answers {
		if a.Err != nil || !tree.SameEntry(a.Entry, goals[others[i]]) {
			add(goals[others[i]], a.Entry)
		}
	}
	if files > 0 {
		return files, nil
	}
	return dirs, nil
}

// isFile says whether an entry is a file or link.
func isFile(e *tree.Entry) bool { return e != nil && e.Type != tree.Dir }

// planOne decides what is done to one path.
func (o *overlay) planOne(ctx context.Context, t *transition, opt Options) error {
	cur, err := o.at(t.path)
	if o.special(t.path, err) {
		return nil
	}
	if err != nil {
		return err
	}
	want, goal := t.ends(opt.Direction)
	o.share(t.path, want)
	o.share(t.path, goal)
	switch {
	case o.verdict(t.path) == Kept:
		return nil // what a later record has left in it is not to be passed over
	case tree.SameEntry(cur.entry, goal):
		o.note(t.path, Done, "")
		return nil
	case tree.SameEntry(cur.entry, want):
		next := state{goal, t.content(opt.Direction, cur.content)}
		switch {
		case opt.Direction == Forth || !t.shared():
			o.set(t.path, next, Move)
		case opt.Force:
			o.set(t.path, next, Forced)
		case opt.Merge == Skip:
			o.note(t.path, Kept, sharedReason)
		default:
			o.note(t.path, Edited, sharedReason)
		}
		return nil
	}
	return o.edited(ctx, t, opt, cur)
}

// sharedReason is why a path is not taken back that nobody can be said to have changed alone.
const sharedReason = "others changed it in the same time; only --force takes it back"

// edited decides about a path that is neither what the run left nor what was
// before it.
func (o *overlay) edited(ctx context.Context, t *transition, opt Options, cur state) error {
	want, _ := t.ends(opt.Direction)
	if opt.Ignored != nil {
		ignored, err := opt.Ignored(t.path, cur.entry.IsDir())
		if err != nil {
			return err
		}
		if ignored {
			o.note(t.path, Left, Describe(cur.entry, want)+", and ignored by today's rules")
			return nil
		}
	}
	if opt.Force {
		o.set(t.path, t.forced(opt), Forced)
		return nil
	}
	if opt.Merge == Off && (opt.Begun == nil || !opt.Begun(t.path, cur.entry)) {
		o.note(t.path, Edited, Describe(cur.entry, want))
		return nil
	}
	merged, conflicts, err := t.merge(ctx, opt.Direction, cur)
	if errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrNotExist) { // the disk's, no conflict
		return tree.At(t.path, err)
	}
	reason := Describe(cur.entry, want)
	if err != nil {
		reason = tree.Because(err)
	}
	switch {
	case merged != nil && conflicts == 0:
		o.set(t.path, *merged, Merged)
	case merged != nil && opt.Merge == Mark:
		o.set(t.path, *merged, Marked)
		o.get(t.path).Reason = conflictWords(conflicts)
	case opt.Merge == Skip:
		o.note(t.path, Kept, reason)
	default:
		o.note(t.path, Edited, reason)
	}
	return nil
}

// forced needs the goal's bytes without the run's: hunks cannot give them, so
// they come from the store.
func (t *transition) forced(opt Options) state {
	_, goal := t.ends(opt.Direction)
	if !goal.IsFile() {
		return state{entry: goal}
	}
	if sec := t.bearer(opt.Direction); sec.binary && !sec.stored || sec.op == patch.OpCreate || sec.op == patch.OpDelete {
		return state{goal, t.content(opt.Direction, nil)}
	}
	src, path := t.source, t.path
	return state{goal, func() (io.ReadCloser, error) { return src.stored(path, goal) }}
}

// ForChanges plans that the tree goes from the states in changes' New to those in their
// Old: what a failed run's putting back and a restore do. They are in byte order of their
// paths, each of which there is once. The bytes are in the store, so that no step has a
// Content. Without force the plan has no Items but those that forbid it, and those that
// somebody writes to.
func ForChanges(ctx context.Context, live Looker, changes []tree.Change, force bool) (*Plan, error) {
	paths := make([]tree.Path, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	answers, err := live.LookAll(ctx, paths)
	if err != nil {
		return nil, err
	}
	t := &taking{o: newOverlay(live), force: force, above: map[tree.Path]tree.Path{}}
	t.plan.Steps = make([]worktree.Step, 0, len(changes)) // a list of very many is not grown
	for i, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a := answers[i]
		if t.plain(c, a) {
			continue
		}
		if a.Err == nil {
			t.o.found(c.Path, a)
		}
		if err := t.one(c); err != nil {
			return nil, err
		}
	}
	return t.finish()
}

// taking is one plan for changes. Of very many changes most are plain: each is a step, whatever
// becomes of the others, and only the rest, and all directories, are in the overlay.
type taking struct {
	o     *overlay
	force bool
	plan  Plan
	// above are the directories that plain steps need, each with the path of one of them.
	above map[tree.Path]tree.Path
}

// plain plans a change between files, links and nothing of a path that is as it was left, and says
// whether it was one.
func (t *taking) plain(c tree.Change, a worktree.Looked) bool {
	if a.Err != nil || c.Old.IsDir() || c.New.IsDir() || tree.SameEntry(a.Entry, c.Old) || !tree.SameEntry(a.Entry, c.New) {
		return false
	}
	from := a.Entry
	if from != nil && *from == *c.New {
		from = c.New // which is held anyway
	}
	if dir := c.Path.Parent(); c.Old != nil && t.above[dir] == "" {
		t.above[dir] = c.Path
	}
	it := Item{Path: c.Path, From: from, To: c.Old, Verdict: Move, Writing: a.Writing}
	if t.force || a.Writing != nil {
		t.plan.Items = append(t.plan.Items, it)
	}
	t.plan.Steps = append(t.plan.Steps, worktree.Step{Path: it.Path, From: it.From, To: it.To})
	t.plan.count(it.From, it.To)
	return true
}

// one plans any other change.
func (t *taking) one(c tree.Change) error {
	cur, err := t.o.at(c.Path)
	if t.o.special(c.Path, err) {
		return nil
	}
	if err != nil {
		return err
	}
	goal := state{entry: c.Old}
	switch {
	case tree.SameEntry(cur.entry, c.Old):
		t.o.note(c.Path, Done, "")
	case tree.SameEntry(cur.entry, c.New):
		t.o.set(c.Path, goal, Move)
	case t.force:
		t.o.set(c.Path, goal, Forced)
	default:
		t.o.note(c.Path, Edited, Describe(cur.entry, c.New))
	}
	return nil
}

// finish puts the plain steps and the others together.
func (t *taking) finish() (*Plan, error) {
	for dir, path := range t.above {
		if dir != "" && !t.o.entry(dir).IsDir() {
			if err := t.o.makeAbove(path); err != nil {
				return nil, err
			}
		}
	}
	others, err := t.o.finish()
	if err != nil {
		return nil, err
	}
	p := &t.plan
	p.Items = slices.Concat(p.Items, others.Items)
	slices.SortFunc(p.Items, byPath)
	p.Steps = append(p.Steps, others.Steps...)
	slices.SortFunc(p.Steps, func(a, b worktree.Step) int { return a.Path.Compare(b.Path) })
	p.Created, p.Modified, p.Deleted = p.Created+others.Created, p.Modified+others.Modified, p.Deleted+others.Deleted
	return p, nil
}

// Changes are the plan's steps as changes of the tree, in path order.
func (p *Plan) Changes() []tree.Change {
	out := make([]tree.Change, 0, len(p.Steps))
	for _, s := range p.Steps {
		out = append(out, tree.Change{Path: s.Path, Old: s.From, New: s.To})
	}
	slices.SortFunc(out, func(a, b tree.Change) int { return a.Path.Compare(b.Path) })
	return out
}
