package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Problem is a finding of Check or Rebuild.
type Problem struct {
	Pack   string // file name
	Offset int64
	Length int64 // of the broken place; 0 if it is not known
	Hash   Hash  // the object that is hurt; zero: not known which were there
	Torn   bool  // the remains of a write that was never acknowledged: the next Writer cuts them
	Err    error
}

func (p Problem) Error() string {
	what := "block"
	if !p.Hash.IsZero() {
		what = "object " + p.Hash.String()
	}
	if p.Torn {
		what = "torn tail"
	}
	if p.Pack == "" {
		return fmt.Sprintf("%s: %v", what, p.Err)
	}
	return fmt.Sprintf("%s: %s at %d: %v", p.Pack, what, p.Offset, p.Err)
}

func (p Problem) Unwrap() error { return p.Err }

// Mendable says whether Rebuild, or for a torn tail the next Writer, mends it:
// it is the index that is wrong, or what was never acknowledged.
func (p Problem) Mendable() bool {
	return p.Torn || errors.Is(p.Err, errIndexed) || errors.Is(p.Err, errUnindexed)
}

// problems are the wounds of a pack, one for each object that is known to be lost.
func (s scan) problems(pack string) (list []Problem) {
	for _, w := range s.wounds {
		p := Problem{Pack: pack, Offset: w.off, Length: w.length, Err: w.err}
		for _, m := range w.lost {
			p.Hash = m.hash
			list = append(list, p)
		}
		if len(w.lost) == 0 {
			list = append(list, p)
		}
	}
	return list
}

// errIndexed says that the index and a pack disagree; Rebuild mends it.
var errIndexed = errors.New("not in the pack where the index has it")

// checking is a Check in work. Blocks are decoded side by side: what they lead to is behind mu.
type checking struct {
	s        *Store
	mu       sync.Mutex
	blocks   map[place]int // sound blocks and how many objects the index has in them
	lists    []Hash
	problems []Problem
}

func (c *checking) problem(list ...Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, list...)
}

// Check reads everything and compares each object with its hash. It returns
// what is wrong, pack by pack, and changes nothing. The error is the context's
// or one that says that a pack could not be read.
func (s *Store) Check(ctx context.Context) (problems []Problem, err error) {
	for range 5 {
		s.mu.RLock()
		before := s.stamp
		s.mu.RUnlock()
		problems, err = s.check(ctx)
		if err == nil && len(problems) == 0 || ctx.Err() != nil {
			return problems, err
		}
		if _, err := s.refresh(s.known()); err != nil {
			return problems, err
		}
		s.mu.RLock()
		same := s.stamp == before
		s.mu.RUnlock()
		if same {
			return problems, err
		}
		// Another process wrote meanwhile: what is amiss may only have moved.
	}
	return problems, err
}

func (s *Store) check(ctx context.Context) ([]Problem, error) {
	c := &checking{s: s, blocks: map[place]int{}}
	s.mu.Lock()
	err := s.complete()
	packs := sortedKeys(s.present)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i, seq := range packs {
		if err := c.pack(ctx, seq, i < len(packs)-1); err != nil {
			return c.problems, err
		}
	}
	entries, err := s.snapshot()
	if err != nil {
		return c.problems, err
	}
	for e, err := range entries {
		if err != nil {
			return c.problems, err
		}
		if err := c.indexed(e); err != nil {
			c.problem(Problem{Pack: packName(e.pack), Offset: int64(e.off), Hash: e.hash, Err: err})
		}
	}
	err = c.large(ctx)
	return c.problems, err
}

// indexed says what is wrong with the place where the index has e. A wound whose
// objects are known named them already.
func (c *checking) indexed(e entry) error {
	at := place{e.pack, e.off, 0}
	if n, sound := c.blocks[at]; sound && n > 0 {
		c.blocks[at] = n - 1
		return nil
	} else if sound {
		return errIndexed
	}
	d, err := c.s.block(e)
	if err == nil {
		d.release()
	} else if misled(err) {
		return err
	}
	return nil
}

// pack checks the blocks of one pack.
func (c *checking) pack(ctx context.Context, seq uint32, full bool) error {
	name := packName(seq)
	f, err := c.s.packs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if _, sound, err := readPackHead(f, name); err != nil {
		return err
	} else if !sound {
		c.problem(Problem{Pack: name, Length: packStart, Err: errHeader})
	}
	c.s.mu.RLock()
	durable := c.s.covered[seq].length
	c.s.mu.RUnlock()
	if full {
		durable = st.Size
	}
	before := len(c.problems)
	var side errgroup.Group
	side.SetLimit(runtime.GOMAXPROCS(0))
	res, err := scanPack(ctx, f, packStart, st.Size, durable, func(b *found) error {
		own := found{b.off, b.head, slices.Clone(b.members)}
		side.Go(func() error { return c.block(f, seq, &own) })
		return nil
	})
	if err = cmp.Or(side.Wait(), err); err != nil {
		return err
	}
	c.problem(res.problems(name)...)
	slices.SortStableFunc(c.problems[before:], func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	if res.end < st.Size {
		c.problem(Problem{Pack: name, Offset: res.end, Length: st.Size - res.end, Torn: true, Err: errShort})
	}
	return nil
}

// block compares each object of a sound block with its hash.
func (c *checking) block(f readerAt, seq uint32, b *found) error {
	stored := rawBuffer(int(b.head.length()))
	defer freeRaw(stored)
	raw := rawBuffer(int(b.head.raw))
	defer freeRaw(raw)
	p := Problem{Pack: packName(seq), Offset: b.off, Length: b.head.length()}
	if _, p.Err = f.ReadAt(stored, b.off); p.Err == nil {
		p.Err = expand(raw, stored[b.head.header:], b.head.method)
	} else if !unreadable(p.Err) {
		return p.Err
	}
	if p.Err != nil {
		for _, m := range b.members {
			p.Hash = m.hash
			c.problem(p)
		}
		return nil
	}
	var lists []Hash
	indexed, rest := 0, raw
	for i := range b.members {
		m := &b.members[i]
		p.Hash, p.Err = m.hash, m.wrong(rest[:m.length])
		rest = rest[m.length:]
		if m.list {
			lists = append(lists, m.hash)
		}
		if p.Err != nil {
			c.problem(p)
		}
		c.s.mu.RLock()
		e, ok, err := c.s.get(&m.hash)
		c.s.mu.RUnlock()
		switch {
		case err != nil || !ok:
			p.Err = errUnindexed
			c.problem(p)
		case e.pack == seq && int64(e.off) == b.off && int(e.pos) == i && e.list == m.list && e.size == m.size:
			indexed++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks[place{seq, uint32(b.off), 0}] = indexed
	c.lists = append(c.lists, lists...)
	return nil
}

// wrong says what is wrong with an object's bytes.
func (m *member) wrong(data []byte) error {
	switch {
	case m.list:
		_, err := soundList(data, m.size)
		return err
	case sha256.Sum256(data) != m.hash:
		return errHash
	}
	return nil
}

// errUnindexed says that the index lacks an object; Rebuild mends it.
var errUnindexed = errors.New("not in the index")

// large reads the contents that are kept as chunks.
func (c *checking) large(ctx context.Context) error {
	for _, h := range c.lists {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.s.Verify(h)
		var damaged *DamagedError
		var missing *MissingError
		switch {
		case errors.As(err, &damaged):
			c.problem(Problem{Pack: damaged.Pack, Offset: damaged.Offset, Hash: h, Err: damaged.Err})
		case errors.As(err, &missing):
			c.problem(Problem{Hash: h, Err: missing})
		case err != nil:
			return err
		}
	}
	return nil
}

// Rebuild makes the index anew from the packs alone, under the project's lock
// and beside no Writer. It returns the places where packs are damaged; what they
// held is not in the index then, so that a content met again is stored again.
func (s *Store) Rebuild(ctx context.Context) ([]Problem, error) {
	s.mu.Lock()
	if s.w != nil {
		s.mu.Unlock()
		return nil, errWriterOpen
	}
	s.doubt()
	s.mu.Unlock()
	w, err := s.Writer(ctx)
	if err != nil {
		return nil, err
	}
	err = w.Flush()
	return w.wounds, errors.Join(err, w.Close())
}
