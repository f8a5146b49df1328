package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"decree/disk"
	"decree/tree"
)

// moveAll makes all moves of a checked and staged transaction, flushes and verifies.
func (x *txn) moveAll(ctx context.Context) error {
	for s := range x.steps.allFacts() {
		s.seen = seen{at: oldState}
		if s.kind == create || s.kind == mkdir {
			s.seen.at = nothing
		}
		if s.hasNew() {
			s.seen.in = newState
		}
	}
	return x.forward(ctx)
}

// forward brings every step to its end, from whatever has been seen of it.
func (x *txn) forward(ctx context.Context) error {
	phase := "move"
	err := x.moves(ctx)
	if err == nil {
		err = x.syncDirs(ctx)
	}
	if err == nil {
		phase = "verify"
		err = x.verify(ctx, wantTo)
	}
	if err == nil {
		err = x.each(ctx, (*facts).hasOld, x.checkQuiet)
	}
	if err == nil {
		err = x.lockDirs(ctx, wantTo)
	}
	if err != nil {
		return &Error{Phase: phase, Path: pathOf(err), Err: err, Moved: true}
	}
	return nil
}

// moves is the order that lets every step find its place: what stands in the
// way of another kind goes first, children before their directory; directories
// come before what is put into them; the rest of the deletes come last.
func (x *txn) moves(ctx context.Context) error {
	away := func(s *facts) bool { return s.under || s.early || s.kind == dirToFile || s.kind == fileToDir }
	for _, part := range [...]func() error{
		func() error { return x.loosen(ctx) },
		func() error { return x.upward(ctx, away, x.goAway) },
		func() error { return x.downward(ctx, (*facts).makesDir, x.makeDir) },
		func() error { return x.each(ctx, (*facts).hasNew, x.comeIn) },
		func() error {
			return x.each(ctx, func(s *facts) bool { return s.kind == remove && !s.under && !s.early }, x.takeOut)
		},
		func() error {
			return x.upward(ctx, func(s *facts) bool { return s.kind == rmdir && !s.under && !s.early }, x.dropDir)
		},
		func() error {
			return x.each(ctx, func(s *facts) bool { return s.kind == chmodFile }, func(s *step) error { return x.chmodFile(s, s.To) })
		},
		func() error { return x.dirModes(ctx, wantTo) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (s *facts) makesDir() bool { return s.kind == mkdir || s.kind == fileToDir }

// goAway takes what stands in the place of another kind out of the tree.
func (x *txn) goAway(s *step) error {
	if s.kind == remove || s.kind == fileToDir {
		return x.takeOut(s)
	}
	return x.dropDir(s)
}

// takeOut renames a file or link away and checks what it took.
func (x *txn) takeOut(s *step) error {
	if s.seen.at != oldState || s.seen.out != nothing {
		return nil // done before
	}
	return x.shift(s, slotOut)
}

// shift renames the path into a slot that is empty: the old content into slotOut, the new one
// into slotIn. If something else came, it goes back at once.
func (x *txn) shift(s *step, to slot) error {
	want := s.To
	if to == slotOut {
		want = s.From
	}
	d, p, done, err := x.both(s)
	if err != nil {
		return err
	}
	defer done()
	name, holds := s.Path.Name(), s.seen.holds(to)
	held := s.seen.at
	if err := d.RenameNew(name, p.Dir, p.name(to)); err != nil {
		return err
	}
	s.seen.at, *holds = nothing, held
	err = x.checkOut(s, p, p.name(to), want)
	if err == nil {
		return nil
	}
	*holds = other
	if berr := p.RenameNew(p.name(to), d.Dir, name); berr != nil {
		return errors.Join(err, berr)
	}
	s.seen.at, *holds = other, nothing
	return err
}

// comeIn puts the staged content in its place.
func (x *txn) comeIn(s *step) error {
	switch {
	case s.seen.at == newState:
		return nil // done before
	case s.seen.in != newState:
		return errors.New("its staged content is missing")
	case s.kind == replace && s.seen.at == oldState:
		return x.swap(s)
	case s.seen.at == nothing:
		return x.putIn(s)
	}
	return &fs.PathError{Op: "rename", Path: string(s.Path), Err: fs.ErrExist}
}

// swap exchanges the path with its staged content and checks what came out;
// where the system cannot exchange, it renames away and in.
func (x *txn) swap(s *step) error {
	d, p, done, err := x.both(s)
	if err != nil {
		return err
	}
	defer done()
	err = x.exchange(s, p, d.Dir, s.From)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := x.takeOut(s); err != nil {
		return err
	}
	return x.putIn(s)
}

// exchange swaps the path and the slot for coming in. If what came out is not
// want, they are swapped back at once: somebody wrote since the check.
func (x *txn) exchange(s *step, p slots, d disk.Dir, want *tree.Entry) error {
	name := s.Path.Name()
	st, err := d.Stat(name)
	if err != nil {
		return err
	}
	if st.Kind == disk.Directory || st.Kind == disk.Special {
		return ErrStranger // a directory with content is never moved
	}
	if err := p.Exchange(p.in, d, name); err != nil {
		return err
	}
	s.seen.at, s.seen.in = s.seen.in, s.seen.at
	err = x.checkOut(s, p, p.in, want)
	if err == nil {
		return nil
	}
	s.seen.in = other
	if berr := p.Exchange(p.in, d, name); berr != nil {
		return errors.Join(err, berr)
	}
	s.seen.at = other
	return errors.Join(err, s.seeSlot(p))
}

// seeSlot looks at what came out of the tree with something that goes back: it
// need not be what stood there a moment ago.
func (s *step) seeSlot(p slots) error {
	in, err := entryAt(p, p.in, true)
	if err == nil {
		s.seen.in = s.whatIn(in)
	}
	return err
}

// putIn renames the staged content to the path, where nothing is.
func (x *txn) putIn(s *step) error {
	d, p, done, err := x.both(s)
	if err != nil {
		return err
	}
	defer done()
	if err := p.RenameNew(p.in, d.Dir, s.Path.Name()); err != nil {
		return err
	}
	s.seen.at, s.seen.in = newState, nothing
	// Where case is folded, the new name may only now be one of the forbidden.
	// What we just put there goes at once: later the name would not be touched.
	err = guard(d, s.Path)
	if err == nil {
		return nil
	}
	if berr := d.RenameNew(s.Path.Name(), p.Dir, p.in); berr != nil {
		return errors.Join(err, berr)
	}
	s.seen.at = nothing
	return errors.Join(err, s.seeSlot(p))
}

// makeDir makes the step's directory, open to us until the end.
func (x *txn) makeDir(s *step) error {
	if s.seen.at == newState {
		return x.refit(s, s.To)
	}
	if err := x.mkdir(s, s.To); err != nil {
		return err
	}
	s.seen.at = newState
	return nil
}

// mkdir makes a directory at the step's path, as fitDir leaves it.
func (x *txn) mkdir(s *step, e *tree.Entry) error {
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return err
	}
	defer d.release()
	name := s.Path.Name()
	if err := d.Mkdir(name, newDirMode); err != nil {
		if missing, _ := x.sp.missing(x.h, s.Path); missing && errors.Is(err, fs.ErrExist) {
			return errors.New("the directory holds, under another spelling of its name, files that are not part of this operation")
		}
		return err
	}
	is, err := d.Stat(name)
	if err != nil {
		return errors.Join(err, d.Rmdir(name))
	}
	if is.Mode&^(newDirMode|tree.SpecialBits) != 0 && is.Dev == x.dev && x.dirMode&0o777 == 0o700 { // else the file system, or the umask, gives modes of its own
		return ErrStranger // it is another one
	}
	s.made = is.Ino
	if err := guard(d, s.Path); err != nil {
		return errors.Join(err, d.Rmdir(name))
	}
	return x.fitDir(s, e)
}

// fitDir gives a new directory the owner and mode of e, for now with all rights for its owner, and no access control list. Until that is
// done its mode is newDirMode.
func (x *txn) fitDir(s *step, e *tree.Entry) error {
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return err
	}
	defer d.release()
	name := s.Path.Name()
	is, err := d.Stat(name)
	if err != nil {
		return err
	}
	at := slots{Dir: d}
	if _, err := x.giveOwner(s, e, at, name, nil); err != nil {
		return err
	}
	mode, err := x.groupMode(e, at, name)
	if err != nil {
		return err
	}
	// No record has lists: what the directory above gives to new ones is none of this one's.
	if err := disk.DropACLs(d, name, is, mode|0o700); refused(err) {
		x.note(fmt.Sprintf("%s: its extended attributes cannot be read, so it may have an access control list of the directory above (%s)", tree.Quote(s.Path), rootCause(err)))
	} else if err != nil {
		return err
	}
	if err := d.Chmod(name, is, mode|0o700); err != nil {
		return err
	}
	if is, err = d.Stat(name); err != nil {
		return err
	}
	if err := keepsMode(s, mode|0o700, is.Mode); err != nil {
		return errors.Join(err, d.Rmdir(name))
	}
	return nil
}

// dropDir removes an empty directory; one that is not empty, or that something is mounted at, may
// stay if the step says so.
func (x *txn) dropDir(s *step) error {
	if s.seen.at != oldState {
		return nil
	}
	err := x.rmdir(s)
	if s.mayStay() && (notEmpty(err) || errors.Is(err, syscall.EBUSY)) {
		s.stayed = true
		return nil
	}
	if err == nil {
		s.seen.at = nothing
	}
	return err
}

func (x *txn) rmdir(s *step) error {
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return err
	}
	defer d.release()
	if err := guard(d, s.Path); err != nil {
		return err
	}
	x.h.forget(s.Path)
	return d.Rmdir(s.Path.Name())
}

func notEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist)
}

// unlist takes the access control list from the child that is, which gets the mode at the
// same moment, if e is known to have none. It says whether there was one.
func unlist(e *tree.Entry, d disk.Dir, name string, is disk.Info, mode uint32) (bool, error) {
	if !unlisted(e) {
		return false, nil
	}
	return disk.DropACL(d, name, is, mode)
}

// unlistOld does it where the step changes the mode alone, and says that the list is gone.
func (x *txn) unlistOld(s *step, e *tree.Entry, d disk.Dir, is disk.Info) error {
	had, err := unlist(e, d, s.Path.Name(), is, e.Mode)
	if had && err == nil {
		x.noteList(s)
	}
	return err
}

func (x *txn) noteList(s *step) {
	x.note(tree.Quote(s.Path) + ": its access control list, which came later, is gone")
}

// chmodFile gives the file that is at the path another mode, through a handle,
// so that it is the file that was checked.
func (x *txn) chmodFile(s *step, want *tree.Entry) error {
	mode := want.Mode
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return err
	}
	defer d.release()
	name := s.Path.Name()
	if err := guard(d, s.Path); err != nil {
		return err
	}
	st, err := d.Stat(name)
	if err != nil {
		return err
	}
	done := st.Mode == mode && s.was == nil // by a process that died, perhaps before it had flushed that
	f, err := openRead(d, name, st, true)
	if done && errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if done {
		return f.Sync()
	}
	if st, err = f.Stat(); err != nil {
		return err
	}
	if s.was != nil && !unwritten(*s.was, st) {
		return ErrStranger
	}
	for _, e := range [...]*tree.Entry{s.From, s.To} {
		if mode&tree.SpecialBits != 0 && e.Special() && e.Mode == mode && !ownedBy(e, st) {
			return ErrStranger // another's file must not get our rights, nor ours another's
		}
	}
	if err := x.unlistOld(s, want, d, st); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return when(x.flushAll == nil, f.Sync) // else with the directories
}
