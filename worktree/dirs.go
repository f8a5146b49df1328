package worktree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"decree/disk"
	"decree/tree"
)

// wanted gives the state that a step is brought to: its To or its From.
type wanted func(*step) *tree.Entry

func wantTo(s *step) *tree.Entry   { return s.To }
func wantFrom(s *step) *tree.Entry { return s.From }

// lacksRights says whether the mode keeps us, its owner, from changing a
// directory's entries. root is kept from nothing.
func (x *txn) lacksRights(mode uint32) bool { return x.uid != 0 && mode&0o700 != 0o700 }

// hides says whether the mode keeps us from looking into the directory.
func (x *txn) hides(mode uint32) bool { return x.uid != 0 && mode&0o500 != 0o500 }

// loosen makes those directories writable whose entries change and whose mode
// the journal knows; dirModes and lockDirs give them their modes in the end.
func (x *txn) loosen(ctx context.Context) error {
	if x.uid == 0 {
		return nil
	}
	busy := map[tree.Path]bool{}
	for s := range x.steps.all() {
		if !s.modeOnly() {
			busy[s.Path.Parent()] = true
		}
	}
	return x.downward(ctx, (*facts).ofDir, func(s *step) error {
		if !busy[s.Path] {
			return nil
		}
		return x.loosenOne(s)
	})
}

func (x *txn) loosenOne(s *step) error {
	d, st, err := x.statDir(s)
	if err != nil || d == nil {
		return err
	}
	defer d.release()
	if !x.lacksRights(st.Mode) || st.UID != x.uid || !x.ownMode(s, st.Mode) {
		return nil
	}
	if isNewDirMode(st.Mode) && s.kind != chmodDir {
		return x.fitDir(s, s.eitherDir())
	}
	return d.Chmod(s.Path.Name(), st, st.Mode|0o700)
}

// eitherDir is what of From and To is a directory, as at least one is.
func (s *step) eitherDir() *tree.Entry {
	if s.To.IsDir() {
		return s.To
	}
	return s.From
}

// tookItsPlace says whether the directory st at the step's path is another one than the step is about. Where others may rename, as in
// a directory that they may write, it could get a private one in the place of ours, which we would open.
func (x *txn) tookItsPlace(s *step, d *handle, st disk.Info) (bool, error) {
	if !x.ownMode(s, st.Mode) {
		return true, nil
	}
	is := s.made
	if s.kind == chmodDir && s.was != nil {
		is = s.was.Ino
	}
	if is != 0 || !x.madeBefore(s, st.Mode) {
		return is != 0 && is != st.Ino, nil
	}
	above, err := d.Self()
	return err == nil && (above.Mode&0o022 != 0 || above.UID != x.uid), err
}

// ownMode says whether a directory's mode is one that the transaction found or
// gave; every kind but chmodDir may have made the directory, forth or back, and the system gives a new one the set-group-ID of
// the directory above.
func (x *txn) ownMode(s *step, mode uint32) bool {
	bits := ^uint32(0)
	if s.kind != chmodDir {
		bits = ^uint32(tree.SpecialBits)
	}
	is := func(e *tree.Entry) bool { return e.IsDir() && loosely(mode&bits, e.Mode&bits) }
	return is(s.From) || is(s.To) || s.kind != chmodDir && isNewDirMode(mode) || x.madeBefore(s, mode)
}

// madeBefore says whether a recovery can only take a directory of that mode for one that the step made if an earlier version of decree did.
func (x *txn) madeBefore(s *step, mode uint32) bool {
	const newDirModeBefore = 0o700
	is := func(e *tree.Entry) bool { return e.IsDir() && e.Mode&0o777 == newDirModeBefore }
	return !x.live && s.kind != chmodDir && mode&0o777 == newDirModeBefore && !is(s.From) && !is(s.To)
}

// statDir returns the parent's handle and the Info of the directory at the
// step's path; no handle where there is no directory.
func (x *txn) statDir(s *step) (*handle, disk.Info, error) {
	d, err := x.h.dir(s.Path.Parent())
	if notOurs(err) {
		return nil, disk.Info{}, nil
	}
	if err != nil {
		return nil, disk.Info{}, err
	}
	st, err := d.Stat(s.Path.Name())
	if err == nil && st.Kind == disk.Directory {
		err = guard(d, s.Path)
		if err == nil {
			return d, st, nil
		}
	}
	d.release()
	if errors.Is(err, fs.ErrNotExist) || notOurs(err) {
		err = nil
	}
	return nil, disk.Info{}, err
}

// mode returns the mode that the directory at the step's path shall have in
// the end, and whether it is the step's to say.
func (s *step) mode(want wanted) (uint32, bool) {
	if s.left != "" {
		return 0, false
	}
	if e := want(s); e.IsDir() {
		return e.Mode, true
	}
	if s.stayed {
		return s.From.Mode, true
	}
	return 0, false
}

// dirModes gives directories their modes, but for those that we could then not
// look into: these have to wait for the verification.
func (x *txn) dirModes(ctx context.Context, want wanted) error {
	return x.each(ctx, (*facts).ofDir, func(s *step) error { return x.giveMode(s, want) })
}

// giveMode gives one directory its mode, unless we could then not look into it.
func (x *txn) giveMode(s *step, want wanted) error {
	if mode, ok := s.mode(want); !ok || x.hides(mode) {
		return nil
	}
	return x.setMode(s, want)
}

// lockDirs gives the others theirs, children before parents.
func (x *txn) lockDirs(ctx context.Context, want wanted) error {
	return x.upward(ctx, (*facts).ofDir, func(s *step) error {
		if mode, ok := s.mode(want); !ok || !x.hides(mode) {
			return nil
		}
		return x.setMode(s, want)
	})
}

// flushMode flushes a directory that has its mode already: of a process that died, perhaps before it had flushed that.
// Those with other changes are flushed with these.
func (x *txn) flushMode(s *step) error {
	if s.kind != chmodDir || s.was != nil {
		return nil
	}
	self, err := x.h.dir(s.Path)
	if errors.Is(err, fs.ErrPermission) {
		return nil // its mode forbids it
	}
	if err != nil {
		return err
	}
	defer self.release()
	return self.Sync()
}

func (x *txn) setMode(s *step, want wanted) error {
	mode, _ := s.mode(want)
	d, st, err := x.statDir(s)
	if err != nil || d == nil {
		return err // the verification finds what is missing
	}
	defer d.release()
	if e := want(s); e.IsDir() && s.kind != chmodDir {
		if mode, err = x.groupMode(e, slots{Dir: d}, s.Path.Name()); err != nil {
			return err
		}
	}
	if st.Mode == mode {
		return x.flushMode(s)
	}
	if strange, err := x.tookItsPlace(s, d, st); strange || err != nil {
		return cmp.Or(err, ErrStranger)
	}
	self, err := x.h.dir(s.Path) // before its mode forbids it
	if errors.Is(err, fs.ErrPermission) && x.lacksRights(st.Mode) && st.UID == x.uid {
		if err := d.Chmod(s.Path.Name(), st, st.Mode|0o700); err != nil {
			return err
		}
		self, err = x.h.dir(s.Path)
	}
	if err != nil {
		return err
	}
	defer self.release()
	if e := want(s); s.kind == chmodDir {
		if err := x.unlistOld(s, e, d, st); err != nil {
			return err
		}
	}
	if err := d.Chmod(s.Path.Name(), st, mode); err != nil {
		return err
	}
	return self.Sync()
}

// syncDirs flushes every directory whose entries changed, once, and new ones.
// The flushes wait together: one commit of the file system serves many.
func (x *txn) syncDirs(ctx context.Context) error {
	if x.flushAll != nil {
		err := x.flushAll() // with the modes of files
		if err == nil {
			return nil
		}
		// It may be another's error: what is flushed by itself tells of its own. A file system
		// that could not write its journal fails each of these flushes, too.
		x.flushAll = nil
		if serr := x.syncModes(ctx); serr != nil {
			return errors.Join(err, serr)
		}
	}
	changed := map[tree.Path]bool{}
	for s := range x.steps.all() {
		if !s.modeOnly() {
			changed[s.Path.Parent()] = true
		}
		if s.kind != chmodDir && s.ofDir() {
			changed[s.Path] = true
		}
	}
	dirs := slices.Sorted(maps.Keys(changed))
	return each(ctx, x.flushers(), len(dirs), func(i int) error {
		d, err := x.h.dir(dirs[i])
		if goneDir(err) {
			return nil
		}
		if err != nil {
			return tree.At(dirs[i], err)
		}
		defer d.release()
		return d.Sync()
	})
}

// syncModes flushes each file of which the mode alone was changed.
func (x *txn) syncModes(ctx context.Context) error {
	return x.each(ctx, func(s *facts) bool { return s.kind == chmodFile }, func(s *step) error {
		d, err := x.h.dir(s.Path.Parent())
		if goneDir(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer d.release()
		st, err := d.Stat(s.Path.Name())
		if errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind != disk.Regular {
			return nil // the verification finds what is missing
		}
		if err != nil {
			return err
		}
		f, err := openRead(d, s.Path.Name(), st, true)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}

// goneDir says whether err is that a directory is not there any more, or a link in its place.
func goneDir(err error) bool { return errors.Is(err, errNoDir) || errors.As(err, new(*LinkError)) }

// notOurs says whether err is that a directory is not there, or that what stands in its place is not the tree's: a
// link, or another spelling of .git or .decree.
func notOurs(err error) bool { return goneDir(err) || errors.As(err, new(*ForbiddenError)) }

func (x *txn) flushers() int {
	if x.t.opt.Workers == 1 {
		return 1
	}
	return share(flushers, 8)
}
