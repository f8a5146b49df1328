package queue

import (
	"slices"
	"time"

	"decree/disk"
	"decree/message"
)

// listing is what a process knows of the inbox from one message to the next, so that
// each one's turn costs the same however many wait. The names are read again only
// when the directory has changed otherwise than by this process, and a file is looked
// at once, when its name appears.
//
// Between two looks around a change of its own a stranger's file can be overlooked.
// It is found with the next change, at the latest when nothing else waits.
type listing struct {
	self   disk.Info // the directory's, when it was as known says
	stale  bool      // self does not tell whether something came
	known  map[string]Pending
	turn   []Pending           // in the order of their turn; those not in known are gone
	chains map[string][]string // the names with a seq above 0, by their chain
	came   []Pending           // what appeared since mark
}

// look brings l up to date.
func (l *listing) look(dir disk.Dir) error {
	self, err := dir.Self()
	if err != nil {
		return err
	}
	if l.known != nil && !l.stale && self.SameFile(l.self) && self.Mtime == l.self.Mtime {
		return nil
	}
	list, err := dir.List()
	if err != nil {
		return err
	}
	known := make(map[string]Pending, len(list))
	var fresh []Pending
	for _, e := range list {
		p, ok := l.known[e.Name]
		if !ok {
			if p, ok, err = pending(dir, e.Name); err != nil {
				return err
			}
			if ok {
				fresh = append(fresh, p)
			}
		}
		if ok {
			known[e.Name] = p
		}
	}
	// self was read first: what came since is seen next time.
	l.known, l.self, l.stale = known, self, self.Mtime%coarse == 0
	l.add(fresh)
	return nil
}

// coarse is the grain of the times of a file system, in nanoseconds, that do not tell
// one change of a directory from another shortly after it. Finer ones hold a whole
// multiple of it once in millions.
const coarse = int64(10 * time.Millisecond)

// add gives new files their turn.
func (l *listing) add(fresh []Pending) {
	if len(fresh) == 0 {
		return
	}
	slices.SortFunc(fresh, byTurn)
	l.came = append(l.came, fresh...)
	l.turn = slices.DeleteFunc(l.turn, func(p Pending) bool { return l.known[p.Name] != p })
	ordered := len(l.turn) == 0 || byTurn(l.turn[len(l.turn)-1], fresh[0]) <= 0
	l.turn = append(l.turn, fresh...)
	if !ordered {
		slices.SortFunc(l.turn, byTurn)
	}
	l.chains = map[string][]string{}
	for _, p := range l.turn {
		if chain, seq, ok := message.NameParts(p.Name, maxNumber); ok && seq > 0 {
			l.chains[chain] = append(l.chains[chain], p.Name)
		}
	}
}

// next is the first whose turn it is and which want takes, as it is now.
func (l *listing) next(dir disk.Dir, want func(Pending) bool) (string, error) {
	for i, p := range l.turn {
		if l.known[p.Name] != p {
			if i == 0 {
				defer func() { l.turn = l.turn[1:] }()
			}
			continue
		}
		now, ok, err := pending(dir, p.Name)
		if err != nil {
			return "", err
		}
		if ok && want(now) {
			return p.Name, nil
		}
	}
	return "", nil
}

// settled makes what this process has done to the directory since the last look
// known: name is not there any more; "" for none.
func (l *listing) settled(dir disk.Dir, name string) {
	delete(l.known, name)
	self, err := dir.Self()
	if err != nil || !self.SameFile(l.self) {
		l.stale = true
		return
	}
	l.self = self
	l.stale = l.stale || self.Mtime%coarse == 0
}

// mark begins a run. since is when, by the clock that files are stamped with. A
// change of the directory in the same tick of that clock as its last one would not
// be seen; where looking again is dear, the tick is waited for.
func (l *listing) mark(since int64) {
	const dear, tick = 1000, 10 * time.Millisecond
	l.came = nil
	if l.stale || since > l.self.Mtime {
		return
	}
	if len(l.known) < dear {
		l.stale = true
		return
	}
	time.Sleep(tick)
}

// cameSince are the files that appeared since mark, and were changed since then:
// one that was overlooked before is older.
func (l *listing) cameSince(since int64) []Pending {
	if l.self.Mtime%coarse == 0 {
		return l.came // the names are read each time, and none is overlooked
	}
	return slices.DeleteFunc(slices.Clone(l.came), func(p Pending) bool { return p.Ctime < since })
}
