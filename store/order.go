package store

import (
	"cmp"
	"iter"
	"slices"
)

// InOrder returns contents in the order in which they lie in the packs: who reads them so has each
// block decompressed once, and the packs read from front to back. What the store lacks comes first. The
// error is that the index cannot be read.
func (s *Store) InOrder(contents iter.Seq[Hash]) ([]Hash, error) {
	var list []entry
	for h := range contents {
		e, _, err := s.find(&h)
		if err != nil {
			return nil, err
		}
		e.hash = h
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.pack, b.pack), cmp.Compare(a.off, b.off), cmp.Compare(a.pos, b.pos))
	})
	out := make([]Hash, len(list))
	for i := range list {
		out[i] = list[i].hash
	}
	return out, nil
}

// Place is where a content lies: of a smaller place than another it comes before that one in the packs, and
// those of one block have the same. What the store lacks has the place 0.
func (s *Store) Place(h Hash) uint64 {
	e, ok, err := s.find(&h)
	if !ok || err != nil {
		return 0
	}
	return uint64(e.pack)<<32 | uint64(e.off)
}
