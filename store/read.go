package store

import (
	"crypto/sha256"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
)

// Open returns the content h and its length. Each byte that is read was checked
// against a checksum, and the whole against h: for contents up to 8 MiB before
// Open returns, for larger ones when Read comes to the end. The error, of Open or
// Read, is a *MissingError or a *DamagedError, or the disk's. The reader is an
// io.WriterTo, belongs to one goroutine and must be closed.
func (s *Store) Open(h Hash) (io.ReadCloser, int64, error) {
	d, e, err := s.object(&h)
	if err != nil {
		return nil, 0, err
	}
	data := d.member(e)
	if !e.list {
		if sha256.Sum256(data) != h {
			d.release()
			return nil, 0, damagedAt(e, errHash)
		}
		return &wholeReader{d: d, data: data}, e.size, nil
	}
	list, err := soundList(data, e.size)
	if err != nil {
		d.release()
		return nil, 0, damagedAt(e, err)
	}
	return &listReader{s: s, e: e, d: d, list: list, sum: sha256.New()}, e.size, nil
}

// Verify reads the content h to its end. The error is Open's or Read's.
func (s *Store) Verify(h Hash) error {
	r, _, err := s.Open(h)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

func damagedAt(e entry, err error) error {
	return &DamagedError{Hash: e.hash, Pack: packName(e.pack), Offset: int64(e.off), Err: err}
}

// member returns the bytes of the object that e names.
func (d *decoded) member(e entry) []byte {
	start := 0
	for _, m := range d.members[:e.pos] {
		start += int(m.length)
	}
	return d.raw[start:][:d.members[e.pos].length]
}

// object finds and reads the block, or the part of it, that holds h. Where the
// index proves stale, it is read again; where it proves wrong, the packs are asked.
func (s *Store) object(h *Hash) (*decoded, entry, error) {
	for try := 0; ; try++ {
		known := s.known()
		e, ok, err := s.find(h)
		if err != nil {
			return nil, e, err
		}
		if !ok {
			if err := s.lookFurther(h, known, try); err != nil {
				return nil, e, err
			}
			continue
		}
		d, err := s.block(e)
		if errors.Is(err, errPending) {
			if d := s.unwritten(e); d != nil {
				e.pos = 0
				return d, e, nil
			}
		}
		if err == nil {
			return d, e, nil
		}
		if err := s.mayReadAgain(e, err, known, try); err != nil {
			return nil, e, err
		}
	}
}

// lookFurther returns nil where h, which was not found, may be found now: another process
// has changed the index, or the index proves wrong.
func (s *Store) lookFurther(h *Hash, known uint64, try int) error {
	changed, err := s.refresh(known)
	if err != nil || changed && try < 3 {
		return err
	}
	if sound, err := s.prove(); err != nil || !sound {
		return err
	}
	return s.missing(*h)
}

// mayReadAgain returns nil where the reading of e, which ended with err, may succeed now: the
// object has been written, or the index has been read again or given up.
func (s *Store) mayReadAgain(e entry, err error, known uint64, try int) error {
	switch {
	case errors.Is(err, errPending):
		return s.writeOut(&e)
	case errors.Is(err, fs.ErrNotExist) && try < 3:
		return s.lost(e.pack, known)
	case errors.Is(err, errIdentity) && try < 3:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.doubt()
		return nil
	case misled(err) && try == 0:
		// What was scanned behind the index may have been taken back since.
		_, err := s.refresh(known)
		return err
	case misled(err) || errors.Is(err, errPayload) || errors.Is(err, errRawSize) || unreadable(err):
		return damagedAt(e, err)
	}
	return err
}

// misled says that there is no block where the index has one, or not that one.
func misled(err error) bool {
	for _, e := range []error{errMagic, errShort, errHeader, errBounds, errEntry, errIdentity} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// lost reacts to a pack that is not there: another process compacted it away,
// and its index says where the objects are now.
func (s *Store) lost(seq uint32, known uint64) error {
	s.files.drop(seq)
	changed, err := s.refresh(known)
	if err == nil && !changed {
		s.mu.Lock()
		delete(s.present, seq)
		s.mu.Unlock()
	}
	return err
}

// block reads the block at e's place and checks that it holds what e says.
func (s *Store) block(e entry) (*decoded, error) {
	if e.pack == pending {
		return nil, errPending
	}
	kept, done := s.cache.get(e.place)
	if d := kept; d != nil {
		if err := d.holds(e); err != nil {
			d.release()
			return nil, err
		}
		return d, nil
	}
	defer done()
	s.mu.RLock()
	dir := s.packs
	var known *coverage
	if c, ok := s.covered[e.pack]; ok {
		known = &c
	}
	s.mu.RUnlock()
	src := source{func(b []byte, off int64) error { return s.files.readAt(dir, e.pack, known, b, off) }}
	d, err := src.read(e)
	if err != nil {
		return nil, err
	}
	if len(d.members) > 1 {
		s.cache.put(d)
	}
	return d, nil
}

func (d *decoded) holds(e entry) error {
	if int(e.pos) >= len(d.members) {
		return errEntry
	}
	if m := &d.members[e.pos]; m.hash != e.hash || m.list != e.list || m.size != e.size {
		return errEntry
	}
	return nil
}

// source reads blocks from one pack.
type source struct {
	readAt func(b []byte, off int64) error
}

// read returns the decoded block that e points to, with one reference.
func (s source) read(e entry) (*decoded, error) {
	off := int64(e.off)
	fixed := make([]byte, blockFixed)
	if err := s.readAt(fixed, off); err != nil {
		return nil, err
	}
	head, err := readHead(fixed)
	if err != nil {
		return nil, err
	}
	buf := rawBuffer(int(head.header) + int(head.stored))
	defer freeRaw(buf)
	if err := s.readAt(buf, off); err != nil {
		return nil, err
	}
	d := &decoded{at: place{pack: e.pack, off: e.off}}
	d.refs.Store(1)
	header, payload := buf[:head.header], buf[head.header:]
	if d.members, err = readMembers(make([]member, 0, head.count), header, off, &head); err != nil {
		return nil, err
	}
	if err := d.holds(e); err != nil {
		return nil, err
	}
	if crc32.Checksum(payload, castagnoli) != head.payloadSum {
		return nil, errPayload
	}
	d.raw = rawBuffer(int(head.raw))
	if err := expand(d.raw, payload, head.method); err != nil {
		d.release()
		return nil, err
	}
	return d, nil
}

// wholeReader reads a content that is in memory and was checked.
type wholeReader struct {
	d    *decoded
	data []byte
}

func (r *wholeReader) Read(p []byte) (int, error) {
	if r.d == nil {
		return 0, errClosed
	}
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

func (r *wholeReader) WriteTo(w io.Writer) (int64, error) {
	if r.d == nil {
		return 0, errClosed
	}
	n, err := w.Write(r.data)
	r.data = r.data[n:]
	return int64(n), err
}

func (r *wholeReader) Close() error {
	if r.d != nil {
		r.d.release()
		r.d, r.data = nil, nil
	}
	return nil
}

// listReader reads a large content chunk by chunk. The chunks' own hashes are
// not checked one by one: their payloads' checksums are, and the whole by its hash.
type listReader struct {
	s    *Store
	e    entry
	d    *decoded // of the list
	list []byte
	next int
	part *decoded
	data []byte // what is left of the part
	more uint32 // how often the part comes again
	once []byte // the part whole
	sum  hash.Hash
	err  error
}

// fill makes data non-empty, or returns why it can't; io.EOF after the whole was found sound.
func (r *listReader) fill() error {
	for r.err == nil && len(r.data) == 0 {
		r.err = r.advance()
	}
	if len(r.data) > 0 {
		return nil
	}
	return r.err
}

func (r *listReader) advance() error {
	if r.more > 0 {
		r.more--
		r.data = r.once
		r.sum.Write(r.data)
		return nil
	}
	if r.part != nil {
		r.part.release()
		r.part = nil
	}
	if r.next == len(r.list)/pieceLen {
		if Hash(r.sum.Sum(nil)) != r.e.hash {
			return &DamagedError{Hash: r.e.hash, Err: errHash}
		}
		return io.EOF
	}
	p := pieceAt(r.list, r.next)
	d, e, err := r.s.object(&p.hash)
	if err != nil {
		return r.blame(p, err)
	}
	if e.list || e.size == 0 || int64(p.length)%e.size != 0 {
		d.release()
		return damagedAt(r.e, errList)
	}
	r.part, r.once = d, d.member(e)
	r.data, r.more = r.once, p.length/uint32(e.size)-1
	r.sum.Write(r.data)
	r.next++
	return nil
}

// blame says of an error with a chunk which content it spoils.
func (r *listReader) blame(p piece, err error) error {
	if _, ok := errors.AsType[*MissingError](err); ok {
		return &MissingError{Hash: r.e.hash, Chunk: p.hash}
	}
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		return &DamagedError{Hash: r.e.hash, Pack: damaged.Pack, Offset: damaged.Offset, Err: damaged.Err}
	}
	return err
}

func (r *listReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

func (r *listReader) WriteTo(w io.Writer) (total int64, err error) {
	for {
		if err := r.fill(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
		n, err := w.Write(r.data)
		total += int64(n)
		r.data = r.data[n:]
		if err != nil {
			return total, err
		}
	}
}

func (r *listReader) Close() error {
	if r.part != nil {
		r.part.release()
	}
	if r.d != nil {
		r.d.release()
	}
	r.d, r.part, r.list, r.data, r.once, r.more, r.err = nil, nil, nil, nil, nil, 0, errClosed
	return nil
}
