package patch

import (
	"bytes"
	"context"
	"errors"
)

// Stays calls f for each run of lines that stay from c's old text to its new one: n lines
// from line old of the one and line new of the other, which count from 0. Lines are split
// at '\n' only, and the runs come in order, as in the hunks of a section. Of lines that
// are too many to be compared none stays. Errors are those of the contents, ctx's and f's.
func Stays(ctx context.Context, c Change, f func(old, new, n int) error) error {
	s := staying{ctx: ctx, f: f}
	if c.Old.Size+c.New.Size <= heldText {
		all := []cut{{sample{at: c.Old.Size}, sample{at: c.New.Size}}}
		s.strict = true
		if err := piecewise(ctx, c, all, s.piece, s.apart); !errors.Is(err, errTooManyLines) {
			return err
		}
		s = staying{ctx: ctx, f: f}
	}
	at, _, err := new(Writer).scout(ctx, c, false)
	if err != nil {
		return err
	}
	return piecewise(ctx, c, at, s.piece, s.apart)
}

// staying is one call of Stays.
type staying struct {
	ctx      context.Context
	f        func(old, new, n int) error
	old, new int  // lines before the piece
	strict   bool // too many lines are an error
}

func (s *staying) run(old, new, n int) error {
	if n == 0 {
		return nil
	}
	return s.f(s.old+old, s.new+new, n)
}

func (s *staying) piece(a, b []byte) error {
	d, err := compare(s.ctx, a, b)
	if errors.Is(err, errTooManyLines) && !s.strict {
		err = s.ends(a, b)
	} else if err == nil {
		err = s.between(d, Lines(a))
	}
	s.old, s.new = s.old+Lines(a), s.new+Lines(b)
	return err
}

// between calls f for what lies between the edits.
func (s *staying) between(d *comparison, lines int) error {
	old, new := 0, 0
	for _, e := range d.edits {
		if err := s.run(old, new, d.skip+e.a0-old); err != nil {
			return err
		}
		old, new = d.skip+e.a1, d.skip+e.b1
	}
	return s.run(old, new, lines-old)
}

// ends calls f for what a and b begin and end with in common.
func (s *staying) ends(a, b []byte) error {
	from := commonHead(a, b)
	tail := commonTail(a[from:], b[from:])
	if err := s.run(0, 0, Lines(a[:from])); err != nil {
		return err
	}
	n := Lines(a[len(a)-tail:])
	return s.run(Lines(a)-n, Lines(b)-n, n)
}

func (s *staying) apart(a, b []byte) error {
	s.old, s.new = s.old+bytes.Count(a, []byte{'\n'}), s.new+bytes.Count(b, []byte{'\n'})
	return nil
}

// Lines counts the lines of data; a last one without '\n' is a line.
func Lines(data []byte) int {
	n := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}
