package store

import (
	"errors"
	"iter"
	"maps"
	"slices"
)

// log makes what was placed since the last time part of the index, rows being
// the packs that grew. It appends to the log, or folds when that became long
// or the index is doubted. Where that fails a scan finds what was placed.
func (s *Store) log(rows map[uint32]coverage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := s.recent.n - s.logged
	if added == 0 && len(rows) == 0 && !s.doubted && !s.refold {
		return nil
	}
	was := maps.Clone(s.covered)
	maps.Copy(s.covered, rows)
	var err error
	if s.doubted || s.refold || s.recent.n > s.foldAt() {
		err = s.fold()
	} else {
		err = s.lengthen(rows, added)
	}
	if err != nil && !s.doubted {
		s.covered = was
	}
	return err
}

// lengthen appends the rows and what was added to recent to the log. mu is held.
func (s *Store) lengthen(rows map[uint32]coverage, added int) error {
	var gen generation
	if s.base != nil {
		gen = s.base.gen
	}
	list := slices.SortedFunc(maps.Values(rows), func(a, b coverage) int { return int(int64(a.pack) - int64(b.pack)) })
	end, err := appendLog(s.dir, s.logEnd, gen, list, added, func(i int) *entry { return s.recent.at(s.logged + i) })
	if err != nil {
		return err
	}
	s.logEnd, s.logged = end, s.recent.n
	return nil
}

// foldAt grows with the base, so that a fold's cost is spread over what it takes in.
func (s *Store) foldAt() int {
	if s.o.FoldAt > 0 {
		return s.o.FoldAt
	}
	n := 0
	if s.base != nil {
		n = s.base.count
	}
	return min(max(4<<10, n/16), 64<<10)
}

// fold writes a new base of the old one and recent, without what is in packs
// that are gone, and begins the log anew. The base comes first: a log that
// does not belong to it is passed over. mu is held.
func (s *Store) fold() error {
	err := s.writeIndex(s.base)
	if errors.Is(err, errIndex) {
		s.doubt()
		if err := s.scanTails(); err != nil {
			return err
		}
		err = s.writeIndex(nil)
	}
	if err != nil {
		return err
	}
	return s.swapBase()
}

// swapBase turns to the base that was just written. mu is held.
func (s *Store) swapBase() error {
	b, err := openBase(s.dir)
	if err != nil {
		return err
	}
	if b == nil {
		return errIndex
	}
	s.retire()
	s.base, s.recent, s.logged, s.doubted, s.refold = b, table{}, 0, false, false
	s.logEnd, err = appendLog(s.dir, 0, b.gen, nil, 0, nil)
	return err
}

func (s *Store) writeIndex(old *base) error {
	var rows []coverage
	for _, seq := range slices.Sorted(maps.Keys(s.covered)) {
		if s.present[seq] {
			rows = append(rows, s.covered[seq])
		}
	}
	rows = append(rows, s.leaving...)
	about := s.recent.n
	if old != nil {
		about += old.count
	}
	return writeBase(s.dir, rows, about, s.merged(old))
}

// merged yields the entries of recent and of old in order, those of recent
// first where both have one, and none of a pack that is gone or in memory.
func (s *Store) merged(old *base) iter.Seq2[entry, error] {
	order := make([]uint32, s.recent.n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return compareHash(&s.recent.at(int(a)).hash, &s.recent.at(int(b)).hash)
	})
	return func(yield func(entry, error) bool) {
		next := 0
		recentBefore := func(h *Hash) bool { // yields recent's up to and with h
			for ; next < len(order); next++ {
				e := s.recent.at(int(order[next]))
				if h != nil && compareHash(&e.hash, h) > 0 {
					return true
				}
				if s.present[e.pack] && !yield(*e, nil) {
					return false
				}
			}
			return true
		}
		for e, err := range old.all() {
			if err != nil {
				yield(e, err)
				return
			}
			if !recentBefore(&e.hash) {
				return
			}
			if next > 0 && s.recent.at(int(order[next-1])).hash == e.hash {
				continue
			}
			if s.present[e.pack] && !yield(e, nil) {
				return
			}
		}
		recentBefore(nil)
	}
}
