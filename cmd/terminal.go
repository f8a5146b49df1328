package cmd

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"decree/recorder"
)

// isTerminal says whether f is one.
func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// columns is the terminal's width: what COLUMNS says, else what the terminal does, else 80.
func (s *session) columns(f *os.File) int {
	if w, err := strconv.Atoi(s.env.get("COLUMNS")); err == nil && w > 0 {
		return w
	}
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
// letter in lower case, fallback for an empty line. Ctrl-C, Ctrl-Z, the end of the
// input and a signal are 'n': whoever wants to get out changes nothing.
func (s *session) ask(question string, fallback byte) byte {
	s.meter.pause()
	lines := strings.Split(s.fitted(question, s.env.Stderr), "\n")
	for _, line := range lines[:len(lines)-1] {
		fmt.Fprintln(s.env.Stderr, line)
	}
	answer, err := s.readAnswer(lines[len(lines)-1] + " ")
	answer = strings.ToLower(strings.TrimSpace(answer))
	switch {
	case err != nil:
		fmt.Fprintln(s.env.Stderr)
		return 'n'
	case answer == "":
		return fallback
	}
	return answer[0]
}

// readAnswer reads a line with the terminal set so that its keys cause no signals.
// After a signal the goroutine that reads is left alone: nobody asks again then.
func (s *session) readAnswer(prompt string) (string, error) {
	signals := make(chan os.Signal, 1)
	defer heed(signals, endings...)()
	fd := int(s.env.Stdin.Fd())
	usual, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, usual) }()
	keys := struct {
		io.Reader
		io.Writer
	}{keyByKey{s.env.Stdin}, s.env.Stderr}
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		t := term.NewTerminal(keys, prompt)
		_ = t.SetSize(s.columns(s.env.Stderr), 1) // it is only for where a long line is broken
		line, err := t.ReadLine()
		done <- read{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case got := <-signals:
		return "", &recorder.Interrupted{Signal: got}
	}
}

// The keys that mean no. A terminal that asks gives them to decree as they are.
const (
	ctrlC         = 0x03
	ctrlZ         = 0x1a
	ctrlBackslash = 0x1c
)

// keyByKey reads a byte at a time, so that nothing beyond the line is taken
// from whoever reads stdin next. All keys that mean no are Ctrl-C, which ends a line.
type keyByKey struct{ f *os.File }

func (k keyByKey) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := k.f.Read(p[:1])
	if n == 1 && (p[0] == ctrlZ || p[0] == ctrlBackslash) {
		p[0] = ctrlC
	}
	return n, err
}
