package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"decree/manifest"
	"decree/plan"
	"decree/recorder"
)

// moveReport is what revert, apply and restore say when they are done.
type moveReport struct {
	result *recorder.MoveResult
	dryRun bool
	did    string // "took back", "applied", "restored"
	what   string // the REFs as given
	back   bool   // of a revert: what still stands is told
}

// stepJSON is one path of a plan for programs; Path is quoted as in the manifest.
type stepJSON struct {
	Path    string       `json:"path"`
	Op      string       `json:"op"`
	Change  string       `json:"change"` // the same word for the same thing in all JSON; Op is older
	Verdict plan.Verdict `json:"verdict"`
	Reason  string       `json:"reason,omitempty"`
	Later   []string     `json:"later,omitempty"`
}

// standingJSON says in how many paths a record's change stays.
type standingJSON struct {
	Record string `json:"record"`
	Paths  int    `json:"paths"`
}

// moveJSON is a move for programs: record is null for a dry run or when there
// was nothing to do.
type moveJSON struct {
	DryRun   bool            `json:"dry_run"`
	Record   json.RawMessage `json:"record"`
	Created  int             `json:"created"`
	Modified int             `json:"modified"`
	Deleted  int             `json:"deleted"`
	Paths    []stepJSON      `json:"paths"`
	Standing []standingJSON  `json:"standing"`
	Stayed   []string        `json:"stayed"`
	Notes    []string        `json:"notes"`
}

func (s *session) reportMove(m moveReport) error {
	if s.global.json {
		return s.printMoveJSON(m)
	}
	for _, n := range m.notes() {
		s.note(n)
	}
	for _, dir := range m.stayed() {
		s.say("decree: note: %s is kept: it holds ignored files or files made later", shownPath(dir))
	}
	p := m.result.Plan
	switch {
	case p == nil || p.Empty():
		if p != nil && slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Verdict == plan.Kept }) {
			s.tell("nothing was changed: the remaining files were edited in the same places")
		} else {
			s.tell("nothing to do: the tree is already in that state")
		}
		s.left(p)
		return nil
	case m.dryRun:
		s.tell("%s", s.fitted(fmt.Sprintf("this would change %s (%s):", pathsOf(p), planWords(p)), s.env.Stdout))
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

// tellStanding says what of the records is still in the tree.
func (m moveReport) tellStanding(s *session) {
	if !m.back {
		return
	}
	for _, st := range m.result.Plan.Standing {
		are, them := "are", "them"
		if st.Paths == 1 {
			are, them = "is", "it"
		}
		s.tell("%s that %s changed %s not taken back: 'decree revert %s' takes %s back", count(st.Paths, "path"), st.ID, are, st.ID, them)
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

func (m moveReport) notes() []string {
	notes := append([]string{}, m.result.Notes...)
	if m.result.Outcome != nil {
		notes = append(notes, m.result.Outcome.Notes...)
	}
	return notes
}

func (m moveReport) stayed() []string {
	if m.result.Outcome == nil {
		return []string{}
	}
	return append([]string{}, m.result.Outcome.Stayed...)
}

func (s *session) printMoveJSON(m moveReport) error {
	out := moveJSON{DryRun: m.dryRun, Paths: []stepJSON{}, Standing: []standingJSON{}, Stayed: quoteAll(m.stayed()), Notes: m.notes()}
	if m.result.Record != nil {
		data, err := s.recordJSON(m.result.Record)
		if err != nil {
			return err
		}
		out.Record = data
	}
	if p := m.result.Plan; p != nil {
		for _, st := range p.Standing {
			out.Standing = append(out.Standing, standingJSON{st.ID, st.Paths})
		}
		out.Created, out.Modified, out.Deleted = p.Created, p.Modified, p.Deleted
		for _, it := range p.Items {
			out.Paths = append(out.Paths, stepJSON{manifestPath(it.Path), changeWord(it.From, it.To), changeWord(it.From, it.To), it.Verdict, it.Reason, it.Later})
		}
	}
	return s.printJSON(out)
}

func quoteAll(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = manifestPath(p)
	}
	return out
}

// planWords counts what a plan does; one of directories or modes alone has no files.
func planWords(p *plan.Plan) string {
	if p.Created+p.Modified+p.Deleted == 0 {
		return pathsOf(p)
	}
	return changeWords(p.Created, p.Modified, p.Deleted, 0, 0)
}

// pathsOf counts what a plan changes as every other view does: files and links, and
// directories by themselves.
func pathsOf(p *plan.Plan) string {
	dirs := 0
	for _, step := range p.Steps {
		if slash(step.From, step.To) != "" {
			dirs++
		}
	}
	return pathsAndDirs(len(p.Steps), dirs)
}

// pathsAndDirs is "2 paths and 1 directory", of so many in all.
func pathsAndDirs(all, dirs int) string {
	switch {
	case dirs == 0:
		return count(all, "path")
	case dirs == all:
		return count(dirs, "directory")
	}
	return count(all-dirs, "path") + " and " + count(dirs, "directory")
}

// writePlan lists a plan's steps, at most most of them where that is not 0.
func (s *session) writePlan(out *os.File, p *plan.Plan, most int) error {
	return s.printOn(out, func(w io.Writer) error {
		tw := s.fits(tabbed(w, 2), out, 1)
		for i, step := range p.Steps {
			if most > 0 && i == most {
				fmt.Fprintf(tw, "  and %s more\n", count(len(p.Steps)-i, "path"))
				break
			}
			fmt.Fprintf(tw, "  %s\t%s\n", changeWord(step.From, step.To), shownPath(step.Path)+slash(step.From, step.To))
		}
		return tw.Flush()
	})
}

// slash marks a directory.
func slash(from, to *manifest.Entry) string {
	if to != nil && to.Type == manifest.Dir || to == nil && from != nil && from.Type == manifest.Dir {
		return "/"
	}
	return ""
}

// changeWord says in a word how a path goes from one state to another.
func changeWord(from, to *manifest.Entry) string {
	switch {
	case from == nil && to == nil:
		return "unchanged"
	case from == nil:
		return "created"
	case to == nil:
		return "deleted"
	case from.Same(*to):
		return "unchanged"
	case from.Type != to.Type:
		return "replaced"
	case from.Type == manifest.Dir, from.SHA256 == to.SHA256 && from.Size == to.Size:
		return "mode"
	}
	return "modified"
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
		s.meter.pause()
		if err := s.showPlan(p); err != nil {
			return false, err
		}
		question := fmt.Sprintf("change %s?", pathsOf(p))
		if forced > 0 {
			question = fmt.Sprintf("change %s, and overwrite the edits in %d of them?", pathsOf(p), forced)
		}
		if len(foreign) > 0 {
			question = fmt.Sprintf("%s is foreign: it is in .decree/runs, but this store has never seen it; %s", list(foreign), question)
		}
		return s.decide(s.planQuestion(ctx, question, p)), nil
	}
}

// planQuestion is a question whose d shows what a plan would change.
func (s *session) planQuestion(ctx context.Context, text string, p *plan.Plan) question {
	return question{text: text, help: "y changes the tree so, n leaves it as it is, d shows the difference",
		diff: func(w io.Writer, paint paint) error { return s.showPlanDiff(ctx, w, paint, p) }}
}

// showPlan shows what a question is about.
func (s *session) showPlan(p *plan.Plan) error {
	if err := s.writePlan(s.env.Stderr, p, planLines); err != nil {
		return err
	}
	for _, w := range p.Warnings {
		s.say("decree: warning: %s", oneLine(w))
	}
	return nil
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
		s.meter.pause()
		if err := s.showPlan(p); err != nil {
			return false, err
		}
		return s.decide(s.planQuestion(ctx, fmt.Sprintf("restore to %s: %s?", s.goal(to), planWords(p)), p)), nil
	}
}
