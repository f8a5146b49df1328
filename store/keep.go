package store

import (
	"bytes"
	"io"
	"sync"
)

// Keep makes sure that the store holds the content h whole, before what open reads,
// perhaps its last other copy, goes. What this Writer has not written itself is read
// and compared with its hash, once; what proves missing or damaged is stored anew,
// whatever the index says, from what open yields. It returns the hash that this had:
// another one than h means that it was not that content. The error is the disk's or
// the reader's. Like Put it is for any number of goroutines.
func (w *Writer) Keep(h Hash, size int64, open func() (io.ReadCloser, error)) (Hash, error) {
	if w.sound(h) {
		return h, nil
	}
	r, err := open()
	if err != nil {
		return Hash{}, err
	}
	defer r.Close()
	sum, _, err := w.put(input{r: r, size: size, anew: true})
	if err == nil && sum == h {
		w.kept.add(h)
	}
	return sum, err
}

// sound says whether the store holds h whole: it was written by this Writer, was
// asked for before, or is read now.
func (w *Writer) sound(h Hash) bool {
	e, ok, err := w.s.find(&h)
	if err != nil || !ok {
		return false
	}
	if w.kept.has(h) || !e.list && w.began.covers(e.place) { // chunks may be older than their list
		return true
	}
	if w.s.Verify(h) != nil {
		return false
	}
	w.kept.add(h)
	return true
}

// claim makes the object e, whose bytes are data, the caller's to store; fresh is
// false when the store has it, or another Put claimed it. With anew it is so only
// where the bytes that the index leads to are the same.
func (w *Writer) claim(e entry, data []byte, anew bool) (claimed bool, err error) {
	if claimed, err = w.s.claim(e); claimed || err != nil || !anew {
		return claimed, err
	}
	d, known, err := w.s.object(&e.hash)
	if err == nil {
		same := known.list == e.list && known.size == e.size && bytes.Equal(d.member(known), data)
		d.release()
		if same {
			return false, nil
		}
	}
	w.s.replace(e)
	return true, nil //nolint:nilerr // the disk cannot read it: then it is stored again
}

// replace gives an object another place. What the log says of it cannot be taken
// back by a line behind, so the next Flush folds the log.
func (s *Store) replace(e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, logged := table{}, 0
	for i := range s.recent.n {
		old := s.recent.at(i)
		if i < s.logged && old.hash == e.hash {
			s.refold = true
			continue
		}
		if i < s.logged {
			logged++
		}
		kept.add(*old)
	}
	kept.put(e)
	s.recent, s.logged = kept, logged
}

// hashSet is a set of hashes, of which there may be very many, for any number of goroutines.
type hashSet struct {
	mu  sync.Mutex
	all map[Hash]struct{}
}

func (s *hashSet) has(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.all[h]
	return has
}

func (s *hashSet) add(h Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[Hash]struct{}{}
	}
	s.all[h] = struct{}{}
}
