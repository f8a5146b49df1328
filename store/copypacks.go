package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"

	"decree/disk"
)

// What a store's objects are copied to are packs like its own, but written in one go: a stream
// that needs no seeking, and, for those who look for an object without reading all of it, the
// headers of the blocks in their order, which say where each of them lies.

// PackSink takes the packs that CopyPacks makes.
type PackSink struct {
	Size int64 // a pack ends when it has reached this; 0: 32 MiB
	// Begin is where the next pack goes. End is told that it is whole, and the headers of its
	// blocks, which are the sink's.
	Begin func() (io.Writer, error)
	End   func(headers []byte) error
}

// OpenHeld opens a store as it is now and stays for this Store: it has all packs open, so that
// what another process compacts away meanwhile is read to the end, and looks at no later index.
func OpenHeld(dir disk.Dir) (*Store, error) {
	for try := 0; ; try++ {
		s, err := Open(dir, Options{})
		if err != nil {
			return nil, err
		}
		if err = s.hold(); err == nil {
			return s, nil
		}
		if err = errors.Join(err, s.Close()); !errors.Is(err, fs.ErrNotExist) || try == 5 {
			return nil, err
		}
	}
}

func (s *Store) hold() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.complete(); err != nil {
		return err
	}
	s.files.limit, s.held = math.MaxInt, true
	err := s.openAll()
	if errors.Is(err, errIdentity) { // the index is of another pack, or this one's head is damaged: its blocks say what they hold
		s.doubt()
		if err = s.complete(); err == nil {
			err = s.openAll()
		}
	}
	return err
}

// openAll opens all packs that are there. mu is held.
func (s *Store) openAll() error {
	for _, seq := range sortedKeys(s.present) {
		var known *coverage
		if c, ok := s.covered[seq]; ok {
			known = &c
		}
		if err := s.files.add(s.packs, seq, known); err != nil {
			return err
		}
	}
	return nil
}

// Parts adds the chunks that the contents in want are made of, which are objects too. A content of
// which that cannot be read, since the store has lost it, is taken out of want.
func (s *Store) Parts(want *Numbers) error {
	return want.sound(s.upToDate(func() error {
		entries, err := s.snapshot()
		if err != nil {
			return err
		}
		for e, err := range entries {
			if err != nil {
				return err
			}
			if !e.list || want.Get(e.hash) == 0 {
				continue
			}
			chunks, err := s.chunksOf(e.hash)
			if IsLost(err) {
				want.Set(e.hash, 0)
				continue
			}
			if err != nil {
				return err
			}
			for _, h := range chunks {
				want.Set(h, 1)
			}
		}
		return nil
	}))
}

// IsLost says whether an error is that an object is missing or damaged.
func IsLost(err error) bool {
	return errors.As(err, new(*MissingError)) || errors.As(err, new(*DamagedError))
}

// CopyPacks copies objects, and takes each out of left: blocks of which all are wanted as they
// are, of others what is wanted. s is one of OpenHeld. What stays in left is missing or damaged. The error
// is the sink's or the disk's.
func (s *Store) CopyPacks(ctx context.Context, left *Numbers, sink PackSink) error {
	if sink.Size <= 0 {
		sink.Size = 32 << 20
	}
	c := &packCopy{s: s, left: left, sink: sink}
	coder := newCoder(s.o.BlockSize)
	c.copy = blockCopy{
		size:   s.o.BlockSize,
		wanted: c.wanted,
		whole:  func(block []byte, head blockHead, members []member) error { return c.write(block, nil, head, members) },
		mixed: func(raw []byte, members []member) error {
			head, payload := coder.encode(raw, members)
			return c.write(coder.out, payload, head, members)
		},
	}
	err := c.all(ctx)
	if err == nil {
		err = c.copy.spill()
	}
	if err == nil {
		err = c.end()
	}
	return left.sound(err)
}

// Lost returns which of the contents in want are missing or damaged, or have a part that is. s is one of OpenHeld,
// and all of want is read.
func (s *Store) Lost(ctx context.Context, want *Numbers) ([]Hash, error) {
	left := want.Clone()
	err := s.Parts(left)
	if err != nil {
		return nil, err
	}
	nowhere := PackSink{Begin: func() (io.Writer, error) { return io.Discard, nil }, End: func([]byte) error { return nil }}
	if err := s.CopyPacks(ctx, left, nowhere); err != nil {
		return nil, err
	}
	return s.Without(want, left)
}

// Without returns which of the contents in want cannot be had without the objects in lost.
func (s *Store) Without(want, lost *Numbers) (out []Hash, err error) {
	for h := range want.All() {
		gone := lost.Get(h) != 0
		if !gone {
			gone = s.misses(h, lost)
		}
		if gone {
			out = append(out, h)
		}
	}
	return out, want.sound(lost.sound(nil))
}

// misses says whether a content is kept as chunks of which one is lost, or which cannot be told.
func (s *Store) misses(h Hash, lost *Numbers) bool {
	e, ok, err := s.find(&h)
	if err != nil || !ok || !e.list {
		return err != nil || !ok
	}
	chunks, err := s.chunksOf(h)
	return err != nil || slices.ContainsFunc(chunks, func(c Hash) bool { return lost.Get(c) != 0 })
}

// packCopy is a CopyPacks in work.
type packCopy struct {
	s    *Store
	left *Numbers
	sink PackSink

	to      io.Writer // nil between packs
	off     int64     // in the pack
	headers []byte

	copy blockCopy
}

func (c *packCopy) all(ctx context.Context) error {
	for _, seq := range sortedKeys(c.s.files.open) {
		if err := c.pack(ctx, seq, c.s.files.open[seq]); err != nil {
			return err
		}
	}
	return nil
}

func (c *packCopy) pack(ctx context.Context, seq uint32, f disk.File) error {
	if c.left.Len() == len(c.copy.members) {
		return nil
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var failed error
	_, err = outlineOf(ctx, f, st.Size, func(b *found) {
		if failed == nil {
			failed = c.copy.block(f, seq, b)
		}
		if errors.Is(failed, errKeep) {
			failed = nil // its objects stay in left
		}
	})
	return errors.Join(failed, err)
}

// wanted says whether an object is to be copied from this place.
func (c *packCopy) wanted(m *member, at place) bool {
	if c.left.Get(m.hash) == 0 {
		return false
	}
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	e, ok, err := c.s.get(&m.hash)
	return err == nil && ok && e.place == at
}

// write appends a block: its header and, but for what is in payload, the payload.
func (c *packCopy) write(block, payload []byte, head blockHead, members []member) error {
	if c.to != nil && c.off+head.length() > c.sink.Size {
		if err := c.end(); err != nil {
			return err
		}
	}
	if c.to == nil {
		var err error
		if c.to, err = c.sink.Begin(); err != nil {
			return err
		}
		start := newPackHeader()
		if _, err := c.to.Write(start[:]); err != nil {
			return err
		}
		c.off, c.headers = packStart, nil
	}
	head.flushed = 0
	sealHeader(block[:head.header], c.off, head)
	c.headers = append(c.headers, block[:head.header]...)
	if _, err := c.to.Write(block); err != nil {
		return err
	}
	if len(payload) > 0 {
		if _, err := c.to.Write(payload); err != nil {
			return err
		}
	}
	c.off += head.length()
	for i := range members {
		c.left.Set(members[i].hash, 0)
	}
	return nil
}

func (c *packCopy) end() error {
	if c.to == nil {
		return nil
	}
	c.to = nil
	return c.sink.End(c.headers)
}

// Packed is an object of a pack that is known by its headers.
type Packed struct {
	Hash
	Size          int64 // of the content
	List          bool  // it is kept as chunks
	Block, Length int64 // where its block lies in the pack
	Header        int64 // how long the header of that block is
}

// ReadHeaders calls each for the objects that the headers of a pack's blocks name, in their order.
func ReadHeaders(headers []byte, each func(Packed)) error {
	off := int64(packStart)
	var members []member
	for len(headers) > 0 {
		head, err := readHead(headers)
		if err == nil && int64(head.header) > int64(len(headers)) {
			err = errShort
		}
		if err == nil {
			members, err = readMembers(members[:0], headers[:head.header], off, &head)
		}
		if err != nil {
			return &DamagedError{Offset: off, Err: err}
		}
		for i := range members {
			m := &members[i]
			each(Packed{m.hash, m.size, m.list, off, head.length(), int64(head.header)})
		}
		headers = headers[head.header:]
		off += head.length()
	}
	return nil
}

// Headers returns the headers of a pack's blocks, read from the pack itself. A pack
// that has anything else in it is damaged.
func Headers(ctx context.Context, pack io.ReaderAt, size int64) ([]byte, error) {
	w := window{r: pack, size: size, buf: make([]byte, 64<<10)}
	var out []byte
	var b found
	for off := int64(packStart); off < size; off += b.head.length() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.header(off, &b); err != nil {
			return nil, &DamagedError{Offset: off, Err: err}
		}
		header, err := w.at(off, int(b.head.header))
		if err != nil {
			return nil, err
		}
		out = append(out, header...)
	}
	return out, nil
}

// FromBlock returns an object's bytes from its block, which lies at an offset of a pack, checked: those of a content
// against its hash, those of a list by the block's checksum.
func FromBlock(block []byte, off int64, h Hash) ([]byte, Packed, error) {
	damaged := func(err error) ([]byte, Packed, error) {
		return nil, Packed{}, &DamagedError{Hash: h, Offset: off, Err: err}
	}
	w := window{r: shifted{bytes.NewReader(block), off}, size: off + int64(len(block)), buf: make([]byte, len(block))}
	var b found
	if err := w.block(off, &b); err != nil {
		return damaged(err)
	}
	raw := make([]byte, b.head.raw)
	if err := expand(raw, block[b.head.header:][:b.head.stored], b.head.method); err != nil {
		return damaged(err)
	}
	rest := raw
	for i := range b.members {
		m := &b.members[i]
		data := rest[:m.length]
		rest = rest[m.length:]
		if m.hash != h {
			continue
		}
		if !m.list && Hash(sha256.Sum256(data)) != m.hash {
			return damaged(errHash)
		}
		return data, Packed{m.hash, m.size, m.list, off, b.head.length(), int64(b.head.header)}, nil
	}
	return damaged(errEntry)
}

// shifted reads what lies at an offset of a pack.
type shifted struct {
	r  io.ReaderAt
	at int64
}

func (s shifted) ReadAt(b []byte, off int64) (int, error) { return s.r.ReadAt(b, off-s.at) }

// Chunks calls each for the chunks that the bytes of a list name, in their order, with the length
// that they have in the content of this size: a multiple of the chunk's own where it comes several times in a row.
func Chunks(list []byte, size int64, each func(h Hash, length int64) error) error {
	if _, err := soundList(list, size); err != nil {
		return err
	}
	for i := range len(list) / pieceLen {
		p := pieceAt(list, i)
		if err := each(p.hash, int64(p.length)); err != nil {
			return err
		}
	}
	return nil
}

// PackFile is the path, in a store's directory, of the pack of a number from 1 on: where packs
// that CopyPacks has made are put to be a store.
func PackFile(n int) (dir, name string) { return packsName, packName(uint32(n)) }
