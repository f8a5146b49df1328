package worktree

import (
	"context"
	"errors"
	"io"

	"decree/disk"
	"decree/tree"
)

// what is found at a step's path or in one of its slots.
type what uint8

const (
	nothing  what = iota
	oldState      // what From says
	newState      // what To says
	other         // somebody's
)

// seen is what the three places of a step hold. It is kept up to date by what
// is done; after an error it is looked at again.
type seen struct{ at, in, out what }

// holds is what one of the step's slots holds.
func (s *seen) holds(in slot) *what {
	if in == slotOut {
		return &s.out
	}
	return &s.in
}

// look returns the state of the step's path. Below a link that the plan itself
// takes away, or puts there, nothing is.
func (x *txn) look(h *handles, s *step, unlock bool) (state, error) {
	if missing, err := x.sp.missing(h, s.Path); err != nil || missing {
		return state{}, err
	}
	have, err := look(h, s.Path, unlock)
	if x.planned(err) {
		return state{}, nil
	}
	return have, err
}

// planned says whether err is about a link that the plan takes away or makes.
func (x *txn) planned(err error) bool {
	var link *LinkError
	if !errors.As(err, &link) {
		return false
	}
	above := x.steps.find(link.At)
	return above != nil && (isLink(above.From) || isLink(above.To))
}

// nearestDir opens the directory at path, or the nearest above it that is there and no link leads to.
func (x *txn) nearestDir(path tree.Path) (*handle, tree.Path, error) {
	for {
		d, err := x.h.reach(path)
		if goneDir(err) {
			err = nil
		}
		missing := false
		if err == nil {
			missing, err = x.sp.missing(x.h, d.path)
		}
		if err == nil && !missing {
			return d, d.path, nil
		}
		d.release()
		if err != nil {
			return nil, path, err
		}
		path = d.path.Parent()
	}
}

func isLink(e *tree.Entry) bool { return e != nil && e.Type == tree.Symlink }

// observe looks at the step's path and slots.
func (x *txn) observe(s *step) error {
	have, err := x.look(x.h, s, true)
	switch {
	case notOurs(err): // a missing directory is no error of look
		s.seen.at = other // whatever is behind the link, or in .git, is not the tree's
	case err != nil:
		return err
	default:
		if have, err = x.relock(s, have); err != nil {
			return err
		}
		if have, err = x.withoutTorn(s, have); err != nil {
			return err
		}
		s.seen.at = x.whatAt(s, have)
	}
	if !s.hasNew() && !s.hasOld() {
		return nil
	}
	p, err := x.slots(s)
	if notOurs(err) {
		s.seen.in, s.seen.out = nothing, nothing
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	for _, slot := range [...]slot{slotIn, slotOut} {
		in, err := x.entryInSlot(s, p.Dir, p.name(slot), have)
		if err != nil {
			return err
		}
		*s.seen.holds(slot) = s.whatIn(in)
	}
	return nil
}

// entryInSlot is what a slot of the step holds, whose path holds have. What only a death or
// a power loss left in it is removed.
func (x *txn) entryInSlot(s *step, d disk.Dir, name string, have state) (state, error) {
	in, err := entryAt(d, name, true)
	if err != nil {
		return in, err
	}
	// A rename that was made of a link and an unlink, and stopped between.
	half := in.entry != nil && have.entry != nil && in.info.SameFile(have.info)
	if half || s.whatIn(in) == other && x.torn(s, d, name, in) {
		if err := d.Remove(name); err != nil {
			return in, err
		}
		in = state{}
	}
	return s.relockIn(d, name, in)
}

// withoutTorn removes from the step's path what torn says of it, unless somebody wrote it
// since the journal was: that is an edit. have is what is there. Where the transaction was
// finished the old content is not to be there, whole or torn: it is somebody's.
func (x *txn) withoutTorn(s *step, have state) (state, error) {
	if x.whatAt(s, have) != other || !s.hasOld() || have.info.Mtime >= x.began || x.ext == extDone {
		return have, nil
	}
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return have, err
	}
	defer d.release()
	name := s.Path.Name()
	if guard(d, s.Path) != nil || !x.torn(s, d.Dir, name, have) {
		return have, nil
	}
	if err := d.Remove(name); err != nil {
		return have, err
	}
	s.torn = true
	x.note(tree.Quote(s.Path) + ": its content was torn, as by a power loss; the store has it whole")
	return state{}, nil
}

// torn says whether a file is what is left of the old content after the power went before
// the system had written it: a command need not flush its files. Its end is missing then, or
// parts of it are zeros. The store has it whole, and in a slot like this nobody's edit is lost.
func (x *txn) torn(s *step, d disk.Dir, name string, have state) bool {
	from, in := s.From, have.entry
	if x.live || x.t.opt.Store == nil || !from.IsFile() ||
		!in.IsFile() || in.Size > from.Size || in.SHA256 == from.SHA256 {
		return false
	}
	whole, _, err := x.t.opt.Store.Open(from.SHA256)
	if err != nil {
		return false // then it may be the last copy
	}
	defer whole.Close()
	f, err := openRead(d, name, have.info, true)
	if err != nil {
		return false
	}
	defer f.Close()
	return holdsPartOf(f, whole)
}

// holdsPartOf says whether each byte of r is what whole has in its place, or zero.
func holdsPartOf(r, whole io.Reader) bool {
	part, full := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(r, part)
		if _, werr := io.ReadFull(whole, full[:n]); werr != nil {
			return false
		}
		for i, b := range part[:n] {
			if b != 0 && b != full[i] {
				return false
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}

// relock takes the owner's right to read away again from a file that had it for
// the moment of opening (see openRead), if a death has left it there.
func (x *txn) relock(s *step, have state) (state, error) {
	if _, opened := s.closedMode(have); !opened {
		return have, nil
	}
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return have, err
	}
	defer d.release()
	return s.relockIn(d.Dir, s.Path.Name(), have)
}

func (s *step) relockIn(d disk.Dir, name string, have state) (state, error) {
	mode, opened := s.closedMode(have)
	if !opened {
		return have, nil
	}
	entry := *have.entry
	entry.Mode = mode
	have.entry = &entry
	return have, d.Chmod(name, have.info, mode)
}

// closedMode returns the mode that a file of the step has when nobody is just
// opening it, and whether that is another than it has.
func (s *step) closedMode(have state) (uint32, bool) {
	if !have.entry.IsFile() || have.is(s.From) || have.is(s.To) {
		return 0, false
	}
	for _, e := range [...]*tree.Entry{s.From, s.To} {
		if e == nil {
			continue
		}
		opened := *e
		opened.Mode |= 0o400
		if have.is(&opened) {
			return e.Mode, true
		}
	}
	return 0, false
}

// whatAt says what the state of the path is to the step. Of a directory it is
// the mode that was loosened or not yet given that counts as ours.
func (x *txn) whatAt(s *step, have state) what {
	switch {
	case have.absent():
		return nothing
	case have.special:
		return other
	case have.entry.IsDir():
		switch {
		case !x.ownMode(s, have.entry.Mode):
			return other
		case s.makesDir():
			return newState
		}
		return oldState
	case have.is(s.From):
		return oldState
	case have.is(s.To):
		return newState
	}
	return other
}

// whatIn says what the state of a slot is to the step.
func (s *step) whatIn(have state) what {
	switch {
	case have.absent():
		return nothing
	case s.hasNew() && have.is(s.To):
		return newState
	case s.hasOld() && have.is(s.From):
		return oldState
	}
	return other
}

func (x *txn) observeAll(ctx context.Context) error { return x.each(ctx, all, x.observe) }

func all(*facts) bool { return true }

// newDirMode is the mode that a new directory is made with, until fitDir gives it its owner and more rights. Nobody else gives a directory such a
// mode. The system adds set-group-ID in a directory that has it.
const newDirMode = 0o600

func isNewDirMode(mode uint32) bool { return mode&^tree.SpecialBits == newDirMode }

// loosely says whether have is mode, or mode with all rights for the owner.
func loosely(have, mode uint32) bool { return have == mode || have == mode|0o700 }
