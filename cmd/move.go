package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"decree/plan"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// moveReport is what revert, apply and restore say when they are done.
type moveReport struct {
	result *recorder.MoveResult
	dryRun bool
	did    string // "took back", "applied", "restored"
	what   string // the REFs as given
	paths  bool   // PATHs were given
	back   bool   // of a revert: what still stands is told
}

func (s *session) reportMove(m moveReport) error {
	if s.global.json {
		labels, err := s.allLabels()
		if err != nil {
			return err
		}
		return s.printJSON(view.MoveOf(m.result, m.dryRun, m.notes(), labels))
	}
	m.sayNotes(s)
	p := m.result.Plan
	switch {
	case p == nil || p.Empty():
		if p != nil && slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Verdict == plan.Kept }) {
			s.tell("nothing was changed: the remaining files were edited in the same places")
		} else if p != nil && len(p.Passed) > 0 {
			s.tell("nothing was changed: nothing was chosen")
		} else if p != nil && (len(p.Stay) > 0 || slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Verdict == plan.Left })) {
			s.tell("nothing was changed")
		} else if p != nil && len(p.Items) == 0 && m.paths {
			s.tell("nothing to do: %s changed nothing there", m.what)
		} else {
			s.tell("nothing to do: the tree is already in that state")
		}
		s.left(p)
		return nil
	case m.dryRun:
		s.tell("%s", s.fitted(fmt.Sprintf("this would change %s (%s):", pathsIn(p.Changes()), planWords(p)), s.env.Stdout))
		if s.global.quiet {
			return nil
		}
		return s.writePlan(s.env.Stdout, p, 0)
	}
	if m.result.To.Record != nil {
		m.what = "to " + s.goal(m.result.To)
	}
	s.tell("%s %s: %s", m.did, m.what, planWords(p))
	s.left(p)
	m.tellStanding(s)
	if m.result.Record != nil {
		s.tell("this is record %s; 'decree revert last' undoes it", m.result.Record.ID)
	}
	return nil
}

// sayNotes says what people should know of the move besides what it did.
func (m moveReport) sayNotes(s *session) {
	for _, n := range m.notes() {
		s.note(n)
	}
	for _, dir := range m.stayed() {
		s.say("decree: note: %s is kept: it holds ignored files or files made later, or something is mounted there", shownPath(dir))
	}
}

// tellStanding says what of the records is still in the tree.
func (m moveReport) tellStanding(s *session) {
	if !m.back {
		return
	}
	kept := slices.ContainsFunc(m.result.Plan.Items, func(it plan.Item) bool { return it.Verdict == plan.Kept })
	for _, st := range m.result.Plan.Standing {
		are, them := "are", "them"
		if st.Paths == 1 {
			are, them = "is", "it"
		}
		left := fmt.Sprintf("%s that %s changed %s not taken back", count(st.Paths, "path"), st.ID, are)
		if kept { // a plain revert would refuse
			s.tell("%s: 'decree revert --force %s' takes %s back, over the edits", left, st.ID, them)
			continue
		}
		s.tell("%s: 'decree revert %s' takes %s back", left, st.ID, them)
	}
}

// left names the paths that a plan leaves alone although they differ, and those
// that are to be looked at.
func (s *session) left(p *plan.Plan) {
	if p == nil {
		return
	}
	for _, item := range p.Items {
		switch item.Verdict {
		case plan.Left:
			s.say("decree: note: %s is left alone: it was edited and is ignored now", shownPath(item.Path))
		case plan.Kept:
			s.say("decree: note: %s is left alone: %s", shownPath(item.Path), item.Reason)
		case plan.Marked:
			s.say("decree: note: %s has conflicts to resolve, between <<<<<<< and >>>>>>>: %s", shownPath(item.Path), item.Reason)
		}
	}
}

func (m moveReport) stayed() []tree.Path {
	if m.result.Outcome == nil {
		return nil
	}
	return m.result.Outcome.Stayed
}

func (m moveReport) notes() []string {
	notes := append([]string{}, m.result.Notes...)
	if m.result.Outcome != nil {
		notes = append(notes, m.result.Outcome.Notes...)
	}
	return notes
}

// planWords counts what a plan does; one of directories or modes alone has no files.
func planWords(p *plan.Plan) string {
	if p.Created+p.Modified+p.Deleted == 0 {
		return pathsIn(p.Changes())
	}
	return changeWords(p.Created, p.Modified, p.Deleted, 0, 0)
}

// writePlan lists a plan's steps, at most most of them where that is not 0.
func (s *session) writePlan(out *os.File, p *plan.Plan, most int) error {
	return s.printOn(out, func(w io.Writer) error {
		t := s.fits(&table{}, out, 1)
		t.addChanges(p.Changes(), most)
		return t.write(w)
	})
}

// absolute is path as seen from the working directory; "" stays "".
func (s *session) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.env.Cwd, path)
}

// confirmMove asks before edits are overwritten, or records used that this store has
// never seen; nil where nobody is there.
func (s *session) confirmMove(ctx context.Context) func(*plan.Plan, []string) (bool, error) {
	if !s.canAsk() {
		return nil
	}
	return func(p *plan.Plan, foreign []string) (bool, error) {
		forced := 0
		for _, it := range p.Items {
			if it.Verdict == plan.Forced {
				forced++
			}
		}
		question := fmt.Sprintf("change %s?", pathsIn(p.Changes()))
		if forced > 0 {
			question = fmt.Sprintf("change %s, and overwrite the edits in %d of them?", pathsIn(p.Changes()), forced)
		}
		if p.Empty() {
			question = "go on? no path is changed"
		}
		if len(foreign) > 0 {
			question = fmt.Sprintf("%s is foreign: it is in .decree/runs, but this store has never seen it; %s", list(foreign), question)
		}
		return s.confirmPlan(ctx, p, question)
	}
}

// confirmPlan shows a plan and asks about it; d shows what it would change.
func (s *session) confirmPlan(ctx context.Context, p *plan.Plan, text string) (bool, error) {
	s.meter.pause()
	if err := s.writePlan(s.env.Stderr, p, planLines); err != nil {
		return false, err
	}
	for _, w := range p.Warnings {
		s.say("decree: warning: %s", oneLine(w))
	}
	return s.decide(question{
		text: text, help: "y changes the tree so, n leaves it as it is, d shows the difference",
		diff: func(w io.Writer, paint paint) error { return s.showPlanDiff(ctx, w, paint, p) },
	}), nil
}

// planLines is how much of a plan a question shows.
const planLines = 30

// goal says which state a restore goes to: "what it was before 'agent.sh' (21:41, 3
// minutes ago)".
func (s *session) goal(to recorder.Point) string {
	at := to.Record.Started
	if to.After {
		at = to.Record.Ended
	}
	form := "15:04"
	if local, now := at.In(s.env.Location), s.env.Now().In(s.env.Location); local.YearDay() != now.YearDay() || local.Year() != now.Year() {
		form = "2006-01-02 15:04"
	}
	return fmt.Sprintf("%s (%s, %s)", oneLine(to.Words()), at.In(s.env.Location).Format(form), s.ago(at))
}

// confirmRestore shows what a restore will change and asks.
func (s *session) confirmRestore(ctx context.Context) func(recorder.Point, *plan.Plan) (bool, error) {
	if !s.canAsk() {
		return nil
	}
	return func(to recorder.Point, p *plan.Plan) (bool, error) {
		return s.confirmPlan(ctx, p, fmt.Sprintf("restore to %s: %s?", s.goal(to), planWords(p)))
	}
}
