package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// question is one that can be answered by y, n, and d: see the difference first.
type question struct {
	text string
	yes  bool   // is what Enter means
	help string // what y, n and d do
	diff func(w io.Writer, paint paint) error
}

// decide asks until there is an answer.
func (s *session) decide(q question) bool {
	keys, enter := "[y/N/d]", byte('n')
	if q.yes {
		keys, enter = "[Y/n/d]", 'y'
	}
	for {
		switch s.ask(q.text+" "+keys, enter) {
		case 'y':
			return true
		case 'n':
			return false
		case 'd':
			// It goes to the terminal that the question is on: stdout may be another's.
			if err := s.pageOn(s.env.Stderr, func(w io.Writer) error { return q.diff(w, s.paint(s.env.Stderr)) }); err != nil {
				fmt.Fprintf(s.env.Stderr, "decree: %s\n", s.describe(err))
			}
		default:
			fmt.Fprintln(s.env.Stderr, q.help)
		}
	}
}

// confirmPutBack asks what is to become of a failed run's changes. It is asked
// only when the command had a terminal: hours of visible work are not taken
// away without a word, and by no single key of somebody who has just ended it.
func (s *session) confirmPutBack(p recorder.PutBack) recorder.Answer {
	s.meter.stop()
	fmt.Fprintf(s.env.Stderr, "%s the command failed; it changed: %s\n", s.paint(s.env.Stderr).in(bold, "decree:"), changesInWords(p.Counts))
	s.changedFiles(p.Changes)
	killed := p.Last.Signal != "" && !p.Last.TimedOut || p.Last.Interrupted != nil
	q := question{
		text: fmt.Sprintf("%s after %s: put back %s?", why(p), roughly(p.Took), changedWords(p.Changes)), yes: !killed,
		help: "y puts them back (the diff is kept), n leaves them, d shows the diff",
		diff: func(w io.Writer, paint paint) error { return s.showPutBack(w, paint, p.ID) },
	}
	if s.decide(q) {
		return recorder.Yes
	}
	return recorder.No
}

// why says in few words why the command counts as failed.
func why(p recorder.PutBack) string {
	text := ending(&recorder.RunResult{Last: p.Last})
	return strings.Replace(text, "exit status ", "exit ", 1)
}

// changedWords counts what is to be put back: "12 files", or the directories where
// there is nothing else.
func changedWords(changes []tree.Change) string {
	files := 0
	for _, c := range changes {
		if !dirOnly(c) {
			files++
		}
	}
	if files == 0 {
		return count(len(changes), "directory")
	}
	return count(files, "file")
}

// allowed asks about a refusal that --yes would have answered: a first record of
// a very large tree, a store in a place that the config asks for. Where nobody is
// there to ask it stays a refusal.
func (s *session) allowed(err error, question string) bool {
	if err == nil || project.KindOf(err) != project.Refused || !project.Asks(err) || !s.canAsk() {
		return false
	}
	s.meter.stop()
	fmt.Fprintf(s.env.Stderr, "decree: %s\n", s.describe(err))
	s.reportPaths(err)
	return s.ask(question, 'n') == 'y'
}

// showPutBack shows the diff of a run that has not ended.
func (s *session) showPutBack(w io.Writer, paint paint, id string) error {
	f, err := s.rec.History().OpenFile(id, history.ChangesFile)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = diffView{out: w, paint: paint}.show(f, nil)
	return err
}

// showPlanDiff shows what a plan would change.
func (s *session) showPlanDiff(ctx context.Context, w io.Writer, paint paint, p *plan.Plan) error {
	diff := recorder.Piped(func(w io.Writer) error { return s.rec.PlanDiff(ctx, w, p) })
	_, err := diffView{out: w, paint: paint}.show(diff, nil)
	return errors.Join(err, diff.Close())
}
