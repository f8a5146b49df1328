package store

import (
	"context"
	"encoding/binary"
)

// Shares are the bytes of the packs that each object takes: of a compressed block
// the part that its length is of the whole.
type Shares struct {
	own   map[uint32]uint32 // by short: there is one for each object of the store
	parts map[Hash][]Hash   // of contents that are kept as chunks
	spare func()            // gives back the memory of what was read of the index
	taken int
}

// spareAfter is after how many takes that is done: who takes the objects of a tree reads its directories, which are
// anywhere in the index, and each look maps what is around it.
const spareAfter = 1 << 11

// short is enough of a hash where two that are taken for one only spoil an estimate.
func short(h *Hash) uint32 { return binary.LittleEndian.Uint32(h[:]) }

// Shares reads the headers of all blocks, and the lists of chunks.
func (s *Store) Shares() (sh *Shares, err error) {
	err = s.upToDate(func() error {
		sh, err = s.shares()
		return err
	})
	return sh, err
}

func (s *Store) shares() (*Shares, error) {
	sh := &Shares{own: map[uint32]uint32{}, parts: map[Hash][]Hash{}, spare: s.spareIndex}
	s.mu.Lock()
	err := s.complete()
	packs := sortedKeys(s.present)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, seq := range packs {
		if _, err := s.headers(context.Background(), seq, sh.block); err != nil {
			return nil, err
		}
	}
	entries, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if !e.list {
			continue
		}
		if sh.parts[e.hash], err = s.chunksOf(e.hash); err != nil {
			return nil, err
		}
	}
	return sh, nil
}

// spareIndex gives back the memory of the index until it is used again.
func (s *Store) spareIndex() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.base != nil && s.base.unload != nil {
		s.base.unload(0, s.base.front()+len(s.base.entries))
	}
}

// block takes the objects of a block.
func (sh *Shares) block(b *found) {
	for i := range b.members {
		// The place of one stored twice is not known here: the larger share counts.
		m := &b.members[i]
		n := b.head.length() / int64(len(b.members))
		if b.head.raw > 0 {
			n = b.head.length() * int64(m.length) / int64(b.head.raw)
		}
		sh.own[short(&m.hash)] = max(sh.own[short(&m.hash)], uint32(n)) //nolint:gosec // a part of a block, whose length is one
	}
}

// chunksOf are the chunks of a content that is kept as a list.
func (s *Store) chunksOf(h Hash) ([]Hash, error) {
	d, e, err := s.object(&h)
	if err != nil {
		return nil, err
	}
	defer d.release()
	list := d.member(e)
	if _, err := soundList(list, e.size); err != nil {
		return nil, damagedAt(e, err)
	}
	out := make([]Hash, 0, len(list)/pieceLen)
	for i := range len(list) / pieceLen {
		out = append(out, pieceAt(list, i).hash)
	}
	return out, nil
}

// Each calls f for the object h and the chunks it is made of, with the bytes
// that each takes. Chunks may be those of other contents too.
func (sh *Shares) Each(h Hash, f func(part Hash, bytes int64)) {
	if n, ok := sh.own[short(&h)]; ok {
		f(h, int64(n))
	}
	for _, part := range sh.parts[h] {
		f(part, int64(sh.own[short(&part)]))
	}
}

// Take is Each for one who counts what comes first: the bytes of a part that was
// taken before are 0. Not for concurrent use, nor for Each afterwards.
func (sh *Shares) Take(h Hash, f func(part Hash, bytes int64)) {
	if sh.taken++; sh.taken%spareAfter == 0 {
		sh.spare()
	}
	sh.Each(h, func(part Hash, n int64) {
		if n > 0 {
			sh.own[short(&part)] = 0
		}
		f(part, n)
	})
}
