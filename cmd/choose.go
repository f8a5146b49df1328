package cmd

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/patch"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

func patchFlag(dst *bool) cli.Flag {
	return boolFlag(dst, "ask about each hunk, and do only what is wanted; off a terminal the answers are read from stdin, one a line", "patch", "p")
}

// choiceHelp is what the answers mean.
const choiceHelp = `y  this one
n  not this one
a  this one, and all that is left of the file
d  not this one, nor anything that is left of the file
q  not this one, nor anything that is left
Ctrl-C changes nothing at all`

// chooser asks about hunks for -p: on the terminal, or by answers that are piped in. Nil
// where -p was not given.
func (s *session) chooser(wanted bool) (recorder.Chooser, error) {
	switch {
	case !wanted:
		return nil, nil
	case s.canAsk():
		var shown tree.Path
		return func(piece *plan.Piece) (plan.Answer, error) {
			defer func() { shown = piece.Path }()
			return s.choosePiece(piece, piece.Path != shown)
		}, nil
	case isTerminal(s.env.Stdin) || s.env.Stdin == nil:
		return nil, usagef("--patch asks, and there is no terminal to ask on").Hintf("give the answers on stdin, one a line: y, n, a, d or q; or name PATHs")
	}
	return answers(s.env.Stdin), nil
}

// choosePiece shows a piece of a plan, the first of a file with its name, and asks about it.
func (s *session) choosePiece(piece *plan.Piece, first bool) (plan.Answer, error) {
	s.meter.pause()
	view := diffView{out: s.env.Stderr, paint: s.paint(s.env.Stderr)}
	show := view.section
	if !first && piece.Hunk > 0 {
		show = func(sec *patch.Section) error { return view.hunk(sec.Hunks[0]) }
	}
	for _, sec := range piece.Sections {
		if err := show(sec); err != nil {
			return plan.Quit, err
		}
	}
	prompt := s.line.verb + " " + pieceWords(piece) + "? [y/n/a/d/q/?] "
	for {
		line, err := s.readAnswer(prompt)
		if err != nil {
			fmt.Fprintln(s.env.Stderr)
			return plan.Quit, &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "not confirmed"}
		}
		if answer, ok := answerOf(line); ok {
			return answer, nil
		}
		fmt.Fprintln(s.env.Stderr, choiceHelp)
	}
}

// pieceWords name a piece in a question.
func pieceWords(piece *plan.Piece) string {
	sec := piece.Sections[len(piece.Sections)-1]
	switch {
	case piece.Hunks == 1:
		return "this hunk"
	case piece.Hunk > 0:
		return fmt.Sprintf("this hunk (%d of %d)", piece.Hunk, piece.Hunks)
	case sec.Op == patch.OpModify && !sec.Binary && len(sec.Hunks) == 0, sec.Op == patch.OpMode:
		return "this mode"
	case isDirOp(sec.Op):
		return "this directory"
	}
	return "this file"
}

func answerOf(line string) (plan.Answer, bool) {
	line = strings.ToLower(strings.TrimSpace(line))
	if len(line) != 1 || !strings.Contains("ynadq", line) {
		return 0, false
	}
	return plan.Answer(line[0]), true
}

// answers reads one line for each piece. Where they end too soon nothing is changed.
func answers(in io.Reader) recorder.Chooser {
	lines := bufio.NewScanner(in)
	n := 0
	return func(piece *plan.Piece) (plan.Answer, error) {
		n++
		if !lines.Scan() {
			err := &project.Error{Kind: project.Refused, State: project.Unchanged, Err: lines.Err(),
				Msg:    fmt.Sprintf("stdin has no answer %d, about %s", n, shownPath(piece.Path)),
				Advice: "-p needs a line for each hunk, or 'q' in the end; without a terminal it shows none of them: 'decree diff' does"}
			return plan.Quit, err
		}
		answer, ok := answerOf(lines.Text())
		if !ok {
			return plan.Quit, usagef("answer %d on stdin is %s", n, quoteWord(lines.Text())).Hintf("it is y, n, a, d or q").Unchanged()
		}
		return answer, nil
	}
}
