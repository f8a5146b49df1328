package store

import (
	"iter"
	"maps"
)

// Numbers gives numbers to hashes, or is a set of hashes, where all have the same number. What the store has when
// Numbers is called takes four bytes each; any other hash, and all of those in a zero Numbers, what a map
// takes. It reads the store's index, and is good until that is closed; whatever becomes of the index, it stays as
// it is. It is not safe for concurrent use.
type Numbers struct {
	base   *base
	recent table
	known  []uint32 // of the entries of base, and behind them of recent
	others map[Hash]uint32
	n      int
	bad    bool // the index could not be read: what was asked for since may be wrong
}

// Numbers returns an empty one.
func (s *Store) Numbers() *Numbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Numbers{base: s.base, recent: s.recent.freeze()}
	t.known = make([]uint32, t.front()+t.recent.n)
	return t
}

// front is the number of entries in the base.
func (t *Numbers) front() int {
	if t.base == nil {
		return 0
	}
	return t.base.count
}

// at returns where the number of h is kept, if that is not among the others.
func (t *Numbers) at(h *Hash) (int, bool) {
	i, ok, err := t.base.place(h)
	if ok && err == nil {
		return i, true
	}
	t.bad = t.bad || err != nil
	i = t.recent.number(h)
	return t.front() + i, i >= 0
}

// sound returns err, or else that what t says cannot be believed.
func (t *Numbers) sound(err error) error {
	if err == nil && t.bad {
		return errIndex
	}
	return err
}

// Get returns the number of h; 0: it has none.
func (t *Numbers) Get(h Hash) uint32 {
	if i, ok := t.at(&h); ok {
		return t.known[i]
	}
	return t.others[h]
}

// Set gives h a number; 0 takes it out.
func (t *Numbers) Set(h Hash, v uint32) {
	i, ok := t.at(&h)
	was := t.others[h]
	switch {
	case ok:
		was, t.known[i] = t.known[i], v
	case v == 0:
		delete(t.others, h)
	default:
		if t.others == nil {
			t.others = map[Hash]uint32{}
		}
		t.others[h] = v
	}
	if was == 0 && v != 0 {
		t.n++
	} else if was != 0 && v == 0 {
		t.n--
	}
}

// Len returns how many hashes have a number.
func (t *Numbers) Len() int { return t.n }

// All yields the hashes that have a number, each with it, in no certain order. Those that it has yielded may be taken out.
func (t *Numbers) All() iter.Seq2[Hash, uint32] {
	return func(yield func(Hash, uint32) bool) {
		for i, v := range t.known {
			if v == 0 {
				continue
			}
			var h Hash
			if i < t.front() {
				if t.base.reading(func() error { h = Hash(t.base.entries[i*entryLen:]); return nil }) != nil {
					t.bad = true
					continue
				}
			} else {
				h = t.recent.at(i - t.front()).hash
			}
			if !yield(h, v) {
				return
			}
		}
		for h, v := range t.others {
			if !yield(h, v) {
				return
			}
		}
	}
}

// Clone returns a copy.
func (t *Numbers) Clone() *Numbers {
	c := *t
	c.known, c.others = append([]uint32(nil), t.known...), maps.Clone(t.others)
	return &c
}
