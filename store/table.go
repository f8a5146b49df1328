package store

import "encoding/binary"

// table is a set of entries by hash that grows by pages, so that a capture of
// many files leaves no outgrown copies behind. It is not safe for concurrent use.
type table struct {
	slots []uint32 // number of the entry plus 1; 0 is free
	pages []*[tablePage]entry
	n     int
}

const tablePage = 1024

// at returns the i-th entry in the order of adding. It stays valid while the table grows.
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

// add takes an entry that is not in the table yet and returns its number.
func (t *table) add(e entry) int {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow()
	}
	if t.n == len(t.pages)*tablePage {
		t.pages = append(t.pages, new([tablePage]entry))
	}
	*t.at(t.n) = e
	t.n++
	t.insert(&e.hash, uint32(t.n))
	return t.n - 1
}

// put adds e or replaces the entry of the same hash.
func (t *table) put(e entry) {
	if old := t.get(&e.hash); old != nil {
		*old = e
		return
	}
	t.add(e)
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
