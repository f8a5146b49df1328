package queue

import (
	"slices"
	"time"

	"decree/disk"
	"decree/message"
)

// listing is what a process knows of the inbox from one message to the next, so that
// each one's turn costs the same however many wait. The names are read again only
// when the directory has changed otherwise than by this process, of a large one only those
// that the system names where it can, and a file is looked at once, when its name appears.
//
// Between two looks around a change of its own a stranger's file can be overlooked.
// It is found with the next change, at the latest when nothing else waits.
type listing struct {
	self     disk.Info   // the directory's, when it was as known says
	watch    *disk.Watch // of a large directory
	stale    bool        // self does not tell whether something came
	known    map[string]Pending
	order    []Pending           // in the order of their turn; those not in known are gone
	chains   map[string][]string // the names with a seq above 0, by their chain
	appeared []Pending           // what appeared since mark
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
	if self.SameFile(l.self) {
		if added, ok, err := l.changed(dir); err != nil {
			return err
		} else if ok {
			l.self, l.stale = self, self.Mtime%coarse == 0
			l.add(added)
			return nil
		}
	}
	list, err := l.list(dir)
	if err != nil {
		return err
	}
	known := make(map[string]Pending, len(list))
	var added []Pending
	for _, e := range list {
		p, ok := l.known[e.Name]
		if !ok {
			if p, ok, err = pending(dir, e.Name); err != nil {
				return err
			}
			if ok {
				added = append(added, p)
			}
		}
		if ok {
			known[e.Name] = p
		}
	}
	// self was read first: what came since is seen next time.
	l.known, l.self, l.stale = known, self, self.Mtime%coarse == 0
	l.order = slices.DeleteFunc(l.order, func(p Pending) bool { return l.known[p.Name] != p })
	l.chains = map[string][]string{}
	l.join(l.order)
	l.add(added)
	return nil
}

// changed looks at the names that the system says have changed, and returns the new
// files; ok is false where it does not say.
func (l *listing) changed(dir disk.Dir) (added []Pending, ok bool, err error) {
	names := map[string]bool{}
	if !l.watch.Changed(func(name string) { names[name] = true }) {
		return nil, false, nil
	}
	for name := range names {
		p, there, err := pending(dir, name)
		if err != nil {
			l.unwatch() // the other names are lost with it
			return nil, false, err
		}
		if _, known := l.known[name]; !there {
			delete(l.known, name)
		} else if !known {
			l.known[name] = p
			added = append(added, p)
		}
	}
	return added, true, nil
}

// list reads all names, of a large directory when it is watched.
func (l *listing) list(dir disk.Dir) ([]disk.Entry, error) {
	l.unwatch()
	list, err := dir.List()
	if err != nil || len(list) < dear {
		return list, err
	}
	if l.watch, err = disk.NewWatch(dir, disk.Entries); err != nil {
		return list, nil //nolint:nilerr // then the names are read each time
	}
	return dir.List() // again: what came before it was watched left no event
}

func (l *listing) unwatch() {
	l.watch.Close()
	l.watch = nil
}

// dear is how many messages make it worth while to avoid reading all names.
var dear = 1000

// coarse is the grain of the times of a file system, in nanoseconds, that do not tell
// one change of a directory from another shortly after it. Finer ones hold a whole
// multiple of it once in millions.
const coarse = int64(10 * time.Millisecond)

// add gives new files their turn.
func (l *listing) add(added []Pending) {
	if len(added) == 0 {
		return
	}
	slices.SortFunc(added, byTurn)
	l.appeared = append(l.appeared, added...)
	ordered := len(l.order) == 0 || byTurn(l.order[len(l.order)-1], added[0]) <= 0
	l.order = append(l.order, added...)
	if !ordered {
		slices.SortFunc(l.order, byTurn)
	}
	l.join(added)
}

// join notes of which chains files are.
func (l *listing) join(files []Pending) {
	for _, p := range files {
		if chain, seq, ok := message.NameParts(p.Name, maxNumber); ok && seq > 0 {
			l.chains[chain] = append(l.chains[chain], p.Name)
		}
	}
}

// before are the files named after a chain that are known.
func (l *listing) before(chain string) (names []string) {
	for _, name := range l.chains[chain] {
		if _, known := l.known[name]; known {
			names = append(names, name)
		}
	}
	return names
}

// next is the first whose turn it is and which want takes, as it is now.
func (l *listing) next(dir disk.Dir, want func(Pending) bool) (string, error) {
	gone := func(p Pending) bool { return l.known[p.Name] != p }
	for len(l.order) > 0 && gone(l.order[0]) {
		l.order = l.order[1:]
	}
	for _, p := range l.order {
		if gone(p) {
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

// noteOwnChange makes what this process has done to the directory since the last look
// known: name is not there any more; "" for none.
func (l *listing) noteOwnChange(dir disk.Dir, name string) {
	delete(l.known, name)
	self, err := dir.Self()
	if err != nil || !self.SameFile(l.self) {
		l.stale = true
		return
	}
	l.self = self
	l.stale = l.stale || self.Mtime%coarse == 0
}

// forget has a file that this process has taken away be new if it comes again.
func (l *listing) forget(name string) {
	delete(l.known, name)
	l.appeared = slices.DeleteFunc(l.appeared, func(p Pending) bool { return p.Name == name })
}

// mark begins a run: all that is there now is known after it, also what was overlooked, and
// came is what appears from then on. It goes by names and not by times: the clock may be set
// back while the run's command works.
func (l *listing) mark(dir disk.Dir) error {
	l.stale = true
	if err := l.look(dir); err != nil {
		return err
	}
	l.appeared = nil
	l.stale = true // a change in the same tick of the clock would not be seen by its time
	return nil
}
