package recorder

import (
	"decree/manifest"
)

// withChanges is seq with changes made to it, streamed.
func withChanges(seq manifest.Seq, changes []manifest.Change) manifest.Seq {
	return func(yield func(manifest.Item, error) bool) {
		m := merger{yield: yield, changes: changes}
		for it, err := range seq {
			if err != nil {
				yield(manifest.Item{}, err)
				return
			}
			if it.Entry.Type == manifest.Dir && !m.dirs && !m.startDirs() {
				return
			}
			if !m.upTo(it.Path) || !m.pass(it) {
				return
			}
		}
		if !m.dirs && !m.startDirs() {
			return
		}
		m.rest()
	}
}

// merger walks a manifest's files and then its directories beside the changes.
type merger struct {
	yield   func(manifest.Item, error) bool
	changes []manifest.Change
	next    int
	dirs    bool
}

// mine is what a change says about the present section: the new entry if it
// belongs there, and whether the old one did.
func (m *merger) mine(c manifest.Change) (added *manifest.Entry, touches bool) {
	in := func(e *manifest.Entry) bool { return e != nil && (e.Type == manifest.Dir) == m.dirs }
	if in(c.New) {
		added = c.New
	}
	return added, added != nil || in(c.Old)
}

// upTo yields what is new before path.
func (m *merger) upTo(path string) bool {
	for ; m.next < len(m.changes) && m.changes[m.next].Path < path; m.next++ {
		if !m.add(m.changes[m.next]) {
			return false
		}
	}
	return true
}

func (m *merger) add(c manifest.Change) bool {
	if e, _ := m.mine(c); e != nil {
		return m.yield(manifest.Item{Path: c.Path, Entry: *e}, nil)
	}
	return true
}

// pass yields an old item, or what became of it.
func (m *merger) pass(it manifest.Item) bool {
	if m.next < len(m.changes) && m.changes[m.next].Path == it.Path {
		if e, touches := m.mine(m.changes[m.next]); touches {
			m.next++
			return e == nil || m.yield(manifest.Item{Path: it.Path, Entry: *e}, nil)
		}
	}
	return m.yield(it, nil)
}

// startDirs ends the files and begins the directories.
func (m *merger) startDirs() bool {
	if !m.rest() {
		return false
	}
	m.dirs, m.next = true, 0
	return true
}

func (m *merger) rest() bool {
	for ; m.next < len(m.changes); m.next++ {
		if !m.add(m.changes[m.next]) {
			return false
		}
	}
	return true
}
