package store

import (
	"encoding/binary"
	"slices"
)

// table is a set of entries by hash that grows by pages, so that a capture of
// many files leaves no outgrown copies behind. It is not safe for concurrent use.
type table struct {
	slots []uint32 // number of the entry plus 1; 0 is free
	pages []*[tablePage]entry
	n     int
	// frozen says of the pages, as far as it goes, which a frozen copy reads too.
	frozen []bool
}

const tablePage = 1024

// at returns the i-th entry in the order of adding, to be read. It stays valid while the table grows.
func (t *table) at(i int) *entry { return &t.pages[i/tablePage][i%tablePage] }

func (t *table) get(h *Hash) *entry {
	if i := t.number(h); i >= 0 {
		return t.at(i)
	}
	return nil
}

// number returns which entry is h's; -1: none.
func (t *table) number(h *Hash) int {
	if t.n == 0 {
		return -1
	}
	mask := len(t.slots) - 1
	for i := slotOf(h) & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if at := int(t.slots[i]) - 1; at < t.n && t.at(at).hash == *h { // a copy may share slots with one that has grown
			return at
		}
	}
	return -1
}

// slotOf takes the hash's own bits: they are as good as any hash function's. A
// hostile pack can choose them alike, so bits from all over are mixed in.
func slotOf(h *Hash) int {
	a, b := binary.LittleEndian.Uint64(h[8:]), binary.LittleEndian.Uint64(h[20:])
	return int((a ^ b*0x9e3779b97f4a7c15) >> 20)
}

// add takes an entry that is not in the table yet.
func (t *table) add(e entry) {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow()
	}
	if t.n == len(t.pages)*tablePage {
		t.pages = append(t.pages, new([tablePage]entry))
	}
	*t.at(t.n) = e
	t.n++
	t.insert(&e.hash, uint32(t.n))
}

// put adds e or replaces the entry of the same hash.
func (t *table) put(e entry) {
	if i := t.number(&e.hash); i >= 0 {
		*t.change(i) = e
		return
	}
	t.add(e)
}

// change returns the i-th entry to be changed in what is not its hash.
func (t *table) change(i int) *entry {
	if p := i / tablePage; p < len(t.frozen) && t.frozen[p] {
		page := *t.pages[p]
		t.pages[p], t.frozen[p] = &page, false
	}
	return t.at(i)
}

// freeze returns a copy that stays as it is whatever becomes of t, and takes next to no memory beside it. Nothing can be
// added to it.
func (t *table) freeze() table {
	t.frozen = slices.Repeat([]bool{true}, len(t.pages))
	return table{slots: t.slots, pages: slices.Clone(t.pages), n: t.n}
}

func (t *table) insert(h *Hash, v uint32) {
	mask := len(t.slots) - 1
	i := slotOf(h) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = v
}

func (t *table) grow() {
	t.slots = make([]uint32, max(64, 2*len(t.slots)))
	for i := range t.n {
		t.insert(&t.at(i).hash, uint32(i+1))
	}
}

// cut drops the entries from number n on.
func (t *table) cut(n int) {
	kept := table{}
	for i := range n {
		kept.add(*t.at(i))
	}
	*t = kept
}
