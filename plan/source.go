package plan

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"decree/patch"
	"decree/tree"
)

// Source is one record's changes.diff, read whole and found sound, with the
// place that has the bytes of sections above the inline limits. It keeps the
// facts of each section; contents are read from the diff again when needed, so
// that a diff larger than memory can be planned.
type Source struct {
	ID       string
	Sections []*patch.Section // without hunks and payloads
	Objects  Objects
	diff     io.ReaderAt
}

// ReadSource reads a changes.diff of size bytes to its end. A malformed one is
// a *patch.SyntaxError with its line; nothing was looked at in the tree yet.
func ReadSource(id string, diff io.ReaderAt, size int64, objects Objects) (*Source, error) {
	src := &Source{ID: id, Objects: objects, diff: diff}
	r := patch.NewReader(io.NewSectionReader(diff, 0, size))
	for {
		s, err := r.Next()
		if err == io.EOF {
			return src, nil
		}
		if err != nil {
			return nil, err
		}
		s.Hunks, s.OldData, s.NewData, s.Raw = nil, nil, nil, nil
		src.Sections = append(src.Sections, s)
	}
}

// rereads are the buffers through which sections are read again: each file of a large
// diff has one.
var rereads = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// reread reads a section again, with its hunks and payloads.
func (s *Source) reread(sec *patch.Section) (*patch.Section, error) {
	body := io.NewSectionReader(s.diff, sec.Offset, sec.Size)
	b := rereads.Get().(*bufio.Reader) // patch.NewReader makes none of its own then
	defer rereads.Put(b)
	b.Reset(io.MultiReader(strings.NewReader("# decree changes 1\n"), body))
	return patch.NewReader(b).Next()
}

// transition is all that one source says of one path: a change of kind has two
// sections, one that takes the old away and one that brings the new.
type transition struct {
	path     tree.Path
	old, new *tree.Entry
	sections []*patch.Section
	source   *Source
}

func (s *Source) transitions() []transition {
	var out []transition
	for _, sec := range s.Sections {
		if n := len(out); n > 0 && out[n-1].path == sec.Path {
			t := &out[n-1]
			t.new, t.sections = sec.New, append(t.sections, sec)
			continue
		}
		out = append(out, transition{path: sec.Path, old: sec.Old, new: sec.New, sections: []*patch.Section{sec}, source: s})
	}
	return out
}

// shared says whether others changed the path in the same time.
func (t *transition) shared() bool {
	return slices.ContainsFunc(t.sections, func(s *patch.Section) bool { return s.Shared })
}

// ends returns the side that must be there and the one that is wanted.
func (t *transition) ends(d Direction) (want, goal *tree.Entry) {
	if d == Back {
		return t.new, t.old
	}
	return t.old, t.new
}

// content gives the bytes of the goal, computed from those of cur where the
// diff holds only the difference.
func (t *transition) content(d Direction, cur Content) Content {
	_, goal := t.ends(d)
	if goal == nil || goal.Type != tree.Regular {
		return nil
	}
	sec := t.bearer(d)
	switch {
	case sec.Op == patch.OpMode:
		return cur
	case sec.Stored:
		return func() (io.ReadCloser, error) { return t.stored(goal) }
	}
	return func() (io.ReadCloser, error) {
		data, err := t.goalBytes(sec, d, cur)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	}
}

// goalBytes computes the goal's bytes from what the section holds.
func (t *transition) goalBytes(light *patch.Section, d Direction, cur Content) ([]byte, error) {
	sec, err := t.source.reread(light)
	if err != nil {
		return nil, err
	}
	if sec.Binary && d == Back {
		return sec.OldData, nil
	}
	if sec.Binary {
		return sec.NewData, nil
	}
	have, err := readAll(cur, sec.Op)
	if err != nil {
		return nil, err
	}
	if d == Back {
		return sec.Reverse(have)
	}
	return sec.Forward(have)
}

func (t *transition) stored(goal *tree.Entry) (io.ReadCloser, error) {
	if t.source.Objects == nil {
		return nil, tree.At(t.path, errors.New("its content is not in the diff, and there is no store to read it from"))
	}
	r, _, err := t.source.Objects.Open(goal.SHA256)
	if err != nil {
		return nil, tree.At(t.path, err)
	}
	return r, nil
}

// bearer is the section that holds the goal's content: the deletion when going
// back over a change of kind, the creation when going forth.
func (t *transition) bearer(d Direction) *patch.Section {
	if d == Back {
		return t.sections[0]
	}
	return t.sections[len(t.sections)-1]
}

// readAll returns the present bytes that a hunk applies to; a section that
// creates or deletes holds its content whole and starts from nothing.
func readAll(cur Content, op patch.Op) ([]byte, error) {
	if cur == nil || op == patch.OpCreate || op == patch.OpDelete {
		return nil, nil
	}
	r, err := cur()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
