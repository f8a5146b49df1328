package ignorefile

import (
	"bytes"
	"fmt"
	"strings"
)

// Limits of one ignore file, in bytes. A line is counted without its line feed.
const (
	MaxLine = 1 << 20
	MaxFile = 64 << 20
)

// LimitError says that an ignore file is too long to be read. Such a file is
// refused as a whole: leaving out a rule could record a secret.
type LimitError struct {
	Source string // the ignore file, as given to Parse
	Line   int    // the over-long line, from 1; 0 when the file is too long
	Limit  int    // MaxLine or MaxFile
}

func (e *LimitError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: ignore file longer than %d bytes", e.Source, e.Limit)
	}
	return fmt.Sprintf("%s:%d: line longer than %d bytes", e.Source, e.Line, e.Limit)
}

// File is one parsed ignore file. It is immutable and safe for concurrent use.
type File struct {
	source string
	text   string // the whole file; rules are ranges in it

	// rules are those that can decide anything, from the last line to the
	// first: of two that match, the one with the lower number wins.
	rules []Rule

	names    table // "name": by the last component
	suffixes table // "*name": by what follows the star
	paths    table // "/name", "a/b": by the path from the file's directory

	baseGlobs []glob // other rules for the last component
	pathGlobs []glob // other rules for the path
	prog      []token
	sets      []byteSet
}

// Parse parses data, the content of the ignore file that verdicts call source
// ("src/.gitignore"). Every content is valid, so the only error is a *LimitError,
// for a line over MaxLine or a file over MaxFile. Parse keeps no reference to
// data. The File takes memory in proportion to it: about 1 KiB and 40 bytes a rule,
// at the very worst (16 million different rules in 64 MiB) 20 times its length.
func Parse(source string, data []byte) (*File, error) {
	lines, err := countLines(source, data)
	if err != nil {
		return nil, err
	}
	f := &File{source: source, text: string(data)}
	p := parser{file: f}
	start := 0
	if strings.HasPrefix(f.text, "\xef\xbb\xbf") {
		start = 3
	}
	// From the last line to the first, so that a rule which a later one makes
	// void is never stored: a file of one line a million times is one rule.
	for end := len(f.text); end >= start; lines-- {
		begin := start + strings.LastIndexByte(f.text[start:end], '\n') + 1
		p.line(lines, begin, end)
		end = begin - 1
	}
	return f, nil
}

// countLines returns the number of lines, counting an unfinished or empty last
// one, after checking the limits.
func countLines(source string, data []byte) (int, error) {
	if len(data) > MaxFile {
		return 0, &LimitError{Source: source, Limit: MaxFile}
	}
	for n := 1; ; n++ {
		i := bytes.IndexByte(data, '\n')
		if i > MaxLine || i < 0 && len(data) > MaxLine {
			return 0, &LimitError{Source: source, Line: n, Limit: MaxLine}
		}
		if i < 0 {
			return n, nil
		}
		data = data[i+1:]
	}
}

// Len returns the number of rules that can decide anything: comments, blank
// lines, malformed rules and rules repeated by a later line do not count.
func (f *File) Len() int { return len(f.rules) }

// match returns the rule that decides about rel, a path from the file's
// directory whose last component is base, or nil.
func (f *File) match(rel, base string, isDir bool) *Rule {
	best := f.names.find(f, base, isDir)
	best = min(best, f.suffixes.findSuffix(f, base, isDir))
	best = min(best, f.paths.find(f, rel, isDir))
	best = f.matchGlobs(f.baseGlobs, base, isDir, best)
	best = f.matchGlobs(f.pathGlobs, rel, isDir, best)
	if best == noRule {
		return nil
	}
	return &f.rules[best]
}
