package tui

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"decree/patch"
	"decree/tree"
	"decree/view"
)

// document is a diff as rows: for each section its title, then for each hunk its head and its
// lines. It is read once to find where rows are, and holds a position for every apart-th of them;
// rows are read again from the nearest one when they are shown. It is safe for concurrent use.
type document struct {
	open func() (io.ReadCloser, error)

	mu       sync.Mutex
	sections []section
	places   []place
	rows     int
	dirs     map[tree.Path]bool // the sections that are of directories
	whole    bool               // all of it was read, or err says why not
	err      error
	sum      tree.Hash // of its bytes, when it is whole

	reading sync.Mutex // of the handle
	handle  io.ReadCloser

	begun int        // of the window
	held  []diffLine // the rows that were read last
}

// section is what happens to a path.
type section struct {
	path           tree.Path
	word           string // "created"
	note           string // what there is to say where no lines are: "binary, 3 KiB"
	row            int    // of its title
	hunks          int
	added, removed int
}

// place is where a row begins, and what a scanner knows there.
type place struct {
	row int
	scanState
}

type scanState struct {
	at     int64
	sec    int // of the line before; -1: none
	hunk   int
	inHunk bool
}

// diffLine is a row.
type diffLine struct {
	kind byte // 's' a title, '@' a hunk's head, ' ', '+', '-', '\\'
	sec  int
	hunk int    // counted from 1; 0 in a title
	text string // without its sign; of more than longestRow bytes it says how many are not shown
}

const (
	apart      = 128
	longestRow = 4 << 10
	windowRows = 512
)

// newDocument is a document of what open gives; it is read by index.
func newDocument(open func() (io.ReadCloser, error)) *document {
	return &document{open: open, dirs: map[tree.Path]bool{}}
}

// index reads the diff once. grown is called now and then, when there is more to show.
func (d *document) index(ctx context.Context, grown func()) error {
	err := d.scanAll(ctx, grown)
	d.mu.Lock()
	d.whole, d.err = true, err
	d.mu.Unlock()
	return err
}

func (d *document) scanAll(ctx context.Context, grown func()) error {
	f, err := d.open()
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	s := newLineScanner(io.TeeReader(f, sum), scanState{sec: -1})
	for n := 0; ; n++ {
		if n%(64<<10) == 64<<10-1 {
			if grown(); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		before := s.scanState
		line, facts, err := s.next()
		if errors.Is(err, io.EOF) {
			d.mu.Lock()
			d.sum = tree.Hash(sum.Sum(nil))
			d.mu.Unlock()
			return nil
		}
		if err == nil {
			err = d.add(before, line, facts)
		}
		if err != nil {
			return err
		}
	}
}

// add notes a row.
func (d *document) add(before scanState, line diffLine, facts []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows%apart == 0 {
		d.places = append(d.places, place{d.rows, before})
	}
	switch line.kind {
	case 's':
		sec, err := patch.ParseFacts(facts)
		if err != nil {
			return err
		}
		if sec.Op == patch.OpMkdir || sec.Op == patch.OpRmdir || sec.Op == patch.OpDirMode {
			d.dirs[sec.Path] = true
		}
		d.sections = append(d.sections, section{path: sec.Path, word: view.OpWord(sec.Op), note: noteOf(sec), row: d.rows})
	case '@':
		d.sections[line.sec].hunks++
	case '+':
		d.sections[line.sec].added++
	case '-':
		d.sections[line.sec].removed++
	}
	d.rows++
	return nil
}

// noteOf says what changes of a path beside its lines.
func noteOf(sec *patch.Section) string {
	size := func(e *tree.Entry) string {
		if e == nil {
			return "nothing"
		}
		return view.Size(e.Size)
	}
	var notes []string
	switch {
	case sec.Op == patch.OpMkdir || sec.Op == patch.OpRmdir:
		notes = append(notes, "directory")
	case sec.Binary:
		notes = append(notes, "binary, "+size(sec.Old)+" -> "+size(sec.New))
	}
	if sec.Old != nil && sec.New != nil && sec.Old.Mode != sec.New.Mode && sec.New.Type != tree.Symlink {
		notes = append(notes, "mode "+tree.FormatMode(sec.Old.Mode)+" -> "+tree.FormatMode(sec.New.Mode))
	}
	if e := cmp.Or(sec.New, sec.Old); e != nil && e.Type == tree.Symlink {
		notes = append(notes, "symlink")
	}
	return strings.Join(notes, ", ")
}

// state is how far the document is known.
func (d *document) state() (rows, sections int, whole bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows, len(d.sections), d.whole, d.err
}

// size is how many rows and sections are known.
func (d *document) size() (rows, sections int) {
	rows, sections, _, _ = d.state()
	return rows, sections
}

// counts are how many files and directories it changes; a path that becomes a file or a directory is both.
func (d *document) counts() (files, directories int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sections) - len(d.dirs), len(d.dirs)
}

// count is how many files and directories it changes, in words.
func (d *document) count() string { return view.PathsIn(d.counts()) }

// isDir says whether a section of a path is about a directory.
func (d *document) isDir(path tree.Path) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dirs[path]
}

// within are the paths of the sections that are of a path or of what lies below it.
func (d *document) within(path tree.Path) (out []tree.Path) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.sections {
		if d.sections[i].path.Within(path) {
			out = append(out, d.sections[i].path)
		}
	}
	return out
}

func (d *document) section(i int) section {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sections[i]
}

// lines are at most n rows from one on. They are read again from the nearest place before them.
func (d *document) lines(from, n int) ([]diffLine, error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	rows, _ := d.size()
	from = max(0, min(from, rows))
	n = min(n, rows-from)
	if from >= d.begun && from+n <= d.begun+len(d.held) {
		return d.held[from-d.begun : from-d.begun+n], nil
	}
	begin := max(0, from-windowRows/2)
	held, err := d.read(begin, min(rows-begin, max(windowRows, n+windowRows/2)))
	if err != nil {
		return nil, err
	}
	d.begun, d.held = begin, held
	end := min(len(held), from-begin+n)
	return held[min(from-begin, end):end], nil
}

func (d *document) read(from, n int) ([]diffLine, error) {
	d.mu.Lock()
	i, _ := slices.BinarySearchFunc(d.places, from+1, func(p place, row int) int { return cmp.Compare(p.row, row) })
	if i == 0 {
		d.mu.Unlock()
		return nil, nil
	}
	p := d.places[i-1]
	d.mu.Unlock()
	if err := d.seek(p.at); err != nil {
		return nil, err
	}
	s := newLineScanner(d.handle, p.scanState)
	var out []diffLine
	for row := p.row; row < from+n; row++ {
		line, _, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("the diff is no longer what it was: %w", err)
		}
		if row >= from {
			out = append(out, line)
		}
	}
	return out, nil
}

// seek has the handle stand at an offset: a file is moved, a stream is read again from its beginning
// where that lies behind it.
func (d *document) seek(at int64) error {
	if s, ok := d.handle.(io.Seeker); ok {
		_, err := s.Seek(at, io.SeekStart)
		return err
	}
	if d.handle != nil {
		d.handle.Close()
	}
	f, err := d.open()
	if err != nil {
		d.handle = nil
		return err
	}
	d.handle = f
	if s, ok := f.(io.Seeker); ok {
		_, err = s.Seek(at, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f, at)
	}
	return err
}

func (d *document) close() {
	d.reading.Lock()
	defer d.reading.Unlock()
	if d.handle != nil {
		d.handle.Close()
		d.handle = nil
	}
}

// sectionAt is the section that a row is of.
func (d *document) sectionAt(row int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, found := slices.BinarySearchFunc(d.sections, row, func(s section, row int) int { return cmp.Compare(s.row, row) })
	if !found {
		i--
	}
	return i
}

// lineScanner reads the rows of a diff. What a line is, its first byte says: in a hunk every
// line begins with ' ', '+', '-' or '\', so that no content looks like a head.
type lineScanner struct {
	in *bufio.Reader
	scanState
}

func newLineScanner(r io.Reader, from scanState) *lineScanner {
	return &lineScanner{in: bufio.NewReaderSize(r, 64<<10), scanState: from}
}

// next is the next row, with a section's facts, or io.EOF.
func (s *lineScanner) next() (line diffLine, facts []byte, err error) {
	for {
		first, err := s.in.Peek(len(patch.FactsPrefix))
		if len(first) == 0 {
			return line, nil, cmp.Or(err, io.EOF)
		}
		kind := first[0]
		switch {
		case string(first) == patch.FactsPrefix:
			facts, err := s.take(patch.MaxFacts)
			s.sec, s.hunk, s.inHunk = s.sec+1, 0, false
			return diffLine{kind: 's', sec: s.sec}, bytes.TrimPrefix(facts, []byte(patch.FactsPrefix)), err
		case s.sec >= 0 && kind == '@':
			text, err := s.take(longestRow)
			s.hunk, s.inHunk = s.hunk+1, true
			return diffLine{kind: '@', sec: s.sec, hunk: s.hunk, text: string(text)}, nil, err
		case s.inHunk && (kind == ' ' || kind == '+' || kind == '-' || kind == '\\'):
			begin := s.at
			text, err := s.take(longestRow)
			if err != nil {
				return line, nil, err
			}
			shown := string(text[1:])
			if left := s.at - begin - int64(len(text)); left > 1 { // but for the end of the line
				shown += " … and " + view.Size(left-1) + " of this line that are not shown"
			}
			return diffLine{kind: kind, sec: s.sec, hunk: s.hunk, text: shown}, nil, nil
		}
		if _, err := s.take(0); err != nil {
			return line, nil, err
		}
	}
}

// take reads a line, and returns at most so many bytes of it.
func (s *lineScanner) take(most int) (text []byte, err error) {
	for {
		part, err := s.in.ReadSlice('\n')
		s.at += int64(len(part))
		if keep := min(len(part), most-len(text)); keep > 0 {
			text = append(text, part[:keep]...)
		}
		if err == nil || errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(text, []byte("\n")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
