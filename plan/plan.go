// Package plan decides what a revert, an apply or a restore will do to each
// path, and moves nothing.
//
// A source is a record's changes.diff. For each of its sections the tree is
// looked at: what the run left can go back, what already is as before has
// nothing to do, and anything else was edited since and is a conflict. Several
// sources are planned one on top of the other: the second sees the tree as the
// first would leave it. What is to be done is decided by the tree, never by a
// record's status.
//
// The result is a list of worktree steps, each from the state that was seen to
// the state that is wanted, with the bytes of the latter; the transaction checks
// the former again before it moves anything.
package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"decree/tree"
	"decree/worktree"
)

// Direction says which side of a diff is wanted.
type Direction uint8

const (
	// Back takes the tree from the new side of each diff to the old one: revert.
	Back Direction = iota
	// Forth takes it from the old side to the new one: apply.
	Forth
)

func (d Direction) other() Direction {
	if d == Back {
		return Forth
	}
	return Back
}

// Verdict is what the plan makes of one path.
type Verdict string

const (
	Move   Verdict = "move"   // will be moved
	Done   Verdict = "done"   // is there already
	Edited Verdict = "edited" // differs from what the run left: a conflict
	Merged Verdict = "merged" // edited, and merged with what is there
	Marked Verdict = "marked" // merged, with conflicts marked in it
	Forced Verdict = "forced" // edited, and overwritten as asked
	Left   Verdict = "left"   // edited and ignored by today's rules: left alone
	Kept   Verdict = "kept"   // edited, cannot be merged, and left alone as asked
	Passed Verdict = "passed" // could be moved, and was not chosen
)

// leaves says whether nothing is done about the path.
func (v Verdict) leaves() bool { return v == Left || v == Kept || v == Edited || v == Passed }

// Item is the plan for one path. From is its state in the tree, To the wanted
// one, nil where nothing is.
type Item struct {
	Path     tree.Path
	From, To *tree.Entry
	Verdict  Verdict
	Reason   string           // of a conflict: "edited since", "missing", "now a symlink"
	Writing  *worktree.FileID // somebody has the file that is there now open for writing
	Later    []string         // ids of later records that changed the path, filled by the owner

	content Content // of a regular To, where it is planned
	stage   stage
}

// stage says what is known of a path, of which the plan says something where it has a verdict.
type stage uint8

const (
	unseen  stage = iota // it could not be looked at
	found                // To is From, as the tree has it
	planned              // To is what it shall be
)

func byPath(a, b Item) int { return a.Path.Compare(b.Path) }

// moves says whether something is done about the path.
func (it *Item) moves() bool { return !it.Verdict.leaves() && !tree.SameEntry(it.From, it.To) }

// Plan is what will be done. Steps are in byte order of their paths.
type Plan struct {
	Items []Item
	Steps []worktree.Step
	// Touched are the records whose every path is planned or done, by Source.ID.
	Touched []string

	// Standing are the other records, with the number of paths in which their
	// change stays.
	Standing []Standing
	// Passed are the paths of which something was not chosen, in order; see Choose.
	Passed []tree.Path
	// Stay are what would go, and is left: directories with more in them, and the paths of Leave. They are in neither of the above.
	Stay []tree.Path
	// Warnings are what to know before it is done, in words, for whoever is asked.
	Warnings []string

	Created, Modified, Deleted int // files and symlinks, as the move will do
}

// Standing says of how many of a record's files and links the plan leaves the change in;
// of how many directories where it is in no other.
type Standing struct {
	ID    string
	Paths int
}

// verdict is what the plan makes of path, "" where it says nothing of it.
func (p *Plan) verdict(path tree.Path) Verdict {
	i, there := slices.BinarySearchFunc(p.Items, path, func(it Item, path tree.Path) int { return it.Path.Compare(path) })
	if !there {
		return ""
	}
	return p.Items[i].Verdict
}

// Conflicts are the items that forbid the move.
func (p *Plan) Conflicts() []Item {
	var out []Item
	for _, it := range p.Items {
		if it.Verdict == Edited {
			out = append(out, it)
		}
	}
	return out
}

// Empty says that there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Looker is the part of worktree.Tree that a plan needs.
type Looker interface {
	// Look returns the state of path now, nil where nothing is.
	Look(path tree.Path) (*tree.Entry, error)
	// LookAll is Look of many paths at once; the i-th answer is the i-th path's.
	LookAll(ctx context.Context, paths []tree.Path) ([]worktree.Looked, error)
	// Read returns the bytes of the regular file at path.
	Read(path tree.Path) (io.ReadCloser, error)
}

// Objects gives stored bytes, for sections that only name a hash.
type Objects interface {
	Open(h tree.Hash) (io.ReadCloser, int64, error)
}

// Content gives the bytes of a state; it may be called more than once.
type Content func() (io.ReadCloser, error)

// state is what a path holds at some point of the plan.
type state struct {
	entry   *tree.Entry
	content Content // of a regular file
}

// overlay is the tree as the steps planned so far would leave it. Of very many paths each
// has its one item, which the plan has in the end.
type overlay struct {
	tree  Looker
	items []Item
	index map[tree.Path]int32       // into items
	dirs  map[tree.Path]*tree.Entry // as the sources know them, also those that are not asked for
}

func newOverlay(live Looker) *overlay {
	return &overlay{tree: live, index: map[tree.Path]int32{}, dirs: map[tree.Path]*tree.Entry{}}
}

// know notes the directories that a source makes, which are made so also where only what is in them is asked for.
func (o *overlay) know(src *Source, d Direction) {
	for t := range src.transitions() {
		if _, goal := t.ends(d); goal.IsDir() {
			o.dirs[t.path] = goal
		}
	}
}

// grow makes room for n more items, so that a list of very many is not copied as it grows.
func (o *overlay) grow(n int) {
	o.items = slices.Grow(o.items, n)
	if len(o.index) == 0 {
		o.index = make(map[tree.Path]int32, n)
	}
}

// see looks at paths ahead of their use, side by side.
func (o *overlay) see(ctx context.Context, paths []tree.Path) error {
	answers, err := o.tree.LookAll(ctx, paths)
	if err != nil {
		return err
	}
	o.grow(len(paths))
	for i, a := range answers {
		if a.Err == nil {
			o.found(paths[i], a)
		} // at looks again, and returns the error
	}
	return nil
}

// get is the item of path, nil where there is none. It is good until another one is added.
func (o *overlay) get(path tree.Path) *Item {
	if i, ok := o.index[path]; ok {
		return &o.items[i]
	}
	return nil
}

// add is the item of path, which is made if there is none.
func (o *overlay) add(path tree.Path) *Item {
	if it := o.get(path); it != nil {
		return it
	}
	o.index[path] = int32(len(o.items)) //nolint:gosec // no more than fit into memory
	o.items = append(o.items, Item{Path: path})
	return &o.items[len(o.items)-1]
}

// found enters what the tree has at path.
func (o *overlay) found(path tree.Path, a worktree.Looked) *Item {
	it := o.add(path)
	it.From, it.To, it.Writing, it.stage = a.Entry, a.Entry, a.Writing, found
	return it
}

// seen says whether path was looked at.
func (o *overlay) seen(path tree.Path) bool {
	it := o.get(path)
	return it != nil && it.stage != unseen
}

// entry is what path holds as planned so far, nil where nothing is or nobody has looked.
func (o *overlay) entry(path tree.Path) *tree.Entry {
	if it := o.get(path); it != nil {
		return it.To
	}
	return nil
}

// verdict is what is made of path so far, "" where nothing is.
func (o *overlay) verdict(path tree.Path) Verdict {
	if it := o.get(path); it != nil {
		return it.Verdict
	}
	return ""
}

// share saves memory where the tree has at path what e says: the path's item then holds e, which is held elsewhere
// anyway, in place of an equal copy. Nothing is planned of the path yet.
func (o *overlay) share(path tree.Path, e *tree.Entry) {
	it := o.get(path)
	if it.stage == found && it.From != nil && e != nil && *it.From == *e {
		it.From, it.To = e, e
	}
}

// at returns the planned state of path, looking at the tree the first time.
func (o *overlay) at(path tree.Path) (state, error) {
	if o.seen(path) {
		return o.state(o.get(path)), nil
	}
	entry, err := o.tree.Look(path)
	if link, ok := errors.AsType[*worktree.LinkError](err); ok && o.replaced(link.At) {
		// The link is in the place of a directory that comes back, or is what is
		// wanted there: what lies behind it is not the tree's, so nothing is here.
		entry, err = nil, nil
	}
	if err != nil {
		return state{}, err
	}
	return o.state(o.found(path, worktree.Looked{Entry: entry})), nil
}

// state is what an item's path holds as planned so far.
func (o *overlay) state(it *Item) state {
	s := state{it.To, it.content}
	if it.stage == found && it.To.IsFile() {
		path := it.Path
		s.content = func() (io.ReadCloser, error) { return o.tree.Read(path) }
	}
	return s
}

// NowSpecial is the reason of a path at which no record knows what is there.
const NowSpecial = "now a pipe, socket or device"

// special notes a pipe, socket or device as a conflict, also where edits are to be
// overwritten: it cannot be stored first.
func (o *overlay) special(path tree.Path, err error) bool {
	if _, ok := errors.AsType[*worktree.SpecialError](err); !ok {
		return false
	}
	o.note(path, Edited, NowSpecial)
	return true
}

// replaced says whether the link at path is planned to make place for a directory, or is what the plan leads to.
func (o *overlay) replaced(path tree.Path) bool {
	return o.entry(path).IsDir() || o.verdict(path) == Done
}

// set plans path to become s.
func (o *overlay) set(path tree.Path, s state, v Verdict) {
	it := o.note(path, v, "")
	it.To, it.content, it.stage = s.entry, s.content, planned
}

// byWeight are the verdicts that several sources may give one path, from the lightest to the heaviest, which is the
// plan's. So a later source never softens a conflict, an edit that is overwritten is asked about although another
// source moves the path on, and a move is not forgotten because the next source has nothing to do.
var byWeight = []Verdict{Done, Left, Move, Merged, Marked, Forced, Kept, Edited}

// note records the verdict on path, unless it has a heavier one.
func (o *overlay) note(path tree.Path, v Verdict, reason string) *Item {
	it := o.add(path)
	if slices.Index(byWeight, v) <= slices.Index(byWeight, it.Verdict) {
		return it
	}
	it.Verdict, it.Reason = v, reason
	return it
}

// Describe says how a path differs from what was expected there; "" where it does not.
func Describe(have, want *tree.Entry) string {
	switch {
	case tree.SameEntry(have, want):
		return ""
	case have == nil:
		return "missing"
	case want == nil:
		return "a " + have.Type.String() + " is there now"
	case have.Type != want.Type:
		return "now a " + have.Type.String()
	case have.SHA256 == want.SHA256 && have.Size == want.Size && have.Mode == want.Mode:
		return fmt.Sprintf("its owner is now %s, was %s", have.Owner, want.Owner)
	case have.SHA256 == want.SHA256 && have.Size == want.Size:
		return fmt.Sprintf("mode is now %o, was %o", have.Mode, want.Mode)
	}
	return "edited since"
}

// finish turns the overlay into a plan: parents that are missing are made, and
// the steps are those paths whose state really changes.
func (o *overlay) finish() (*Plan, error) {
	if err := o.parents(); err != nil {
		return nil, err
	}
	p := &Plan{Items: slices.DeleteFunc(o.items, func(it Item) bool { return it.Verdict == "" })}
	o.items, o.index = nil, nil
	if !slices.IsSortedFunc(p.Items, byPath) {
		slices.SortFunc(p.Items, byPath)
	}
	steps := 0
	for i := range p.Items {
		it := &p.Items[i]
		if (it.Verdict == Move || it.Verdict == Forced) && tree.SameEntry(it.From, it.To) {
			it.Verdict = Done
		}
		if it.moves() {
			steps++
		}
	}
	p.Steps = make([]worktree.Step, 0, steps)
	for i := range p.Items {
		it := &p.Items[i]
		if !it.moves() {
			continue
		}
		p.Steps = append(p.Steps, worktree.Step{
			Path: it.Path, From: it.From, To: it.To, Content: it.content,
			// A directory that holds ignored or later files stays.
			MayStay: it.To == nil && it.From.IsDir(),
		})
		p.count(it.From, it.To)
	}
	return p, nil
}

// Rethink asks about the steps, by a function that may change what some of them
// come to, and makes the plan agree with the answer. What then changes nothing is
// no step any more.
func (p *Plan) Rethink(ask func([]worktree.Step) (map[tree.Path]string, error)) (map[tree.Path]string, error) {
	changed, err := ask(p.Steps)
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	p.recount()
	p.Steps = slices.DeleteFunc(p.Steps, func(s worktree.Step) bool { return tree.SameEntry(s.From, s.To) })
	return changed, nil
}

// Leave takes what is done at and below paths out of the plan, and what would take away a directory above one.
func (p *Plan) Leave(paths []tree.Path) {
	if len(paths) == 0 {
		return
	}
	stays := func(path tree.Path, to *tree.Entry) bool {
		return path.Within(paths...) || !to.IsDir() && slices.ContainsFunc(paths, func(stay tree.Path) bool { return stay.Below(path) })
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s worktree.Step) bool { return stays(s.Path, s.To) })
	p.Items = slices.DeleteFunc(p.Items, func(it Item) bool { return stays(it.Path, it.To) })
	p.Stay = append(p.Stay, paths...)
	p.recount()
}

// Displaced are the items whose file goes out of the tree while somebody has it
// open for writing.
func (p *Plan) Displaced() (out []Item) {
	if !slices.ContainsFunc(p.Items, func(it Item) bool { return it.Writing != nil }) {
		return nil
	}
	moved := map[tree.Path]bool{}
	for _, s := range p.Steps {
		moved[s.Path] = s.To == nil || s.From == nil || s.To.Type != s.From.Type || s.To.SHA256 != s.From.SHA256
	}
	for _, it := range p.Items {
		if it.Writing != nil && moved[it.Path] {
			out = append(out, it)
		}
	}
	return out
}

// Open are the paths of the files that somebody has open for writing, as the plan saw them.
func (p *Plan) Open() map[tree.Path]bool {
	open := map[tree.Path]bool{}
	for _, it := range p.Items {
		if it.Writing != nil {
			open[it.Path] = true
		}
	}
	return open
}

func (p *Plan) count(from, to *tree.Entry) {
	switch {
	case tree.SameEntry(from, to):
	case isFile(from) && isFile(to) && from.Type == to.Type:
		p.Modified++
	default:
		if isFile(from) {
			p.Deleted++
		}
		if isFile(to) {
			p.Created++
		}
	}
}

// parents plans a directory above each path that will exist, where the tree has
// none any more: it was taken away after the run, and nobody's bytes are there.
func (o *overlay) parents() error {
	var want []tree.Path
	for i := range o.items {
		it := &o.items[i]
		if it.Verdict != "" && it.To != nil && !it.Verdict.leaves() && !o.entry(it.Path.Parent()).IsDir() {
			want = append(want, it.Path)
		}
	}
	slices.Sort(want)
	for _, path := range want {
		if err := o.makeAbove(path); err != nil {
			return err
		}
	}
	return nil
}

// makeAbove plans the directories above path that are missing.
func (o *overlay) makeAbove(path tree.Path) error {
	for dir := path.Parent(); dir != ""; dir = dir.Parent() {
		s, err := o.at(dir)
		if o.special(dir, err) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.entry.IsDir() {
			return nil
		}
		if s.entry != nil {
			o.note(dir, Edited, "a "+s.entry.Type.String()+" is where a directory has to be")
			return nil
		}
		made := o.dirs[dir]
		if made == nil {
			made = &tree.Entry{Type: tree.Dir, Mode: 0o755}
		}
		o.set(dir, state{entry: made}, Move)
	}
	return nil
}
