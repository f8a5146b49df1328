package store

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
)

// CompactOptions say what is worth rewriting.
type CompactOptions struct {
	// Force rewrites every pack that holds a dead object, so that its bytes are
	// gone; else a pack is rewritten when half of it or more is dead.
	Force bool
	// Since is where a Writer began: what was put since lives, as it may be named yet. What
	// was put since and was there before, so that it was not stored again, only live keeps.
	Since Mark
}

// Compacted is what a Compact did.
type Compacted struct {
	Freed   int64    // bytes of the packs that went, less those that were written
	Packs   int      // that went
	Objects int64    // dead ones that went with them
	Kept    []string // packs with dead objects that stay, because parts of them are damaged
}

// Compact frees the space of objects that live does not name, under the
// project's lock and beside no Writer. Chunks live with the contents that they
// are part of: live need not know them. It may be asked several times for one hash.
//
// What lives in a pack that goes is copied into a new one; that is flushed, then
// the index is replaced, then the old pack is removed: a death in between
// costs space until the next time, no more. Readers that have the old index find
// the new one. A live content whose list of chunks cannot be read is an error,
// and nothing is freed.
func (s *Store) Compact(ctx context.Context, live func(Hash) bool, o CompactOptions) (res Compacted, err error) {
	w, err := s.Writer(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Flush(); err != nil {
		return res, err
	}
	s.mu.Lock()
	s.readmit()
	err = s.scanTails()
	s.mu.Unlock()
	if err != nil {
		return res, err
	}
	c := &compaction{s: s, w: w, live: live, o: o, res: &res, parts: map[Hash]struct{}{}}
	c.copy = blockCopy{
		size:   s.o.BlockSize,
		wanted: func(m *member, at place) bool { return c.alive(m.hash, at) && c.current(m, at) },
		whole:  func(block []byte, head blockHead, members []member) error { return w.append(block, nil, head, members) },
		mixed:  w.write,
	}
	if err := c.mark(); err != nil {
		return res, err
	}
	for _, seq := range sortedKeys(s.present) {
		if err := c.weigh(ctx, seq); err != nil {
			return res, err
		}
	}
	// One after the other, the emptiest first: a full disk has room for what lives in
	// one pack when another one is gone.
	slices.SortStableFunc(c.going, func(a, b going) int { return cmp.Compare(a.lives, b.lives) })
	for _, g := range c.going {
		if err := c.replace(ctx, g); err != nil {
			return res, err
		}
	}
	return res, nil
}

// compaction is a Compact in work.
type compaction struct {
	s     *Store
	w     *Writer
	live  func(Hash) bool
	o     CompactOptions
	res   *Compacted
	parts map[Hash]struct{} // chunks of living contents
	going []going
	moved table

	copy blockCopy // of what lives
}

// going is a pack to be rewritten or dropped.
type going struct {
	seq   uint32
	id    identity
	size  int64
	dead  int64 // objects
	lives int64 // bytes, about
}

// alive says whether the object that lies at a place lives.
func (c *compaction) alive(h Hash, at place) bool {
	if _, part := c.parts[h]; part {
		return true
	}
	return c.o.Since.covers(at) || c.live(h)
}

// mark collects the chunks of the contents that live.
func (c *compaction) mark() error {
	entries, err := c.s.snapshot()
	if err != nil {
		return err
	}
	for e, err := range entries {
		if err != nil {
			return err
		}
		if !e.list || !c.alive(e.hash, e.place) {
			continue
		}
		chunks, err := c.s.chunksOf(e.hash)
		if err != nil {
			return err
		}
		for _, h := range chunks {
			c.parts[h] = struct{}{}
		}
	}
	return nil
}

// current says whether the index takes m from this very place, where an
// interrupted compaction left several.
func (c *compaction) current(m *member, at place) bool {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	e, ok, err := c.s.get(&m.hash)
	return err == nil && ok && e.place == at
}

// weigh decides about one pack by its blocks' headers.
func (c *compaction) weigh(ctx context.Context, seq uint32) error {
	g := going{seq: seq}
	useless, spare := int64(0), false
	o, err := c.s.headers(ctx, seq, func(b *found) {
		dead := int64(0)
		for i := range b.members {
			m, at := &b.members[i], place{seq, uint32(b.off), uint16(i)}
			switch {
			case !c.alive(m.hash, at):
				g.dead++
				dead += int64(m.length)
			case !c.current(m, at):
				spare = true
				dead += int64(m.length)
			}
		}
		if b.head.raw > 0 {
			useless += b.head.length() * dead / int64(b.head.raw)
		}
	})
	if err != nil {
		return err
	}
	g.id, g.size, g.lives = o.id, o.size, o.size-useless
	few := 2*useless < g.size-packStart
	switch {
	case g.dead == 0 && !spare, few && (!c.o.Force || g.dead == 0):
	case !o.sound:
		c.res.Kept = append(c.res.Kept, packName(seq))
	default:
		c.going = append(c.going, g)
	}
	return nil
}

// replace copies what lives in a pack, then switches over.
func (c *compaction) replace(ctx context.Context, g going) error {
	w, s := c.w, c.s
	w.assign = c.note
	before := w.head
	if err := w.turnAway(g.seq); err != nil {
		return err
	}
	err := c.copyPack(ctx, g.seq)
	if err == nil {
		err = c.copy.spill()
	}
	if errors.Is(err, errKeep) {
		c.res.Kept = append(c.res.Kept, packName(g.seq))
		return nil
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	err = w.sync()
	w.mu.Unlock()
	if err != nil {
		return err
	}
	for _, row := range w.rows {
		c.res.Freed -= row.length
		if row.pack == before.pack {
			c.res.Freed += before.length
		}
	}
	if err := c.switchOver(g); err != nil {
		return err
	}
	c.res.Freed += g.size
	c.res.Packs++
	c.res.Objects += g.dead
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLeaving()
}

// turnAway ends appending to a pack up to last: the next block begins one behind all.
func (w *Writer) turnAway(last uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head.pack > last {
		return nil
	}
	return w.closePack()
}

// note records where copied objects came to be.
func (c *compaction) note(members []member, seq, off uint32) {
	for i, m := range members {
		c.moved.put(entry{m.hash, place{seq, off, uint16(i)}, m.list, m.size})
	}
}

// copyPack copies what lives in a pack behind all packs.
func (c *compaction) copyPack(ctx context.Context, seq uint32) error {
	f, err := c.s.packs.Open(packName(seq))
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	res, err := scanPack(ctx, f, packStart, st.Size, st.Size, func(b *found) error { return c.copy.block(f, seq, b) })
	if err == nil && len(res.wounds) > 0 {
		err = errKeep
	}
	return err
}

// switchOver writes the index that takes the copies and names the old pack as
// leaving, so that one which cannot be removed now is never read again.
func (c *compaction) switchOver(g going) error {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.moved.n {
		s.recent.put(*c.moved.at(i))
	}
	maps.Copy(s.covered, c.w.rows)
	clear(c.w.rows)
	c.moved = table{}
	s.leaving = append(s.leaving, coverage{pack: g.seq, id: g.id, retired: true})
	delete(s.covered, g.seq)
	delete(s.present, g.seq)
	return s.fold()
}

// removeLeaving removes the packs whose objects are elsewhere. mu is held.
func (s *Store) removeLeaving() error {
	if len(s.leaving) == 0 {
		return nil
	}
	for _, c := range s.leaving {
		if err := s.removePack(c); err != nil {
			return err
		}
	}
	s.leaving = nil
	return s.packs.Sync()
}

// removePack removes a pack if it is the one that was left.
func (s *Store) removePack(c coverage) error {
	name := packName(c.pack)
	f, err := s.packs.Open(name)
	if err != nil {
		return err
	}
	id, _, err := readPackHead(f, name)
	f.Close()
	if err == nil && id != c.id {
		err = &DamagedError{Pack: name, Err: errIdentity}
	}
	if err != nil {
		return err
	}
	return s.packs.Remove(name)
}

// unused returns the first number above last that no pack has or had lately.
func (s *Store) unused(last uint32) uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for seq := range s.covered {
		last = max(last, seq)
	}
	for seq := range s.present {
		last = max(last, seq)
	}
	for _, c := range s.leaving {
		last = max(last, c.pack)
	}
	return last + 1
}

// prove compares the index's rows with the packs, once, when an object is
// missed. It says no when the packs have to be asked again.
func (s *Store) prove() (sound bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proven || s.doubted {
		return true, nil
	}
	sound, err = s.proveRows()
	sound = sound && len(s.leaving) == 0
	s.proven = true
	if err == nil && !sound {
		s.doubt()
	}
	return sound, err
}

type readerAt = io.ReaderAt

func sortedKeys[V any](m map[uint32]V) []uint32 { return slices.Sorted(maps.Keys(m)) }

// grown returns b with length n, on new memory only where it must.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
