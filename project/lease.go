package project

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"decree/disk"
)

// The lock guards decree's own work, and is free while the command of a run works. What
// says then that the run's process lives is a lease:
//
//	leases/<record>/              locked (flock) by the process of the run, and by nobody else:
//	                              no command inherits it, and it ends with the process
//	leases/<record>/holder.json   who that is
//	leases/<record>/collected     there when somebody has freed space in the store since
//
// A lease is taken, given back and, after a death, removed by whoever has the lock.
// Nothing of it is flushed: no process outlives a power loss.
const (
	leasesDir     = "leases"
	leaseHolder   = "holder.json"
	collectedMark = "collected"
)

// Lease is held while the command of a record runs.
type Lease struct {
	ID     string // of the record
	Holder Holder // PID 0: not noted yet
}

// Lease takes the lease of the record id. The caller has the lock, and gives the lease
// back with release, which may be called without the lock.
func (p *Project) Lease(id string, h Holder) (release func(), err error) {
	leases, err := MakeDir(p.Store, leasesDir, PrivateDir)
	if err != nil {
		return nil, err
	}
	dir, err := MakeDir(leases, id, PrivateDir)
	if err != nil {
		leases.Close()
		return nil, err
	}
	defer dir.Close() // the lock has a handle of its own
	// Somebody may hold it for a moment, to look whether it is held.
	unlock, err := disk.LockWithin(context.Background(), dir, firstPause, dyingWait)
	if err == nil {
		h.Tmp = p.marks
		err = writeHolder(dir, leaseHolder, h, "")
	}
	if err != nil {
		leases.Close()
		if unlock != nil {
			_ = unlock()
		}
		return nil, err
	}
	p.hasLease = true
	return func() {
		_ = disk.RemoveTree(leases, id)
		leases.Close()
		_ = unlock()
		p.hasLease = false
		p.freeRoot()
	}, nil
}

// Leases are the leases that live processes hold, the oldest first.
func (s *Site) Leases() ([]Lease, error) { return leasesIn(s.Store, true) }

// Unheld are the leases that no process of this machine holds, as their dead processes left them.
func (p *Project) Unheld() ([]Lease, error) { return leasesIn(p.Store, false) }

// leasesIn are the leases that are held, or those that are not, the oldest first.
func leasesIn(store disk.Dir, held bool) (list []Lease, err error) {
	err = eachLease(store, func(_ disk.Dir, id string, dir disk.Dir) error {
		locked, err := dir.Locked()
		if locked != held || err != nil {
			return err
		}
		h, err := readHolder(dir, leaseHolder)
		list = append(list, Lease{id, h})
		return err
	})
	slices.SortFunc(list, func(a, b Lease) int { return a.Holder.Start.Compare(b.Holder.Start) })
	return list, err
}

// eachLease calls do for the directory of each lease, held or not.
func eachLease(store disk.Dir, do func(leases disk.Dir, id string, dir disk.Dir) error) error {
	leases, err := store.OpenDir(leasesDir)
	if err != nil {
		return disk.UnlessMissingOrOther(err)
	}
	defer leases.Close()
	list, err := leases.List()
	for _, e := range list {
		dir, oerr := leases.OpenDir(e.Name)
		if errors.Is(oerr, fs.ErrNotExist) || disk.OtherKind(oerr) { // given back meanwhile; no lease
			continue
		}
		if oerr != nil {
			return oerr
		}
		err = errors.Join(err, do(leases, e.Name, dir))
		dir.Close()
	}
	return err
}

// TidyLeases removes what dead processes left of their leases. The caller has the lock.
func (p *Project) TidyLeases() error {
	return eachLease(p.Store, func(leases disk.Dir, id string, dir disk.Dir) error {
		if locked, err := dir.Locked(); locked || err != nil {
			return err
		}
		return disk.RemoveTree(leases, id)
	})
}

// MarkCollected tells whoever holds a lease that space is being freed in the store, so
// that it does not take packs that go for lost ones.
func (p *Project) MarkCollected() error {
	return eachLease(p.Store, func(_ disk.Dir, _ string, dir disk.Dir) error {
		return ReplaceFile(dir, collectedMark, nil, PrivateFile, false)
	})
}

// Collected says whether MarkCollected was called since the lease of id was taken.
func (p *Project) Collected(id string) (marked bool, err error) {
	err = eachLease(p.Store, func(_ disk.Dir, name string, dir disk.Dir) (err error) {
		if name == id {
			marked, err = disk.Has(dir, collectedMark)
		}
		return err
	})
	return marked, err
}
