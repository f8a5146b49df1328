package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"decree/patch"
	"decree/tree"
	"decree/worktree"
)

// A Piece of a plan is what can be chosen by itself: a hunk of a file, its mode, or all that
// happens to a path.
type Piece struct {
	Path tree.Path
	// Sections are the path's in the plan's diff: of a hunk the one section with that hunk
	// alone, of a mode with none. A path that changes its kind has two.
	Sections []*patch.Section
	Hunk     int // counted from 1; 0: it is no hunk
	Hunks    int // of the path
}

// Answer is what is to become of a piece.
type Answer byte

const (
	Yes  Answer = 'y'
	No   Answer = 'n'
	All  Answer = 'a' // this one, and what is left of the path
	None Answer = 'd' // neither this one nor what is left of the path
	Quit Answer = 'q' // neither this one nor anything that is left
)

// A Choice asks about the pieces of a plan.
type Choice struct {
	// Diff is the plan's changes.diff, from the tree as it is to what it would be.
	Diff io.Reader
	// Read returns the bytes of a regular file as it is.
	Read func(path tree.Path) (io.ReadCloser, error)
	Ask  func(*Piece) (Answer, error)
}

// Choose asks about each piece of the plan and leaves out what is not wanted: the paths are
// then in Passed, and their records no longer among the Touched. A directory comes with what
// is made in it, and goes with all that is in it, unasked. An error of Ask is returned, and
// the plan is of no use any more.
func (p *Plan) Choose(c Choice, sources []*Source) error {
	ch := &choosing{Choice: c, ordered: p.Steps, steps: map[tree.Path]*worktree.Step{}, wanted: map[tree.Path]bool{}, clean: map[tree.Path]bool{}}
	for i := range p.Steps {
		ch.steps[p.Steps[i].Path] = &p.Steps[i]
	}
	if err := ch.askAll(); err != nil {
		return err
	}
	ch.directories()
	kept := p.Steps[:0]
	for _, s := range p.Steps {
		if ch.wanted[s.Path] {
			kept = append(kept, s)
		} else {
			ch.passed = append(ch.passed, s.Path)
		}
	}
	p.Steps = kept
	slices.Sort(ch.passed)
	p.Passed = slices.Compact(ch.passed)
	p.recount()
	for i := range p.Items {
		if it := &p.Items[i]; it.Verdict == Marked && ch.clean[it.Path] {
			it.Verdict, it.Reason = Merged, ""
		}
	}
	p.restand(sources)
	return nil
}

// choosing is one call of Choose.
type choosing struct {
	Choice
	ordered []worktree.Step // by path
	steps   map[tree.Path]*worktree.Step
	wanted  map[tree.Path]bool // the steps that stay
	passed  []tree.Path        // paths of which something is left out
	clean   map[tree.Path]bool // paths of which no piece is taken that marks a conflict
	dirs    []tree.Path        // that are made or removed with others, in path order
	quit    bool
}

// askAll asks about the paths in order.
func (c *choosing) askAll() error {
	r := patch.NewReader(c.Diff)
	next, err := r.Next()
	var taken, refused tree.Path // directories whose kind changes, or not, with all below
	for err == nil && !(c.quit && !mayHold(taken, next.Path)) {
		sections := []*patch.Section{next}
		for next, err = r.Next(); err == nil && next.Path == sections[0].Path; next, err = r.Next() {
			sections = append(sections, next)
		}
		path := sections[0].Path
		switch {
		case c.steps[path] == nil:
		case taken != "" && path.Below(taken):
			c.wanted[path] = true
		case refused != "" && path.Below(refused):
		case len(sections) == 1 && c.withOthers(sections[0]):
			c.dirs = append(c.dirs, path)
		default:
			if aerr := c.path(path, sections); aerr != nil {
				return aerr
			}
		}
		if len(sections) == 2 && c.wanted[path] && sections[0].Op == patch.OpRmdir {
			taken = path
		}
		if len(sections) == 2 && !c.wanted[path] && sections[1].Op == patch.OpMkdir {
			refused = path
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// mayHold says whether path, or one after it in the order, may be below the directory that is taken.
func mayHold(taken, path tree.Path) bool { return taken != "" && path < taken+"0" } // '0' follows '/'

// below are the steps of what is in a directory.
func (c *choosing) below(dir tree.Path) []worktree.Step {
	at := func(path tree.Path) int {
		i, _ := slices.BinarySearchFunc(c.ordered, path, func(s worktree.Step, p tree.Path) int { return s.Path.Compare(p) })
		return i
	}
	return c.ordered[at(dir+"/"):at(dir+"0")]
}

// withOthers says whether a directory is made for, or removed with, what is in it.
func (c *choosing) withOthers(sec *patch.Section) bool {
	if sec.Op != patch.OpMkdir && sec.Op != patch.OpRmdir {
		return false
	}
	return len(c.below(sec.Path)) > 0
}

// directories decides about those that were not asked for: a new one comes where something
// in it does, one goes where all in it does.
func (c *choosing) directories() {
	for _, dir := range slices.Backward(c.dirs) {
		some, all := false, true
		for _, s := range c.below(dir) {
			some = some || c.wanted[s.Path] && s.To != nil
			all = all && c.wanted[s.Path]
		}
		c.wanted[dir] = some
		if c.steps[dir].To == nil {
			c.wanted[dir] = all
		}
	}
}

// path asks about the pieces of one path, and makes its step what was wanted of it.
func (c *choosing) path(path tree.Path, sections []*patch.Section) error {
	sec, step := sections[0], c.steps[path]
	if len(sections) > 1 || sec.Op != patch.OpModify || sec.Binary || sec.Old.Type != tree.Regular {
		took, err := c.pieces([]*Piece{{Path: path, Sections: sections}})
		c.wanted[path] = err == nil && took[0]
		return err
	}
	var asked []*Piece
	mode := sec.Old.Mode != sec.New.Mode
	if mode {
		asked = append(asked, &Piece{Path: path, Sections: []*patch.Section{withHunks(sec, nil)}})
	}
	for i := range sec.Hunks {
		asked = append(asked, &Piece{Path: path, Sections: []*patch.Section{withHunks(sec, sec.Hunks[i:i+1])}, Hunk: i + 1, Hunks: len(sec.Hunks)})
	}
	took, err := c.pieces(asked)
	switch {
	case err != nil:
		return err
	case !slices.Contains(took, true):
		return nil
	}
	c.wanted[path] = true
	if !slices.Contains(took, false) {
		return nil
	}
	c.passed = append(c.passed, path)
	to := *step.To
	if mode {
		if !took[0] {
			to.Mode, to.Owner = step.From.Mode, step.From.Owner
		}
		took = took[1:]
	}
	return c.part(step, sec, to, took)
}

func withHunks(sec *patch.Section, hunks []patch.Hunk) *patch.Section {
	one := *sec
	one.Hunks = hunks
	return &one
}

// pieces asks about the pieces of one path in order.
func (c *choosing) pieces(asked []*Piece) ([]bool, error) {
	took := make([]bool, len(asked))
	for i, piece := range asked {
		if c.quit {
			return took, nil
		}
		answer, err := c.Ask(piece)
		if err != nil {
			return nil, err
		}
		switch answer {
		case Yes:
			took[i] = true
		case All:
			for j := i; j < len(took); j++ {
				took[j] = true
			}
			return took, nil
		case None:
			return took, nil
		case Quit:
			c.quit = true
		}
	}
	return took, nil
}

// part has the step bring some of the section's hunks alone, with the rights of to.
func (c *choosing) part(step *worktree.Step, sec *patch.Section, to tree.Entry, took []bool) error {
	if !slices.Contains(took, false) { // all but the mode
		step.To = &to
		return nil
	}
	r, err := c.Read(step.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", tree.Quote(step.Path), err)
	}
	old, err := io.ReadAll(r)
	if err = cmp.Or(err, r.Close()); err != nil {
		return err
	}
	c.clean[step.Path] = true
	for i := range sec.Hunks {
		if took[i] && marksConflict(&sec.Hunks[i]) {
			delete(c.clean, step.Path)
		}
	}
	data, err := sec.Part(old, func(i int) bool { return took[i] })
	if err != nil {
		return err
	}
	to.SHA256, to.Size = tree.Sum(data), int64(len(data))
	step.To = &to
	step.Content = contentOf(data)
	return nil
}

// marksConflict says whether a hunk brings the first of the lines that mark a conflict.
func marksConflict(h *patch.Hunk) bool {
	for line := range h.Lines() {
		if line.Kind == '+' && bytes.HasPrefix(line.Text, []byte("<<<<<<< ")) {
			return true
		}
	}
	return false
}

// passed says whether something of a path was not chosen.
func (p *Plan) passed(path tree.Path) bool {
	_, is := slices.BinarySearch(p.Passed, path)
	return is
}

// recount makes items and figures agree with the steps.
func (p *Plan) recount() {
	to := map[tree.Path]*tree.Entry{}
	p.Created, p.Modified, p.Deleted = 0, 0, 0
	for _, s := range p.Steps {
		to[s.Path] = s.To
		p.count(s.From, s.To)
	}
	for i := range p.Items {
		it := &p.Items[i]
		goal, moves := to[it.Path]
		switch {
		case moves:
			it.To = goal
		case p.passed(it.Path):
			it.To, it.Verdict = it.From, Passed
		}
	}
}

// restand takes the records of which something is left out from the Touched.
func (p *Plan) restand(sources []*Source) {
	for _, src := range sources {
		n := 0
		for t := range src.transitions() {
			if p.passed(t.path) {
				n++
			}
		}
		if n == 0 {
			continue
		}
		p.Touched = slices.DeleteFunc(p.Touched, func(id string) bool { return id == src.ID })
		if i := slices.IndexFunc(p.Standing, func(s Standing) bool { return s.ID == src.ID }); i >= 0 {
			p.Standing[i].Paths += n
		} else {
			p.Standing = append(p.Standing, Standing{src.ID, n})
		}
	}
}
