package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"decree/disk"
	"decree/tree"
)

// verify looks at every path again, by handles opened anew, and hashes it.
func (x *txn) verify(ctx context.Context, want wanted) error {
	h := newHandles(x.t.root)
	defer h.close()
	return x.each(ctx, func(s *facts) bool { return s.left == "" }, func(s *step) error {
		have, err := x.look(h, s, true)
		if err != nil {
			return err
		}
		return x.compare(s, have, want(s))
	})
}

// compare says how a path differs from what it must be; the mode of a directory
// that we may not look into is given, and compared, last.
func (x *txn) compare(s *step, have state, want *tree.Entry) error {
	switch {
	case have.is(want):
		return nil
	case have.entry.IsDir() && (s.stayed || want.IsDir() && x.hides(want.Mode)):
		return nil
	case have.entry != nil && want != nil && have.entry.Type == tree.Regular && want.Type == tree.Regular && have.entry.SHA256 != want.SHA256:
		return &MismatchError{Path: s.Path, Want: want.SHA256, Have: have.entry.SHA256}
	}
	return fmt.Errorf("is %s, should be %s", describe(have.entry), describe(want))
}

func describe(e *tree.Entry) string {
	if e == nil {
		return "nothing"
	}
	return fmt.Sprintf("a %s of mode %o", e.Type, e.Mode)
}

// checkOut looks at what came out of the tree into a slot: it must be what want
// says and, where the step was checked, the very file that was checked.
func (x *txn) checkOut(s *step, p slots, name string, want *tree.Entry) error {
	have, err := entryAt(p, name, true)
	if err != nil {
		return err
	}
	if !have.is(want) {
		return ErrStranger
	}
	if want == s.From {
		if s.was != nil && !unwritten(*s.was, have.info) {
			return ErrStranger
		}
		s.out = s.was // what came out is as that was
		if s.out == nil {
			info := have.info
			s.out = &info
		}
	}
	return nil
}

// checkQuiet says whether nobody wrote, or can still write, through a handle opened before, to what
// was taken out.
func (x *txn) checkQuiet(s *step) error {
	if s.out == nil || s.out.Kind != disk.Regular {
		return nil
	}
	p, err := x.slots(s)
	if err != nil {
		return err
	}
	defer p.close()
	name := p.out
	if s.seen.in == oldState {
		name = p.in
	}
	st, err := p.Stat(name)
	if err != nil {
		return err
	}
	if !unwritten(*s.out, st) {
		return ErrStranger
	}
	if !x.live || x.open[s.Path] {
		return nil
	}
	f, err := p.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a file that its mode forbids to read cannot be asked
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if f.BeingWritten() {
		return ErrStranger
	}
	return nil
}
