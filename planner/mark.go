package planner

import (
	"slices"

	"decree/plan"
	"decree/project"
	"decree/tree"
	"decree/view"
)

// Mark chooses a path of a plan, with all below it, or some hunks of a file. Hunks are
// counted from 1; 0 is what of a file is no hunk, its mode. None: the whole path.
type Mark struct {
	Path  tree.Path
	Hunks []int
}

// checkMarks refuses marks that no plan could have.
func (q Request) checkMarks() error {
	seen := map[tree.Path]bool{}
	for _, m := range q.Marks {
		if err := m.Path.Check(); err != nil {
			return usagef("mark %s", err)
		}
		if seen[m.Path] {
			return usagef("%s is marked twice", view.ShownPath(m.Path))
		}
		seen[m.Path] = true
		if len(m.Hunks) > 0 && !q.chooses() {
			return usagef("of %s paths can be chosen, but no hunks", article(q.Operation))
		}
		if slices.ContainsFunc(m.Hunks, func(n int) bool { return n < 0 }) {
			return usagef("mark %s: hunks are counted from 1", view.ShownPath(m.Path))
		}
	}
	if len(q.Marks) > 0 && len(q.Paths) > 0 && !q.chooses() {
		return usagef("%s takes paths or marks", article(q.Operation))
	}
	if q.Of != "" && len(q.Marks) == 0 {
		return usagef("a plan that marks are of is named, but there are no marks")
	}
	return nil
}

// withPaths turns the marks into paths for an operation that asks about no pieces.
func (q Request) withPaths() Request {
	if q.chooses() {
		return q
	}
	q.Paths = slices.Concat(q.Paths, q.markedPaths())
	return q
}

// markedPaths are the paths of the marks, in their order.
func (q Request) markedPaths() []tree.Path {
	paths := make([]tree.Path, len(q.Marks))
	for i, m := range q.Marks {
		paths[i] = m.Path
	}
	return paths
}

// marking answers the questions about one plan's pieces by marks.
type marking struct {
	marks   map[tree.Path]*marked
	last    tree.Path // all that is marked is before it
	answers []plan.Answer
}

type marked struct {
	hunks []int // sorted
	met   map[int]bool
	all   bool // something of the path, or below it, was asked about
}

func newMarking(marks []Mark) *marking {
	m := &marking{marks: map[tree.Path]*marked{}}
	for _, one := range marks {
		hunks := slices.Clone(one.Hunks)
		slices.Sort(hunks)
		m.marks[one.Path] = &marked{hunks: hunks, met: map[int]bool{}}
		m.last = max(m.last, one.Path+"0") // '0' follows '/'
	}
	return m
}

// chooser is nil where there is nothing to choose.
func (m *marking) chooser(q Request) func(*plan.Piece) (plan.Answer, error) {
	if len(m.marks) == 0 || !q.chooses() {
		return nil
	}
	return func(piece *plan.Piece) (plan.Answer, error) {
		answer := m.answer(piece)
		m.answers = append(m.answers, answer)
		return answer, nil
	}
}

func (m *marking) answer(piece *plan.Piece) plan.Answer {
	if piece.Path >= m.last {
		return plan.Quit
	}
	for at := piece.Path; ; at = at.Parent() {
		if one := m.marks[at]; one != nil && len(one.hunks) == 0 {
			one.all = true
			return plan.All
		}
		if at == "" {
			break
		}
	}
	one := m.marks[piece.Path]
	switch {
	case one == nil:
		return plan.None
	case slices.Contains(one.hunks, piece.Hunk):
		one.met[piece.Hunk] = true
		return plan.Yes
	case piece.Hunk > one.hunks[len(one.hunks)-1]:
		return plan.None
	}
	return plan.No
}

// covers says whether a path, or something of it, is marked.
func (m *marking) covers(path tree.Path) bool {
	for at := path; at != ""; at = at.Parent() {
		if one := m.marks[at]; one != nil && (at == path || len(one.hunks) == 0) {
			return true
		}
	}
	return false
}

// unmet refuses marks of which the plan has nothing: else what was marked would silently not be done.
func (m *marking) unmet(q Request, p *plan.Plan) error {
	if !q.chooses() {
		return nil // the operation refuses PATHs that it does not know
	}
	for _, one := range q.Marks {
		is := m.marks[one.Path]
		missing := len(is.hunks) == 0 && !is.all && !concerns(p, one.Path)
		for _, n := range is.hunks {
			missing = missing || !is.met[n]
		}
		if missing {
			return &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: "the plan has nothing that is marked so: " + markWords(one),
				Advice: "plan without marks, and mark what that shows"}
		}
	}
	return nil
}

// concerns says whether a plan is about a path: it may be there already.
func concerns(p *plan.Plan, path tree.Path) bool {
	return p != nil && slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Path.Within(path) })
}
