package cmd

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// isTerminal says whether f is one.
func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// columns is the terminal's width, or 80.
func columns(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// paint colours text for f, or leaves it plain: see the package comment for when.
type paint bool

func (s *session) paint(f *os.File) paint {
	return paint(isTerminal(f) && s.env.get("NO_COLOR") == "" && s.env.get("TERM") != "dumb")
}

// The colours. All sequences are of one length, so that a tabwriter, which
// counts them as text, still aligns columns whose cells all carry one.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	plain  = "\x1b[39m"
	bold   = "\x1b[01m"
	reset  = "\x1b[00m"
)

func (p paint) in(colour, text string) string {
	if !p {
		return text
	}
	return colour + text + reset
}

// canAsk says whether a person is there to answer.
func (s *session) canAsk() bool {
	return !s.global.events && isTerminal(s.env.Stdin) && isTerminal(s.env.Stderr)
}

// ask puts a question on stderr and reads a line; the answer is its first
// letter in lower case, fallback for an empty line, 'n' at the end of the input.
func (s *session) ask(question string, fallback byte) byte {
	s.meter.pause()
	fmt.Fprint(s.env.Stderr, question+" ")
	answer, err := bufio.NewReader(oneByte{s.env.Stdin}).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	if answer != "" {
		return answer[0]
	}
	if err != nil {
		fmt.Fprintln(s.env.Stderr)
		return 'n'
	}
	return fallback
}

// oneByte reads a byte at a time, so that nothing beyond the line is taken
// from whoever reads stdin next.
type oneByte struct{ f *os.File }

func (o oneByte) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return o.f.Read(p[:1])
}
