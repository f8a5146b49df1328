package cmd

import (
	"fmt"
	"io"
	"strings"

	"decree/project"
	"decree/recorder"
)

// confirmPutBack asks what is to become of a failed run's changes. It is asked
// only when the command had a terminal: hours of visible work are not taken
// away without a word. 'd' shows the diff and asks again.
func (s *session) confirmPutBack(p recorder.PutBack) recorder.Answer {
	s.meter.stop()
	paint := s.paint(s.env.Stderr)
	fmt.Fprintf(s.env.Stderr, "%s the command failed; it changed: %s\n", paint.in(bold, "decree:"), changesInWords(p.Counts))
	s.changedFiles(p.Changes)
	for {
		switch s.ask(fmt.Sprintf("put back %s? [Y/n/d]", count(len(p.Changes), "path")), 'y') {
		case 'y':
			return recorder.Yes
		case 'n':
			return recorder.No
		case 'd':
			if err := s.showPutBack(p.ID); err != nil {
				fmt.Fprintf(s.env.Stderr, "decree: %s\n", s.describe(err))
			}
		default:
			fmt.Fprintln(s.env.Stderr, "y puts them back (the diff is kept), n leaves them, d shows the diff")
		}
	}
}

// allowed asks about a refusal that --yes would have answered: a first record of
// a very large tree, a store in a place that the config asks for. Where nobody is
// there to ask it stays a refusal.
func (s *session) allowed(err error, question string) bool {
	if err == nil || project.KindOf(err) != project.Refused || !strings.Contains(project.HintOf(err), "say --yes") || !s.canAsk() {
		return false
	}
	s.meter.stop()
	fmt.Fprintf(s.env.Stderr, "decree: %s\n", s.describe(err))
	s.reportPaths(err)
	return s.ask(question, 'n') == 'y'
}

// showPutBack shows the diff of a run that has not ended. It goes to the
// terminal that the question is on, since stdout is the command's.
func (s *session) showPutBack(id string) error {
	f, err := s.rec.History().OpenFile(id, "changes.diff")
	if err != nil {
		return err
	}
	defer f.Close()
	return s.pageOn(s.env.Stderr, func(w io.Writer) error {
		_, err := diffView{out: w, paint: s.paint(s.env.Stderr)}.show(f, nil)
		return err
	})
}
