package project

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"decree/disk"
	"decree/tree"
)

const (
	claimWait  = 10 * time.Second
	claimPause = 5 * time.Millisecond
)

// claim opens the project for writing and makes what is missing of it. What it
// writes, it writes under a lock, so that of many first commands one makes the
// store and the others find it.
func (p *Project) claim(w Where) error {
	for deadline := time.Now().Add(claimWait); ; time.Sleep(claimPause) {
		if err := p.openDecree(); err != nil {
			return err
		}
		f, err := p.examineToWrite(w)
		if err != nil {
			return err
		}
		if err := p.refuseLink(w, f.store); err != nil {
			f.close()
			return err
		}
		if f.bond == bonded && f.formerBase == "" && !p.memoryIsStale(f) {
			p.useFinding(f)
			return p.makeStorePrivate()
		}
		unlock, err := p.lockFirst(w, f)
		if err == nil {
			f.close()
			err = p.writeMissing(w)
			return errors.Join(err, unlock())
		}
		if !errors.Is(err, disk.ErrLocked) {
			f.close()
			return err
		}
		if f.bond == bonded || f.bond == moved || f.bond == orphaned {
			// Its holder is at work: known is enough, and writing it down can wait.
			p.useFinding(f)
			return nil
		}
		f.close()
		if time.Now().After(deadline) {
			if base, ok := errors.AsType[*Error](err); ok {
				return base
			}
			return &HeldError{}
		}
	}
}

// lockFirst takes the lock of the store that was found; where there is none yet, that
// of the base in which it will be, and the root's.
func (p *Project) lockFirst(w Where, f *finding) (release func() error, err error) {
	if f.bond != strangers && f.bond != copied {
		own, root, err := p.lockBoth(f.store, p.Dir, "")
		if err != nil {
			return nil, err
		}
		return func() error { return errors.Join(root(), own()) }, nil
	}
	base, _, err := p.openBase(w)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	if sameBase(p.Disk, base.Path(), p.Root) {
		return tryRoot(p.Dir, Holder{}, false, "") // one lock for both
	}
	own, err := base.TryLock()
	if errors.Is(err, disk.ErrLocked) {
		return nil, &Error{Kind: Refused, Msg: base.Path() + ": another process keeps the directory of stores locked", Err: err,
			Advice: "try again, or name another directory with DECREE_STORE"}
	}
	if err != nil {
		return nil, err
	}
	root, err := tryRoot(p.Dir, Holder{}, false, "")
	if err != nil {
		return nil, errors.Join(err, own())
	}
	return func() error { return errors.Join(root(), own()) }, nil
}

// memoryIsStale says whether the store's note of its root has to be written again.
func (p *Project) memoryIsStale(f *finding) bool {
	self, err := factsOf(p.Dir)
	return err == nil && string(f.mem.Root) == p.Root && *f.mem != newMemory(f.mem.ID, p.Root, self, f.mem.form)
}

// writeMissing writes what is missing; lockFirst's lock is held.
func (p *Project) writeMissing(w Where) error {
	if err := p.openDecree(); err != nil {
		return err
	}
	f, err := p.examineToWrite(w)
	if err != nil {
		return err
	}
	if f.bond == strangers || f.bond == copied {
		p.noteBegun(w, f)
		f.close()
		return p.begin(w)
	}
	p.useFinding(f)
	if f.bond == moved || p.memoryIsStale(f) {
		if err := p.remember(); err != nil {
			return err
		}
	}
	if err := p.EnsureDecree(); err != nil {
		return err
	}
	return p.makeStorePrivate()
}

// noteBegun says how the project that is about to be made is related to one that was here before.
func (p *Project) noteBegun(w Where, f *finding) {
	note, begins := "", "a new history begins here"
	if w.Arriving {
		begins = "the history here is the backup's"
	}
	switch {
	case f.bond == copied:
		note = fmt.Sprintf("%s is a copy of %s; it has its own store and history from now on", p.Root, f.mem.Root)
	case f.nearMemory != nil:
		note = f.hint(begins)
	default:
		return
	}
	if w.Arriving {
		p.Begun = note
	} else {
		p.note("%s", note)
	}
}

// begin makes a new store for this root and then the project.json that names
// it: a death in between leaves a store that remembers the root.
func (p *Project) begin(w Where) error {
	base, pl, err := p.openBase(w)
	if err != nil {
		return err
	}
	defer base.Close()
	if filepath.Clean(pl.base) == filepath.Join(p.Root, filepath.FromSlash(inTree)) {
		pl.base = inTree // it moves with the root
	}
	below := !w.inLayer && p.isBelow(w, pl)
	if below {
		p.note("the store is kept in %s, where a command can delete it: choose a safer place with DECREE_STORE before the first record", p.realBase(w, pl))
	}
	p.ID, p.base, p.form = newID(), pl.base, form{Version: storeNow}
	p.StorePath = filepath.Join(pl.abs(p.Root), p.ID)
	if p.Store, err = MakeDir(base, p.ID, PrivateDir); err != nil {
		return &Error{Kind: Failed, Msg: "store not made", Err: err, Advice: "name a directory that can be written with DECREE_STORE"}
	}
	if below {
		err = ReplaceFile(p.Store, ".gitignore", []byte("*\n"), PrivateFile, true)
	}
	if err = cmp.Or(err, p.remember()); err != nil {
		_ = disk.RemoveTree(base, p.ID)
		return &Error{Kind: Failed, Msg: "store not made", Err: err, Advice: "free some space there, or name another directory with DECREE_STORE"}
	}
	if err := base.Sync(); err != nil {
		return err
	}
	p.Made = true
	return p.EnsureDecree()
}

// linked is the origin of a base to which a link of linkStore leads.
const linked = "a link in the usual place"

// linkName is the name of a link in the usual base that leads to the store of this root.
func (p *Project) linkName() string { return "root-" + tree.Sum([]byte(p.Root)).String()[:32] }

// linkStore has a link in the usual base lead to the store where the config has placed it elsewhere: a command that deletes .decree
// deletes the config too, and with it what says where the undo of that is. Where there is no home, nothing else says it.
func (p *Project) linkStore(w Where) {
	usual, in := w.defaultBases()[0], filepath.Dir(p.StorePath)
	asked, err := w.askedBase(p.Config)
	if err != nil || !asked.config || !sameBase(p.Disk, asked.abs(p.Root), in) || usual.base == inTree || sameBase(p.Disk, usual.base, in) {
		return
	}
	dir, err := makeBase(p.Disk, usual, p.Root)
	if err != nil {
		return
	}
	defer dir.Close()
	if to, err := dir.Readlink(p.linkName()); err == nil && to == p.StorePath {
		return
	}
	_ = dir.Remove(p.linkName()) // of an earlier tree at this path
	_ = dir.Symlink(p.StorePath, p.linkName())
	_ = dir.Sync()
}

// isBelow says whether a base lies in the tree: git takes what is there for the user's.
func (p *Project) isBelow(w Where, pl storeBase) bool {
	rel, err := filepath.Rel(p.Root, p.realBase(w, pl))
	return err == nil && filepath.IsLocal(rel)
}

// FlushNames flushes the names that lead to the store and to what is in .decree. Who writes the
// first record calls it before: a process that has made these may have died before it flushed them.
func (p *Project) FlushNames() error {
	base, err := p.Disk.OpenRoot(filepath.Dir(p.StorePath))
	if err != nil {
		return err
	}
	defer base.Close()
	return cmp.Or(base.Sync(), p.Dir.Sync(), p.Decree.Sync())
}

// remember writes this root into the store.
func (p *Project) remember() error {
	self, err := factsOf(p.Dir)
	if err != nil {
		return err
	}
	return ReplaceJSON(p.Store, memoryFile, newMemory(p.ID, p.Root, self, p.form), PrivateFile, true)
}

// Outdated says whether the store has what an earlier version wrote and is not converted.
func (p *Project) Outdated() bool { return p.form.Version < storeNow || p.form.Converting }

// Converting makes the store one of this version that is being converted: earlier
// versions refuse it from here on. With done it is converted. The lock is held.
func (p *Project) Converting(done bool) error {
	was := p.form
	p.form.Version, p.form.Converting = storeNow, !done
	err := p.remember()
	if err != nil {
		p.form = was
	}
	return err
}

// Reread sees whether another process has converted the store meanwhile.
func (p *Project) Reread() error {
	m, err := readMemory(p.Store)
	if err == nil {
		p.form = m.form
	}
	return err
}

// makeStorePrivate takes the rights to the store's directory from all but its owner.
func (p *Project) makeStorePrivate() error {
	self, err := p.Store.Self()
	if err != nil || self.Mode&0o777 == PrivateDir {
		return err
	}
	base, err := p.Disk.OpenRoot(filepath.Dir(p.StorePath))
	if err != nil {
		return err
	}
	defer base.Close()
	return base.Chmod(p.ID, self, PrivateDir)
}
