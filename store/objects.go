package store

import (
	"errors"
	"io/fs"
	"iter"
	"maps"
)

// snapshot returns the whole index as it is now, tails included, sorted. What
// is in memory only is left out.
func (s *Store) snapshot() (iter.Seq2[entry, error], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.complete(); err != nil {
		return nil, err
	}
	frozen := &Store{base: s.base, present: maps.Clone(s.present), recent: s.recent.freeze()}
	return frozen.merged(s.base), nil
}

// complete sees to it that what get looks in is all there is and sound. mu is held.
func (s *Store) complete() error {
	for _, err := range s.base.all() {
		if errors.Is(err, errIndex) {
			s.doubt()
			break
		}
	}
	return s.scanTails()
}

// Stats are the store's sizes.
type Stats struct {
	Packs   int
	Bytes   int64 // of the packs
	Objects int64 // chunks and lists among them
}

// Stats reads no content; objects in tails that no index covers yet are left out.
func (s *Store) Stats() (st Stats, err error) {
	err = s.upToDate(func() error {
		st, err = s.stats()
		return err
	})
	return st, err
}

// upToDate does what needs all packs that the index names. Where one is gone since
// another process compacted it away, the index is read anew and do is repeated.
func (s *Store) upToDate(do func() error) error {
	for try := 0; ; try++ {
		known := s.known()
		err := do()
		if !errors.Is(err, fs.ErrNotExist) || try == 5 {
			return err
		}
		if changed, lookErr := s.refresh(known); !changed || lookErr != nil {
			return errors.Join(err, lookErr)
		}
	}
}

func (s *Store) stats() (st Stats, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for seq := range s.present {
		info, err := s.packs.Stat(packName(seq))
		if err != nil {
			return st, err
		}
		st.Packs++
		st.Bytes += info.Size
	}
	if s.base != nil {
		st.Objects = int64(s.base.count)
	}
	for i := range s.recent.n {
		if _, ok, _ := s.base.get(&s.recent.at(i).hash); !ok {
			st.Objects++
		}
	}
	return st, nil
}
