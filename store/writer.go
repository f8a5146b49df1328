package store

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"decree/disk"
)

// pending stands for the pack of an object that is in memory still.
const pending = ^uint32(0)

// errPending says that an object must be written before it can be read.
var errPending = errors.New("not written yet")

// Writer adds objects to a store. Put, PutFile, PutBytes and Has are for any
// number of goroutines; each works on a block of its own. What was put can be
// read at once through the Store that made the Writer; durable, and seen by
// others, it is after Flush. An error of the disk is the Writer's end: it is
// returned by all later calls, what was not flushed is gone, and the store is
// as sound as before.
type Writer struct {
	s   *Store
	ctx context.Context

	busy            sync.RWMutex // Puts hold it for reading, Flush and Close alone
	closed          bool
	idle            idle
	middling, large chan *largeBuffer

	mu      sync.Mutex // of the pack's end
	placed  sync.Cond  // an object came out of memory; on mu
	err     error
	failed  atomic.Bool
	assign  func(members []member, seq, off uint32) // where a block came to be
	wounds  []Problem                               // met at the opening
	pack    disk.File
	head    coverage // the pack that is appended to; length is where it ends
	durable int64    // bytes of it that were flushed
	floor   int64    // what a failure cuts it back to
	dirty   bool     // it has bytes that were not flushed
	early   early    // a flush of part of them, under way
	newName bool     // so has the directory of packs
	first   bool     // which may be new itself
	rows    map[uint32]coverage

	began Mark    // where it began to append
	kept  hashSet // contents that Keep found sound
}

// Writer opens the store for writing, making it if need be. The caller holds
// the project's lock. A torn tail is cut, and what a process that died left
// whole behind the index is adopted. There can be one Writer at a time; ctx
// ends its work.
func (s *Store) Writer(ctx context.Context) (*Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil {
		return nil, errWriterOpen
	}
	w := &Writer{s: s, ctx: ctx, rows: map[uint32]coverage{}, early: early{step: earlyStep}, idle: newIdle(),
		middling: make(chan *largeBuffer, 2), large: make(chan *largeBuffer, 1)}
	w.placed.L, w.assign = &w.mu, s.assignPlaces
	w.middling <- &largeBuffer{}
	w.middling <- &largeBuffer{}
	w.large <- &largeBuffer{}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if err := w.begin(); err != nil {
		if w.pack != nil {
			w.pack.Close()
		}
		return nil, err
	}
	w.began = Mark{w.head.pack, uint32(w.head.length)}
	if w.pack == nil {
		w.began.Offset = math.MaxUint32 // the next block begins a pack
	}
	s.w = w
	return w, nil
}

// prepare makes the directory of packs and sees to it that the index is the
// present one and fits the packs. mu is held.
func (s *Store) prepare() error {
	if s.packs == nil {
		if err := s.makePacks(); err != nil {
			return err
		}
	}
	doubted := s.doubted
	s.files.close() // each is compared with the index when it is opened
	if same, err := s.unchanged(); err != nil {
		return err
	} else if !same {
		if err := s.load(); err != nil {
			return err
		}
	}
	if err := removeIfThere(s.dir, baseTemp); err != nil {
		return err
	}
	sound, err := s.proveRows()
	if err != nil {
		return err
	}
	if doubted || !sound {
		s.doubt()
	}
	return nil
}

// unchanged says whether what is in memory is what load would read. mu is held.
func (s *Store) unchanged() (bool, error) {
	now, err := s.look()
	if err != nil || now != s.stamp || s.doubted || s.recent.n != s.logged {
		return false, err
	}
	// The directory's time may be too coarse to tell.
	packs, err := listPacks(s.packs)
	return maps.Equal(packs, s.present), err
}

// makePacks makes the directory of packs, 0700 whatever the umask.
func (s *Store) makePacks() error {
	d, err := s.dir.OpenDir(packsName)
	if err != nil {
		if err := s.dir.Mkdir(packsName, 0o700); err != nil {
			return err
		}
		made, err := s.dir.Stat(packsName)
		if err == nil {
			err = s.dir.Chmod(packsName, made, 0o700)
		}
		if err != nil {
			return err
		}
		if d, err = s.dir.OpenDir(packsName); err != nil {
			return err
		}
	}
	s.packs = d
	return nil
}

// proveRows compares what the index says of the packs with the packs. An index
// that lies would let a Put pass over bytes that are nowhere.
func (s *Store) proveRows() (sound bool, err error) {
	for seq, row := range s.covered {
		if !s.present[seq] {
			continue // its entries do not count
		}
		st, err := s.packs.Stat(packName(seq))
		if err != nil {
			return false, err
		}
		if st.Size < row.length {
			return false, nil
		}
		err = s.files.add(s.packs, seq, &row)
		if errors.Is(err, errIdentity) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	s.proven = true
	return true, nil
}

// begin scans what the index does not cover, cuts a torn tail and opens the
// newest pack for appending. s.mu is held.
func (w *Writer) begin() error {
	s := w.s
	w.first = len(s.covered) == 0
	present, _ := s.newest()
	last := tail{scan: scan{end: -1}}
	for _, seq := range s.beyond() {
		t, err := s.scanTail(w.ctx, seq, seq != present)
		if err == nil && t.unread { // it may have been durable: it stays, and what is behind it counts
			t, err = s.scanTail(w.ctx, seq, true)
			t.unread = true
		}
		if err != nil {
			return err
		}
		if _, known := s.covered[seq]; !known || t.end > t.from {
			w.rows[seq] = t.coverage
			w.dirty = true
			w.newName = w.newName || !known
		}
		w.wounds = append(w.wounds, t.problems(packName(seq))...)
		last = t
	}
	s.scanned = true
	if last.end < 0 {
		return nil // no pack yet: the first block makes one
	}
	empty := last.end <= packStart
	if last.unread || !last.sound && !empty || last.end >= s.o.PackSize {
		w.head.pack = last.pack // the next block makes a new one behind it
		return w.syncBefore(last.pack)
	}
	return w.resume(last, empty)
}

// resume opens the pack that t is about for appending, cut where it is torn.
func (w *Writer) resume(t tail, empty bool) error {
	f, err := w.s.packs.OpenWrite(packName(t.pack), 0o600)
	if err != nil {
		return err
	}
	w.pack, w.head = f, t.coverage
	w.s.files.drop(t.pack) // where the pack had another name too, it is another file now
	w.durable = min(t.from, t.end)
	if empty && !t.sound {
		return w.startPack()
	}
	if t.end < t.size {
		if err := f.Truncate(t.end); err != nil {
			return err
		}
	}
	w.floor = t.end
	return nil
}

// syncBefore flushes a pack that will not be appended to, if it was adopted.
func (w *Writer) syncBefore(seq uint32) error {
	if !w.dirty {
		return nil
	}
	f, err := w.s.packs.OpenWrite(packName(seq), 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	w.dirty = false
	return f.Sync()
}

// startPack writes the header of the pack that is open and empty.
func (w *Writer) startPack() error {
	head := newPackHeader()
	if err := w.pack.Truncate(0); err != nil {
		return err
	}
	if _, err := w.pack.WriteAt(head[:], 0); err != nil {
		return err
	}
	copy(w.head.id[:], head[len(packMagic):])
	w.head.length, w.durable, w.floor = packStart, 0, packStart
	w.rows[w.head.pack] = w.head
	w.dirty, w.newName = true, true
	return nil
}

// nextPack closes the pack, flushed, and begins the one behind it. mu is held.
func (w *Writer) nextPack() error {
	if err := w.closePack(); err != nil {
		return err
	}
	seq := w.s.unused(w.head.pack)
	f, err := disk.CreateFile(w.s.packs, packName(seq), 0o600)
	if err != nil {
		return err
	}
	w.pack, w.head = f, coverage{pack: seq}
	w.durable, w.floor = 0, 0
	w.s.mu.Lock()
	w.s.present[seq] = true
	w.s.mu.Unlock()
	return w.startPack()
}

// closePack ends appending to the pack, flushed. mu is held.
func (w *Writer) closePack() error {
	if w.pack == nil {
		return nil
	}
	if err := w.syncPack(); err != nil {
		return err
	}
	f := w.pack
	w.pack, w.early.upTo = nil, 0
	return f.Close()
}

// syncPack makes the pack's bytes durable. mu is held.
func (w *Writer) syncPack() error {
	if !w.dirty || w.pack == nil {
		return nil
	}
	if err := w.early.wait(); err != nil {
		return err
	}
	if err := w.pack.Sync(); err != nil {
		return err
	}
	w.dirty, w.durable, w.floor = false, w.head.length, w.head.length
	return nil
}

// append writes a block at the pack's end, and places its objects. block is its
// header and, but for what is in payload, the payload.
func (w *Writer) append(block, payload []byte, head blockHead, members []member) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.pack == nil || w.head.length > packStart && w.head.length+head.length() > w.s.o.PackSize {
		if err := w.nextPack(); err != nil {
			return w.fail(err)
		}
	}
	off := w.head.length
	head.flushed = uint32(w.durable)
	sealHeader(block[:head.header], off, head)
	w.dirty = true
	if _, err := w.pack.WriteAt(block, off); err != nil {
		return w.fail(err)
	}
	if len(payload) > 0 {
		if _, err := w.pack.WriteAt(payload, off+int64(len(block))); err != nil {
			return w.fail(err)
		}
	}
	w.head.length += head.length()
	w.rows[w.head.pack] = w.head
	if err := w.early.start(w.pack, w.head.length); err != nil {
		return w.fail(err)
	}
	w.assign(members, w.head.pack, uint32(off))
	w.placed.Broadcast()
	return nil
}

// assignPlaces notes where pending objects have come to be in a pack.
func (s *Store) assignPlaces(members []member, seq, off uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range members {
		if n := s.recent.number(&members[i].hash); n >= 0 && s.recent.at(n).pack == pending {
			s.recent.change(n).place = place{seq, off, uint16(i)}
		}
	}
}

// fail ends the Writer with err and takes back what was not flushed, so that a
// full disk gets its space back at once. After a failed flush nobody knows what
// the disk holds: that is taken back too. mu is held.
func (w *Writer) fail(err error) error {
	if w.err != nil {
		return w.err
	}
	w.err = err
	w.failed.Store(true)
	_ = w.early.wait() // the first error is the one that counts
	if w.pack != nil && w.floor > 0 {
		_ = w.pack.Truncate(w.floor) // if it fails, the next Writer cuts
	}
	w.s.mu.Lock()
	w.s.dropUnlogged()
	w.s.mu.Unlock()
	w.placed.Broadcast()
	return err
}

// dropUnlogged forgets what no Flush has logged; what of it is in the packs is
// found by a scan. mu is held.
func (s *Store) dropUnlogged() {
	s.recent.cut(s.logged)
	s.scanned = false
	if s.doubted {
		s.covered = map[uint32]coverage{}
	}
	s.cache.forget()
}

// usable returns why nothing can be put any more, or nil.
func (w *Writer) usable() error {
	if w.closed {
		return errClosed
	}
	if w.failed.Load() {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	}
	return w.ctx.Err()
}

// Began is where the Writer began to append.
func (w *Writer) Began() Mark { return w.began }

// Has says whether the store has h or will have it with the next Flush.
func (w *Writer) Has(h Hash) bool { return w.s.Has(h) }

// Put stores what r yields up to its end, unless the store has it, and returns
// its hash and length. sizeHint is the length to expect, negative if that is not known.
func (w *Writer) Put(r io.Reader, sizeHint int64) (Hash, int64, error) {
	return w.put(input{r: r, size: sizeHint})
}

// PutAnew is Put, which stores what the store has otherwise than its hash says once more.
func (w *Writer) PutAnew(r io.Reader, sizeHint int64) (Hash, int64, error) {
	return w.put(input{r: r, size: sizeHint, anew: true})
}

// PutFile is Put for a regular file at its beginning, whose size was just seen.
// A read that ends exactly there and short is taken for the file's end, which
// saves the call that would say so. The length returned is that of what was read,
// whatever became of the file meanwhile.
func (w *Writer) PutFile(f io.Reader, size int64) (Hash, int64, error) {
	return w.put(input{r: f, size: size, exact: true})
}

// PutBytes is Put for a content in memory.
func (w *Writer) PutBytes(b []byte) (Hash, error) {
	h, _, err := w.put(input{r: &memory{b}, size: int64(len(b)), exact: true})
	return h, err
}

// PutTree is PutBytes for a directory's object. Those come into blocks of their own, so
// that a tree is read without the contents that were stored meanwhile.
func (w *Writer) PutTree(b []byte) (Hash, error) {
	h, _, err := w.put(input{r: &memory{b}, size: int64(len(b)), exact: true, aside: true})
	return h, err
}

// memory reads bytes without an allocation of bytes.Reader's kind of state.
type memory struct{ b []byte }

func (m *memory) Read(p []byte) (int, error) {
	if len(m.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.b)
	m.b = m.b[n:]
	return n, nil
}

// Flush makes all that was put durable, then visible: it writes the open blocks,
// flushes the pack, and its directory when the pack is new, and then appends to
// the index, which needs no flush. With nothing put it does nothing.
func (w *Writer) Flush() error {
	w.busy.Lock()
	defer w.busy.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.idle.each(w.spill); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.sync(); err != nil {
		return w.fail(err)
	}
	if err := w.s.log(w.rows); err != nil {
		return w.fail(err)
	}
	clear(w.rows)
	select {
	case l := <-w.large: // what comes next, the moving of files, may need the memory
		*l = largeBuffer{}
		w.large <- l
	default:
	}
	return nil
}

// sync makes packs and names durable. mu is held.
func (w *Writer) sync() error {
	if err := w.syncPack(); err != nil {
		return err
	}
	if w.newName {
		if err := w.s.packs.Sync(); err != nil {
			return err
		}
		if w.first {
			if err := w.s.dir.Sync(); err != nil {
				return err
			}
		}
		w.newName, w.first = false, false
	}
	return nil
}

// Close ends the Writer. What was put since the last Flush may be lost; what of
// it reached the pack whole is adopted by the next Writer.
func (w *Writer) Close() error {
	w.busy.Lock()
	defer w.busy.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.recent.n > w.s.logged || w.err != nil {
		w.s.dropUnlogged()
	}
	if w.err == nil {
		w.err = errClosed
	}
	w.placed.Broadcast()
	w.s.w = nil
	var err, closing error
	w.s.stamp, err = w.s.look()
	if w.pack != nil {
		_ = w.early.wait() // what was not flushed may be lost
		closing = w.pack.Close()
	}
	return errors.Join(err, closing)
}

// unwritten returns a copy of an object that lies in an open batch, else nil: the
// batch goes on to fill, and nothing is compressed only to be expanded again.
func (s *Store) unwritten(e entry) *decoded {
	s.mu.RLock()
	w := s.w
	s.mu.RUnlock()
	if w == nil {
		return nil
	}
	b := w.idle.numbered(e.off)
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.from
	for _, m := range b.members {
		if m.hash == e.hash {
			d := &decoded{members: []member{m}, raw: rawBuffer(int(m.length))}
			d.refs.Store(1)
			copy(d.raw, b.raw[at:])
			return d
		}
		at += int(m.length)
	}
	return nil
}

// writeOut writes an object that is in memory into the pack; e says in which batch it is.
func (s *Store) writeOut(e *entry) error {
	s.mu.RLock()
	w := s.w
	s.mu.RUnlock()
	if w == nil {
		return nil // closed meanwhile: the next look finds out
	}
	if b := w.idle.numbered(e.off); b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		return w.spill(b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && s.inMemory(&e.hash) {
		w.placed.Wait()
	}
	return w.err
}

func (s *Store) inMemory(h *Hash) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.recent.get(h)
	return e != nil && e.pack == pending
}
