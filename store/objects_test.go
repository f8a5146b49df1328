package store

import "iter"

// Object is one object of the store.
type Object struct {
	Hash Hash
	Size int64  // of the content
	List bool   // kept as chunks, which are objects too
	Pack string // file name of the pack that holds it
}

// Objects yields all objects in order of their hashes, as they are when it is
// called. The error, with which it ends, is the disk's.
func (s *Store) Objects() iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		entries, err := s.snapshot()
		if err != nil {
			yield(Object{}, err)
			return
		}
		for e, err := range entries {
			if !yield(Object{e.hash, e.size, e.list, packName(e.pack)}, err) || err != nil {
				return
			}
		}
	}
}
