package page

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"decree/patch"
)

// What a Line of a diff is.
const (
	SectionLine = 's' // a path begins: Section has its facts
	HunkLine    = '@'
	Context     = ' '
	Removed     = '-'
	Added       = '+'
)

// Line is a line of a diff, as a Scanner finds it.
type Line struct {
	Kind    byte
	Section *patch.Section // the section that the line is of: its facts, without hunks
	Index   int            // of the section, counted from 0
	Hunk    patch.Hunk     // that the line is of, without its body
	Number  int            // of the hunk in its section, counted from 1
	Old     int            // the line's number on either side; 0: it is not there
	New     int
	Text    []byte // without sign and newline, valid until the next call; at most LongestText bytes
	Left    int    // how many bytes of the line are not in Text
	NoEnd   bool   // the line has no newline in the file
}

// LongestText is how many bytes of a line are shown.
const LongestText = 16 << 10

// Scanner reads a diff to show it, line by line, in memory that does not grow with it. It
// is no judge of what it reads: patch.Reader is strict, and holds a section. It is for one
// goroutine.
type Scanner struct {
	in     *bufio.Reader
	read   int // lines of the diff
	line   Line
	inHunk bool
	old    int // the numbers of the next line in the hunk
	new    int
}

// NewScanner returns a Scanner of a diff.
func NewScanner(diff io.Reader) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(diff, 64<<10), line: Line{Index: -1}}
}

// Next returns the next line, or io.EOF. What is malformed is a *patch.SyntaxError. The
// Line is the Scanner's own and has other contents after the next call.
func (s *Scanner) Next() (*Line, error) {
	for {
		prefix, err := s.in.Peek(len(patch.FactsPrefix))
		if len(prefix) == 0 {
			return nil, err
		}
		s.read++
		if s.read == 1 {
			if err := s.version(); err != nil {
				return nil, err
			}
			continue
		}
		switch {
		case string(prefix) == patch.FactsPrefix:
			return s.section()
		case s.line.Section == nil:
			return nil, s.malformed("a section expected")
		case prefix[0] == '@':
			return s.hunk()
		case s.inHunk && (prefix[0] == Context || prefix[0] == Removed || prefix[0] == Added):
			return s.text(prefix[0])
		}
		// The lines that other programs read, and the payload of binary files.
		if _, _, err := s.take(0); err != nil {
			return nil, err
		}
	}
}

func (s *Scanner) malformed(reason string) error {
	return &patch.SyntaxError{Line: s.read, Reason: reason}
}

func (s *Scanner) version() error {
	text, _, err := s.take(len(patch.VersionLine) + 1)
	if err != nil {
		return err
	}
	if string(text) != patch.VersionLine {
		return s.malformed(fmt.Sprintf("not a changes.diff: %q expected", patch.VersionLine))
	}
	return nil
}

// take reads a line and returns at most so many bytes of it, and how many more it has.
func (s *Scanner) take(most int) (text []byte, left int, err error) {
	part, err := s.in.ReadSlice('\n')
	if err == nil {
		part = part[:len(part)-1]
		n := min(len(part), most)
		return part[:n], len(part) - n, nil
	}
	for {
		if err == nil {
			part = part[:len(part)-1]
		}
		n := min(len(part), most-len(text))
		text = append(text, part[:n]...)
		left += len(part) - n
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = s.in.ReadSlice('\n')
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return text, left, err
}

func (s *Scanner) section() (*Line, error) {
	text, left, err := s.take(patch.MaxFacts)
	if err != nil {
		return nil, err
	}
	if left > 0 {
		return nil, s.malformed("a section's facts are too long")
	}
	sec, err := patch.ParseFacts(text[len(patch.FactsPrefix):])
	if err != nil {
		return nil, s.malformed(err.Error())
	}
	s.inHunk = false
	s.line = Line{Kind: SectionLine, Section: sec, Index: s.line.Index + 1}
	return &s.line, nil
}

func (s *Scanner) hunk() (*Line, error) {
	text, _, err := s.take(100)
	if err != nil {
		return nil, err
	}
	old, rest, ok := strings.Cut(strings.TrimPrefix(string(text), "@@ -"), " +")
	new, _, closed := strings.Cut(rest, " @@")
	var h patch.Hunk
	if !ok || !closed || !parseRange(old, &h.OldStart, &h.OldLines) || !parseRange(new, &h.NewStart, &h.NewLines) {
		return nil, s.malformed("a hunk's head expected")
	}
	s.inHunk, s.old, s.new = true, h.OldStart, h.NewStart
	l := &s.line
	*l = Line{Kind: HunkLine, Section: l.Section, Index: l.Index, Hunk: h, Number: l.Number + 1}
	return l, nil
}

func parseRange(text string, start, lines *int) bool {
	first, n, has := strings.Cut(text, ",")
	if !has {
		n = "1"
	}
	var err, err2 error
	*start, err = strconv.Atoi(first)
	*lines, err2 = strconv.Atoi(n)
	return err == nil && err2 == nil && *start >= 0 && *lines >= 0
}

// text reads a line of a hunk.
func (s *Scanner) text(kind byte) (*Line, error) {
	l := &s.line
	text, left, err := s.take(LongestText + 1)
	if err != nil {
		return nil, err
	}
	// The text lies in the buffer, which the look ahead may move.
	l.Kind, l.Text, l.Left, l.Old, l.New = kind, bytes.Clone(text[1:]), left, 0, 0
	if kind != Added {
		l.Old = s.old
		s.old++
	}
	if kind != Removed {
		l.New = s.new
		s.new++
	}
	next, _ := s.in.Peek(1)
	l.NoEnd = len(next) == 1 && next[0] == '\\'
	return l, nil
}
