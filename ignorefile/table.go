package ignorefile

import (
	"hash/maphash"
	"math"
	"math/bits"
)

const noRule = math.MaxUint32

// maxSuffix is the length from which a suffix is matched as a glob: lengths must
// fit the bits of ends.
const maxSuffix = 63

// seed is chosen anew by each process, so that no ignore file can be written to
// make its keys collide.
var seed = maphash.MakeSeed()

// table maps plain strings to the newest rules for them. Keys are not stored: a
// slot's rule knows its key. The zero value is empty.
type table struct {
	slots []slot // a power of two, at most three quarters used
	used  int
	ends  *ends // nil in an empty table
}

// ends tell most strings that are no keys without a look at the slots: the
// lengths of the keys, as bits (63 stands for all from 63 up), by the keys' last
// byte and by the one before it, both modulo 32.
type ends struct{ last, prev [32]uint64 }

func (e *ends) add(key string) {
	n := len(key)
	bit := uint64(1) << min(n, 63)
	e.last[key[n-1]%32] |= bit
	if n > 1 {
		e.prev[key[n-2]%32] |= bit
		return
	}
	for i := range e.prev {
		e.prev[i] |= bit
	}
}

// lengths returns those of the keys that may be s or end it.
func (e *ends) lengths(s string) uint64 {
	bits := e.last[s[len(s)-1]%32]
	if len(s) > 1 {
		bits &= e.prev[s[len(s)-2]%32]
	}
	return bits
}

// slot holds, for one key, rule numbers plus one, 0 for none.
type slot struct {
	hash uint32
	all  uint32 // the newest rule for everything
	dirs uint32 // the newest rule for directories only, where newer than all
}

func (s *slot) key(f *File) string { return f.rules[max(s.all, s.dirs)-1].key() }

// lookup returns the slot of key, or the free one where it belongs.
func (t *table) lookup(f *File, key string, hash uint32) *slot {
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i&mask]
		if s.all|s.dirs == 0 || s.hash == hash && s.key(f) == key {
			return s
		}
	}
}

// add enters rule number under key and says whether it can decide anything. Rules
// come newest first.
func (t *table) add(f *File, key string, number uint32, dirOnly bool) bool {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.grow()
	}
	hash := uint32(maphash.String(seed, key))
	s := t.lookup(f, key, hash)
	if s.all != 0 || dirOnly && s.dirs != 0 {
		return false
	}
	if s.dirs == 0 {
		t.used++
		t.ends.add(key)
	}
	s.hash = hash
	if dirOnly {
		s.dirs = number + 1
	} else {
		s.all = number + 1
	}
	return true
}

func (t *table) grow() {
	if t.ends == nil {
		t.ends = new(ends)
	}
	old := t.slots
	t.slots = make([]slot, max(8, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.all|s.dirs == 0 {
			continue
		}
		i := s.hash & mask
		for t.slots[i].all|t.slots[i].dirs != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// find returns the number of the rule for key, or noRule.
func (t *table) find(f *File, key string, isDir bool) uint32 {
	if t.used == 0 || t.ends.lengths(key)>>min(len(key), 63)&1 == 0 {
		return noRule
	}
	return t.get(f, key, isDir)
}

func (t *table) get(f *File, key string, isDir bool) uint32 {
	s := t.lookup(f, key, uint32(maphash.String(seed, key)))
	// none, 0, becomes noRule by wrapping round.
	best := s.all - 1
	if isDir {
		best = min(best, s.dirs-1)
	}
	return best
}

// findSuffix returns the number of the newest rule whose key ends name, or noRule.
func (t *table) findSuffix(f *File, name string, isDir bool) uint32 {
	best := uint32(noRule)
	if t.used == 0 {
		return best
	}
	for lengths := t.ends.lengths(name); lengths != 0; lengths &= lengths - 1 {
		n := bits.TrailingZeros64(lengths)
		if n > len(name) {
			break
		}
		best = min(best, t.get(f, name[len(name)-n:], isDir))
	}
	return best
}
