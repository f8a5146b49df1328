package plan

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
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
	Sections []Section
	Objects  Objects
	diff     io.ReaderAt
}

// Section is what a source keeps of a section of its diff: of very many paths these are the
// most of what a plan holds. Old and New are nil where nothing is.
type Section struct {
	Path         tree.Path
	Old, New     *tree.Entry
	offset, size int64 // where it stands in the diff, in bytes
	op           patch.Op
	binary       bool
	stored       bool // its contents are not in the diff
	Shared       bool // others changed the path in the same time
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
		src.Sections = append(src.Sections, Section{s.Path, s.Old, s.New, s.Offset, s.Size, s.Op, s.Binary, s.Stored, s.Shared})
	}
}

// rereads are the buffers through which sections are read again: each file of a large
// diff has one.
var rereads = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// reread reads a section again, with its hunks and payloads.
func (s *Source) reread(sec *Section) (*patch.Section, error) {
	body := io.NewSectionReader(s.diff, sec.offset, sec.size)
	b := rereads.Get().(*bufio.Reader) // patch.NewReader makes none of its own then
	defer rereads.Put(b)
	b.Reset(io.MultiReader(strings.NewReader(patch.VersionLine+"\n"), body))
	return patch.NewReader(b).Next()
}

// transition is all that one source says of one path: a change of kind has two
// sections, one that takes the old away and one that brings the new.
type transition struct {
	path     tree.Path
	old, new *tree.Entry
	sections []Section
	source   *Source
}

// transitions are made as they are asked for: a list of them would be another copy of the
// whole diff's facts.
func (s *Source) transitions() iter.Seq[transition] {
	return func(yield func(transition) bool) {
		for rest := s.Sections; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].Path == rest[0].Path {
				n++
			}
			t := transition{rest[0].Path, rest[0].Old, rest[n-1].New, rest[:n], s}
			if !yield(t) {
				return
			}
			rest = rest[n:]
		}
	}
}

// shared says whether others changed the path in the same time.
func (t *transition) shared() bool {
	return slices.ContainsFunc(t.sections, func(s Section) bool { return s.Shared })
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
	if !goal.IsFile() {
		return nil
	}
	src, sec := t.source, t.bearer(d) // what the functions hold is there for each path
	switch {
	case sec.op == patch.OpMode:
		return cur
	case sec.stored:
		return func() (io.ReadCloser, error) { return src.stored(sec.Path, goal) }
	}
	return func() (io.ReadCloser, error) {
		data, err := src.goalBytes(sec, d, cur)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	}
}

// goalBytes computes the goal's bytes from what the section holds.
func (s *Source) goalBytes(light *Section, d Direction, cur Content) ([]byte, error) {
	sec, err := s.reread(light)
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

// stored opens the content of e, which the path has on one of its sides.
func (s *Source) stored(path tree.Path, e *tree.Entry) (io.ReadCloser, error) {
	if s.Objects == nil {
		return nil, tree.At(path, errors.New("its content is not in the diff, and there is no store to read it from"))
	}
	r, _, err := s.Objects.Open(e.SHA256)
	if err != nil {
		return nil, tree.At(path, err)
	}
	return r, nil
}

// bearer is the section that holds the goal's content: the deletion when going
// back over a change of kind, the creation when going forth.
func (t *transition) bearer(d Direction) *Section {
	if d == Back {
		return &t.sections[0]
	}
	return &t.sections[len(t.sections)-1]
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
