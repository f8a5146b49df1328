package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"decree/history"
	"decree/plan"
	"decree/planner"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// sheet is what is asked about before something is done: what will happen in words, the paths, the
// diff, and the command line that does the same.
type sheet struct {
	diffView
	title    string
	question string
	command  string
	notes    []string

	request  planner.Request
	id       string                 // of the plan; "": do is what is done
	nothing  bool                   // the plan has nothing to do
	hunks    bool                   // hunks can be marked
	conflict *planner.ConflictError // the plan was refused
	do       func(ctx context.Context) (text string, err error)
	end      context.CancelFunc
}

type (
	plannedMsg struct {
		request planner.Request
		plan    *planner.Planned
		err     error
	}
	performedMsg struct {
		request planner.Request
		done    *planner.Done
		err     error
	}
)

// act begins an operation on the row at the cursor: it is planned, and shown.
func (m *model) act(operation string) tea.Cmd {
	if why := m.barred[operation]; why != "" {
		m.refuse(why)
		return nil
	}
	q, why := requestFor(operation, m.target(operation))
	if why != "" {
		m.say("%s", why)
		return nil
	}
	chosen := m.record.marks
	m.working = "planning"
	return func() tea.Msg {
		p, err := m.planMarked(m.ctx, q, chosen)
		return plannedMsg{q, p, err}
	}
}

// target is the row that an operation is about: beside a published candidate it is the race whose others are discarded.
func (m *model) target(operation string) *timeline.Row {
	row := m.current()
	if operation != "discard" || row == nil || !published(row) {
		return row
	}
	if race := m.raceOf(row.ID); race != nil {
		return race
	}
	return row
}

// raceOf is the race that a record is a candidate of; nil where it is of none.
func (m *model) raceOf(id string) *timeline.Row {
	i := slices.IndexFunc(m.list.rows, func(r timeline.Row) bool {
		return r.Kind == timeline.Race && slices.ContainsFunc(r.Inner, func(in timeline.Row) bool { return in.ID == id })
	})
	if i < 0 {
		return nil
	}
	return &m.list.rows[i]
}

// plan plans a request, beside the screen.
func (m *model) plan(q planner.Request) tea.Cmd {
	m.working = "planning"
	return func() tea.Msg {
		p, err := m.plans.Plan(m.ctx, q)
		return plannedMsg{q, p, err}
	}
}

// requestFor is what an operation on a row asks the planner for, or why it cannot be asked for.
func requestFor(operation string, r *timeline.Row) (q planner.Request, why string) {
	q.Operation = operation
	if operation == "undo" || operation == "redo" {
		return q, ""
	}
	if !actable(r) {
		return q, "Choose a record first: this line is none that can be acted on"
	}
	switch operation {
	case "restore":
		q.Ref = r.Record.ID
		if n := len(r.Inner); n > 0 {
			q.Ref = r.Inner[n-1].ID // the state before all of them
		}
	case "publish":
		if r.Kind == timeline.Race {
			return q, "Choose one of its candidates first"
		}
		if q.Ref = r.ID; r.Record.Draft == nil || !r.Record.Draft.Waits() {
			return q, "This is no draft that waits"
		}
	case "discard":
		for _, one := range each(r) {
			if d := one.Record; d != nil && d.Draft != nil && d.Draft.Waits() {
				q.Refs = append(q.Refs, d.ID)
			}
		}
		if len(q.Refs) == 0 {
			return q, "This is no draft that waits"
		}
	default: // revert and apply
		if r.Kind == timeline.Race {
			return q, "Choose one of its candidates first"
		}
		for _, one := range each(r) {
			if one.Kind == timeline.Record && one.Changed != "" && one.Changed != "nothing" && one.Record.Status != history.StatusOpen {
				q.Refs = append(q.Refs, one.ID)
			}
		}
		if len(q.Refs) == 0 {
			return q, "It changed nothing that can be taken back or brought again"
		}
	}
	return q, ""
}

// restoreWords say what a restore of a row restores: a checkpoint is a state, and of anything else it is the one
// before it.
func restoreWords(r *timeline.Row) string {
	if r != nil && r.Kind == timeline.Record && view.IsCheckpoint(r.Record) {
		return "restore to it"
	}
	return "restore to before it"
}

// discardWords say what a discard of a row gives up.
func discardWords(r *timeline.Row) string {
	if r != nil && r.Kind == timeline.Race && slices.ContainsFunc(r.Inner, func(in timeline.Row) bool { return published(&in) }) {
		return "discard the others"
	}
	return "discard"
}

// published says whether a row is a draft that was, as a whole.
func published(r *timeline.Row) bool {
	return r.Record != nil && r.Record.Draft != nil && r.Record.Draft.State == history.DraftPublished
}

// each are the rows inside a row, or itself.
func each(r *timeline.Row) []timeline.Row {
	if len(r.Inner) > 0 {
		return r.Inner
	}
	return []timeline.Row{*r}
}

// titles are the operations as a sheet is called.
var titles = map[string]string{
	"undo": "Undo", "redo": "Redo", "revert": "Revert", "apply": "Apply", "restore": "Restore", "publish": "Publish", "discard": "Discard",
}

// planned shows what was planned, or why it was not.
func (m *model) planned(msg plannedMsg) tea.Cmd {
	m.working = ""
	var conflict *planner.ConflictError
	var stale *planner.StaleError
	switch {
	case errors.As(msg.err, &conflict):
		m.closeSheet()
		m.sheet = conflictSheet(msg.request, conflict)
		return nil
	case errors.As(msg.err, &stale) && len(msg.request.Marks) > 0: // the new plan would be about more than was marked
		m.closeSheet()
		m.say("%s", marksAreStale)
		return m.loading("")
	case errors.As(msg.err, &stale):
		cmd := m.show(stale.New)
		m.sheet.notes = append([]string{"The files or the records changed meanwhile: this is the new plan."}, m.sheet.notes...)
		return cmd
	case msg.err != nil:
		m.fail(msg.err)
		return nil
	}
	return m.show(msg.plan)
}

// marksAreStale is said where a plan of marks is no longer what would be done.
const marksAreStale = "The files or the records changed meanwhile; nothing was done. Look again at what is marked, and repeat it."

// conflictSheet lists what is in the way, and offers what can be done about it.
func conflictSheet(q planner.Request, c *planner.ConflictError) *sheet {
	s := &sheet{title: titles[q.Operation] + ": conflict", request: q, conflict: c, question: clean(c.Error()) + "."}
	for _, it := range c.Items {
		s.notes = append(s.notes, itemLine(it))
	}
	if c.Merge != nil {
		s.command = c.Merge.Command
	}
	for _, w := range c.Ways() {
		s.question += " " + w.Key + " " + w.Words
	}
	return s
}

// show opens the sheet of a plan.
func (m *model) show(p *planner.Planned) tea.Cmd {
	m.closeSheet()
	s := &sheet{title: titles[p.Request.Operation], request: p.Request, id: p.ID, question: p.Question, command: p.Command, hunks: choosesHunks(p.Request.Operation) && len(p.Request.Marks) == 0}
	s.nothing = len(p.Drafts) == 0 && p.Created+p.Modified+p.Deleted == 0 && len(p.Paths) == 0 // directories are not counted
	for _, n := range p.Notes {
		s.notes = append(s.notes, clean(n))
	}
	for _, n := range p.Passed {
		s.notes = append(s.notes, clean(fmt.Sprintf("passed over: %s (%s)", n.Record, n.Reason)))
	}
	ctx, end := context.WithCancel(m.ctx)
	s.end = end
	s.diffView = diffView{marks: marks{}, doc: planDocument(ctx, func(ctx context.Context, w io.Writer) error { return m.plans.Diff(ctx, w, p.ID) })}
	m.sheet = s
	return m.index(ctx, s.doc)
}

func (m *model) closeSheet() {
	if s := m.sheet; s != nil && s.end != nil {
		s.end()
		s.doc.close()
	}
	m.sheet = nil
}

// confirm does what the sheet says; what is marked in it is planned first.
func (m *model) confirm() tea.Cmd {
	s := m.sheet
	switch {
	case m.working != "":
		return nil
	case s.conflict != nil:
		return nil
	case len(s.marks) > 0:
		q := s.request
		q.Of, q.Marks = s.id, s.marks.requested()
		return m.plan(q)
	case s.nothing:
		m.closeSheet()
		return nil
	case s.do != nil:
		m.working = "working"
		return func() tea.Msg {
			text, err := s.do(m.ctx)
			return doneMsg{text: text, err: err}
		}
	}
	m.working = "working"
	return func() tea.Msg {
		done, err := m.plans.Perform(m.ctx, s.id)
		return performedMsg{s.request, done, err}
	}
}

// wayOut goes the way out of a conflict that a key stands for.
func (m *model) wayOut(name string) tea.Cmd {
	for _, w := range m.sheet.conflict.Ways() {
		switch {
		case w.Key != name || m.working != "":
		case w.Merge != nil:
			return m.show(w.Merge)
		default:
			return m.plan(w.Request)
		}
	}
	return nil
}

// performed says what was done.
func (m *model) performed(msg performedMsg) tea.Cmd {
	m.working = ""
	var stale *planner.StaleError
	switch {
	case errors.As(msg.err, &stale):
		return m.planned(plannedMsg{msg.request, nil, msg.err})
	case msg.err != nil:
		m.closeSheet()
		m.fail(msg.err)
		return m.loading("")
	}
	m.closeSheet()
	m.record.marks = marks{}
	text := m.didWords(msg.request, msg.done)
	if race := m.raceOf(msg.request.Ref); race != nil && msg.request.Operation == "publish" {
		if q, _ := requestFor("discard", race); len(slices.DeleteFunc(q.Refs, func(id string) bool { return id == msg.request.Ref })) > 0 {
			text += " · x discards the others"
		}
	}
	m.say("%s", text)
	return m.loading("")
}

// did are the operations when they are done.
var did = map[string]string{
	"undo": "Undone", "redo": "Redone", "revert": "Reverted", "apply": "Applied", "restore": "Restored", "publish": "Published", "discard": "Discarded",
}

// didWords is what was done, its proof, and how it is taken back.
func (e *engine) didWords(q planner.Request, d *planner.Done) string {
	operation := q.Operation
	parts := []string{did[operation]}
	if operation == "publish" {
		if r, err := e.Read.History().Get(q.Ref); err == nil && r.Draft != nil && r.Draft.Name != "" {
			parts[0] += " " + view.OneLine(r.Draft.Name)
		}
	}
	if marked := markedPaths(d); len(marked) > 0 {
		what := "conflicts are marked in " + view.List(marked)
		if len(marked) == len(d.Paths) {
			parts[0] = "Not " + strings.ToLower(did[operation]) + " yet"
		}
		parts = append(parts, what+": choose there, between <<<<<<< and >>>>>>>")
	}
	if d.Proof != "" {
		parts = append(parts, d.Proof)
	}
	switch operation {
	case "discard":
	case "undo":
		parts = append(parts, "U brings it again")
	default:
		parts = append(parts, "u takes it back")
	}
	return strings.Join(parts, " · ")
}

// markedPaths are the paths in which conflicts were marked.
func markedPaths(d *planner.Done) (out []string) {
	for _, step := range d.Paths {
		if step.Verdict == plan.Marked {
			out = append(out, view.ShownQuoted(step.Path))
		}
	}
	return out
}

// ask opens a sheet for what has no plan of paths.
func (m *model) ask(title, question string, line []string, do func(context.Context) (string, error)) {
	m.closeSheet()
	m.sheet = &sheet{title: title, question: question, command: tree.ShellWords(append([]string{"decree"}, line...)), do: do}
}
