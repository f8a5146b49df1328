package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"decree/disk"
)

const (
	lockFile = "lock.json"
	// lockDir is the directory of the store whose flock is the lock. Nobody but the
	// store's owner can open it.
	lockDir = "lock"
	// lockInStore is Holder.Lock of who holds lockDir's.
	lockInStore = "store"
)

// Holder is who holds the lock, for the message of the one who waits.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Start   time.Time `json:"start"`
	Command []string  `json:"command"`
	Run     string    `json:"run,omitempty"` // the open record's id
	// Boot and Born tell the process from a later one of the same number: the name of
	// this boot of the system, and when the process started, as the system counts it.
	Boot string `json:"boot,omitempty"`
	// Isolated, in a lease: what the run's command changes is not in the tree.
	Isolated bool   `json:"isolated,omitempty"`
	Born     uint64 `json:"born,omitempty"`
	// Lock is where the lock lies: "store"; "" of an earlier version of decree, which
	// locks the root alone.
	Lock string `json:"lock,omitempty"`
	// Tmp are the marks of what the process makes in .decree/tmp, see TmpName, and of
	// what processes before it may have left there.
	Tmp []string `json:"tmp,omitempty"`
}

// Working says whether the holder is a process that may still work; host is this machine's name.
func (h Holder) Working(host string) bool {
	return h.PID != 0 && (h.Host != host || alive(h.PID))
}

// Elsewhere says whether the holder is a process of another machine than this one, of this name and
// in this boot: from here nobody can tell whether it lives, as most network file systems do not tell other machines
// of a directory's lock. One kernel with two names, as containers have them, is one machine.
func (h Holder) Elsewhere(host, boot string) bool {
	return h.PID != 0 && h.Host != host && (h.Boot == "" || h.Boot != boot)
}

// alive says whether there is a process of this number.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// HeldError says that another process holds the lock of a root.
type HeldError struct {
	Holder Holder // PID 0: unknown, as when the other has its store elsewhere
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return "another decree is at work on this tree"
	}
	s := fmt.Sprintf("another decree is at work on this tree: process %d on %s since %s", e.Holder.PID, e.Holder.Host, e.Holder.Start.Format(time.RFC3339))
	if len(e.Holder.Command) > 0 {
		s += ": " + strings.Join(e.Holder.Command, " ")
	}
	if e.Holder.Run != "" {
		s += " (record " + e.Holder.Run + ")"
	}
	return s
}

// Category is Refused: nothing was changed.
func (e *HeldError) Category() Kind { return Refused }

// Hint is the next step to take.
func (e *HeldError) Hint() string { return "wait for it with '--wait 5m', or end that process" }

const (
	firstPause = 5 * time.Millisecond
	longPause  = 100 * time.Millisecond
	// dyingWait is how long the lock of a holder that is gone is waited for. The kernel
	// may not have closed its handles yet, and a process that it had just forked has
	// them until it executes its own program.
	dyingWait = 2 * time.Second
)

// Lock takes the project's lock: flock on a directory of the store, which nobody else
// can open, and beside it on the root's own handle, which two stores of one root share
// and earlier versions of decree lock alone. It tries for wait, and once if wait is 0;
// then, or when ctx ends, the error is a *HeldError or ctx's. unlock must be called
// once; the lock ends with the process in any case.
func (p *Project) Lock(ctx context.Context, h Holder, wait time.Duration) (unlock func(), err error) {
	ctxWait, cancel := context.WithTimeout(ctx, max(wait, 0))
	defer cancel()
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		own, err := p.tryLock(h.Host)
		if err == nil {
			err = p.clearStore()
			if err == nil {
				h.Tmp, err = p.gatherMarks()
			}
			if err = errors.Join(err, writeHolder(p.Store, lockFile, h, lockInStore)); err != nil {
				p.unlock(p.Store, own)
				return nil, err
			}
			store := p.Store
			return func() { p.unlock(store, own) }, nil
		}
		if !errors.Is(err, disk.ErrLocked) {
			return nil, err
		}
		select {
		case <-ctxWait.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			note := p.Holder()
			if note.PID == 0 || note.Working(h.Host) || time.Since(begin) > dyingWait {
				return nil, &HeldError{Holder: note}
			}
			time.Sleep(pause)
		case <-time.After(pause):
		}
	}
}

// tryLock takes the store's lock, and the root's unless it is held since a lease was
// taken.
func (p *Project) tryLock(host string) (own func() error, err error) {
	if len(p.roots) > 0 {
		own, err = p.lockStore(p.Store)
	} else {
		var root func() error
		if own, root, err = p.lockBoth(p.Store, p.Dir, host); err == nil {
			p.roots = append(p.roots, root)
		}
	}
	p.hasLock = err == nil
	return own, err
}

// unlock gives back what tryLock took. While a command runs the root stays locked, so
// that an earlier version, which knows no leases, waits for its end as it always did;
// and who holds the lease is noted as if it were one.
func (p *Project) unlock(store disk.Dir, own func() error) {
	leases, err := leasesIn(store, true)
	switch {
	case err == nil && len(leases) > 0:
		h := leases[0].Holder
		h.Tmp = p.leftInTmp()
		_ = writeHolder(store, lockFile, h, "")
	case len(p.leftInTmp()) > 0:
		_ = writeHolder(store, lockFile, Holder{Tmp: p.leftInTmp()}, lockInStore)
	default:
		_ = store.Remove(lockFile)
	}
	p.hasLock = false
	p.freeRoot()
	_ = own()
}

// freeRoot unlocks the root unless the lock or a lease still needs it.
func (p *Project) freeRoot() {
	if p.hasLock || p.hasLease {
		return
	}
	for _, release := range p.roots {
		_ = release()
	}
	p.roots = nil
}

// lockBoth takes the lock of a project's store, and that of its root.
func (p *Project) lockBoth(store, dir disk.Dir, host string) (own, root func() error, err error) {
	if own, err = p.lockStore(store); err != nil {
		return nil, nil, err
	}
	leases, err := leasesIn(store, true)
	if err == nil {
		root, err = tryRoot(dir, holder(store), len(leases) > 0, host)
	}
	if err != nil {
		return nil, nil, errors.Join(err, own())
	}
	return own, root, nil
}

func (p *Project) lockStore(store disk.Dir) (release func() error, err error) {
	dir, err := p.openLock(store)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // the lock has a handle of its own
	return dir.TryLock()
}

// tryRoot locks the root too. Where it is locked, what counts is by whom: by a decree
// whose store is another one, or of an earlier version, it is ErrLocked. All others
// may hold it as long as they like, be it a run of this store whose command is going on
// (leased), a stranger who can do no more than read the root, or the caller: flock .
// decree run.
func tryRoot(root disk.Dir, note Holder, leased bool, host string) (release func() error, err error) {
	release, err = root.TryLock()
	if !errors.Is(err, disk.ErrLocked) {
		return release, err
	}
	nothing := func() error { return nil }
	if leased {
		return nothing, nil
	}
	self, serr := root.Self()
	if serr != nil {
		return nil, serr
	}
	held, known := atWork(self)
	if !known {
		// An earlier version has noted in the store that it works.
		held = note.Lock != lockInStore && note.Working(host)
	}
	if held {
		return nil, err
	}
	return nothing, nil
}

// writeHolder notes who holds a lock: the one that lies at lock, see Holder.Lock.
func writeHolder(dir disk.Dir, name string, h Holder, lock string) error {
	h.Lock = lock
	return ReplaceJSON(dir, name, h, PrivateFile, false)
}

// Holder is who last said that it holds the lock, or else a lease; zero when nobody does.
func (s *Site) Holder() Holder { return holder(s.Store) }

func holder(store disk.Dir) Holder {
	h, _ := readHolder(store, lockFile) // it is for a message: without it, that says less
	return h
}

// readHolder is the zero Holder where nobody has noted itself yet, or not to the end.
func readHolder(dir disk.Dir, name string) (h Holder, err error) {
	b, err := ReadFile(dir, name, maxIdentity)
	if err != nil {
		return Holder{}, disk.UnlessMissingOrOther(err)
	}
	if json.Unmarshal(b, &h) != nil {
		h = Holder{} // its writer died
	}
	return h, nil
}
