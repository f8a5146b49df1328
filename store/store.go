package store

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sync"

	"decree/disk"
)

// Options are the sizes of a store; the zero value is the default.
type Options struct {
	PackSize  int64 // a pack is closed when it reaches this; 0: 256 MiB
	BlockSize int   // raw bytes gathered into one block; 0: 512 KiB, at most 8 MiB
	FoldAt    int   // entries of the index log that are folded into its base; 0: 4,096 or more
}

const packsName = "packs"

// Store reads a store. It is safe for concurrent use, and beside a Writer of this
// or another process: it sees what was flushed when it was opened, finds what
// came later when it is asked for it, and keeps packs open, so that one which is
// compacted away under it is read to the end.
type Store struct {
	dir disk.Dir
	o   Options

	mu      sync.RWMutex
	packs   disk.Dir // nil while there is none
	base    *base    // nil: none that can be believed
	recent  table    // the log's entries, then what a scan or a Writer added
	logged  int      // how many of recent the log holds
	refold  bool     // the log has a line that must not count any more
	logEnd  int64    // sound length of the log; 0: to be begun anew
	covered map[uint32]coverage
	present map[uint32]bool // packs in the directory
	leaving []coverage      // packs that a compaction did not come to remove
	proven  bool            // the index's rows were compared with the packs
	scanned bool            // what the index does not cover is in recent
	doubted bool            // the index was found wrong: recent is all there is
	held    bool            // it stays what it was when it was opened: see OpenHeld
	stamp   stamp
	version uint64 // counts what load and doubt changed
	w       *Writer

	retired []func() error // mappings that a reader may still look at
	files   handles
	cache   blockCache
}

// stamp tells whether the index or the list of packs changed since it was read.
type stamp struct{ base, log, packs disk.Info }

// Open opens the store in dir, which stays the caller's to close after the
// Store. A directory without packs is an empty store. Nothing is written, and
// the work does not grow with the objects. A damaged index is no error: the
// packs are scanned instead, when it is first needed.
func Open(dir disk.Dir, o Options) (*Store, error) {
	if o.PackSize <= 0 {
		o.PackSize = 256 << 20
	}
	o.PackSize = min(o.PackSize, maxPack)
	if o.BlockSize <= 0 {
		o.BlockSize = 512 << 10
	}
	o.BlockSize = min(o.BlockSize, maxWhole)
	s := &Store{dir: dir, o: o, files: handles{limit: 128}}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close releases files and mappings. An open Writer must be closed first.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.close()
	s.retire()
	var err error
	for _, release := range s.retired {
		err = errors.Join(err, release())
	}
	s.retired = nil
	if s.packs != nil {
		err = errors.Join(err, s.packs.Close())
		s.packs = nil
	}
	return err
}

func (s *Store) retire() {
	if s.base != nil && s.base.release != nil {
		s.retired = append(s.retired, s.base.release)
	}
	s.base = nil
}

// load reads the index and lists the packs, in this order: packs that a
// compaction takes away meanwhile are then missing, which is noticed, and the
// new index's are there.
func (s *Store) load() error {
	for range 5 {
		consistent, err := s.loadOnce()
		if err != nil || consistent {
			return err
		}
	}
	return nil
}

func (s *Store) loadOnce() (consistent bool, err error) {
	if s.packs == nil {
		if s.packs, err = s.dir.OpenDir(packsName); absent(err) {
			s.packs, err = nil, nil
		}
		if err != nil {
			return false, err
		}
	}
	if s.stamp, err = s.look(); err != nil {
		return false, err
	}
	s.version++
	s.retire()
	s.recent, s.covered = table{}, map[uint32]coverage{}
	s.scanned, s.doubted, s.proven, s.refold, s.logged = false, false, false, false, 0
	if s.base, err = openBase(s.dir); err != nil {
		return false, err
	}
	var gen generation
	if s.base != nil {
		gen = s.base.gen
		for _, r := range s.base.rows {
			s.covered[r.pack] = r
		}
	}
	s.logEnd, err = readLog(s.dir, gen, func(c coverage) { s.covered[c.pack] = c }, s.recent.put)
	if err != nil {
		return false, err
	}
	s.logged = s.recent.n
	if s.present, err = listPacks(s.packs); err != nil {
		return false, err
	}
	consistent = true
	s.leaving = nil
	defer s.dropAbsent()
	for seq, c := range s.covered {
		switch {
		case c.retired && s.present[seq]:
			s.leaving = append(s.leaving, c)
			delete(s.present, seq)
		case !c.retired && !s.present[seq]:
			consistent = false
		}
	}
	return consistent, nil
}

// dropAbsent drops the log's entries in packs that are gone, so that what is
// put again is logged again.
func (s *Store) dropAbsent() {
	absent := func(c coverage) bool { return !s.present[c.pack] }
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.covered)), absent) {
		return
	}
	kept := table{}
	for i := range s.recent.n {
		if e := s.recent.at(i); s.present[e.pack] {
			kept.add(*e)
		}
	}
	s.recent, s.logged = kept, kept.n
}

// look takes the stamp of what load is about to read.
func (s *Store) look() (st stamp, err error) {
	if st.base, err = statIfThere(s.dir, baseName); err != nil {
		return st, err
	}
	if st.log, err = statIfThere(s.dir, logName); err != nil {
		return st, err
	}
	if s.packs != nil {
		st.packs, err = s.packs.Self()
	}
	return st, err
}

// absent says whether there is no file or directory of the store's own at a place: nothing is
// there, or what decree moves away before it writes.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || disk.OtherKind(err) }

func statIfThere(dir disk.Dir, name string) (disk.Info, error) {
	st, err := dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return disk.Info{}, nil
	}
	return st, err
}

// newest returns the highest numbers of a pack in the directory and of one that
// the index covers. Packs below the latter are complete in the index: a pack is
// followed by another only when it is full, and they are logged together.
func (s *Store) newest() (present, covered uint32) {
	for seq := range s.present {
		present = max(present, seq)
	}
	for seq := range s.covered {
		if s.present[seq] {
			covered = max(covered, seq)
		}
	}
	return present, covered
}

// beyond lists the packs that may hold more than the index covers, in order.
func (s *Store) beyond() []uint32 {
	_, from := s.newest()
	var list []uint32
	for seq := range s.present {
		_, known := s.covered[seq]
		if seq >= from || !known {
			list = append(list, seq)
		}
	}
	slices.Sort(list)
	return list
}

// get looks h up in what is known. mu is held for reading at least.
func (s *Store) get(h *Hash) (entry, bool, error) {
	if e := s.recent.get(h); e != nil {
		return *e, e.pack == pending || s.present[e.pack], nil
	}
	if s.doubted {
		return entry{}, false, nil
	}
	e, ok, err := s.base.get(h)
	return e, ok && s.present[e.pack], err
}

// find looks h up; where the index does not know it, in what the index does not
// cover, and where the index is damaged, in the packs.
func (s *Store) find(h *Hash) (entry, bool, error) {
	s.mu.RLock()
	e, ok, err := s.get(h)
	done := ok || err == nil && s.scanned
	s.mu.RUnlock()
	if done {
		return e, ok, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.doubt()
	}
	if err := s.scanTails(); err != nil {
		return entry{}, false, err
	}
	return s.get(h)
}

// CatchUp makes what Has, Size and Objects say that of now, also of what other processes
// have written. Without it they may go by what was there when the store was opened.
func (s *Store) CatchUp() error {
	_, err := s.refresh(s.known())
	return err
}

// known is the version of what is known, for refresh.
func (s *Store) known() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// refresh reads the index again if another process changed it. It says whether more is
// known than at version since, which another goroutine may have brought about.
func (s *Store) refresh(since uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != since {
		return true, nil
	}
	if s.w != nil || s.held {
		return false, nil // nobody else writes, or what they write is not looked at
	}
	now, err := s.look()
	if err != nil || s.packs != nil && now == s.stamp {
		return false, err
	}
	return true, s.load()
}

// doubt turns away from an index that was found wrong: what the packs hold is
// scanned, and the next Flush writes a new index. mu is held.
func (s *Store) doubt() {
	if s.doubted {
		return
	}
	logged := s.logged
	s.version++
	s.retire()
	s.doubted, s.scanned, s.logEnd, s.logged = true, false, 0, 0
	s.covered = map[uint32]coverage{}
	kept := table{}
	if s.w != nil { // what it put is no part of the index yet
		for i := logged; i < s.recent.n; i++ {
			kept.add(*s.recent.at(i))
		}
	}
	s.recent = kept
	s.readmit()
}

// readmit counts packs that are leaving as packs again, though nothing in them is
// in the index: only what is elsewhere too, or dead, may go with them. mu is held.
func (s *Store) readmit() {
	for _, c := range s.leaving {
		s.present[c.pack] = true
		delete(s.covered, c.pack)
	}
	if len(s.leaving) > 0 {
		s.scanned = false
	}
	s.leaving = nil
}

// scanTails puts into recent what lies beyond the index's coverage. Torn tails
// are passed over: another process may be writing there. mu is held.
func (s *Store) scanTails() error {
	if s.scanned {
		return nil
	}
	present, _ := s.newest()
	for _, seq := range s.beyond() {
		t, err := s.scanTail(context.Background(), seq, seq != present)
		if err != nil {
			return err
		}
		if s.doubted && s.present[seq] {
			s.covered[seq] = t.coverage
		}
	}
	s.scanned = true
	return nil
}

// tail is what a scan beyond the index's coverage says of a pack.
type tail struct {
	coverage
	size  int64 // of the file
	sound bool  // its header
	from  int64 // where the index's coverage ended
	scan
}

// scanTail scans one pack from where its coverage ends. full says that a later
// pack exists, so that no part of this one can be torn. mu is held.
func (s *Store) scanTail(ctx context.Context, seq uint32, full bool) (t tail, err error) {
	name := packName(seq)
	f, err := s.packs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		delete(s.present, seq) // compacted away since it was listed
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return t, err
	}
	t.pack, t.size = seq, st.Size
	if t.id, t.sound, err = readPackHead(f, name); err != nil {
		return t, err
	}
	t.from = max(packStart, s.covered[seq].length)
	durable := t.from
	if full {
		durable = t.size
	}
	t.scan, err = scanPack(ctx, f, t.from, min(t.size, math.MaxUint32), durable, func(b *found) error {
		s.adopt(seq, b)
		return nil
	})
	t.length = t.end
	if err == nil && t.end > packStart {
		if _, err = f.ReadAt(make([]byte, 1), t.end-1); unreadable(err) {
			t.unread, err = true, nil // what is written behind it would be written with it
		}
	}
	return t, err
}

// adopt adds a found block's objects to recent; those that are known already keep their place.
func (s *Store) adopt(seq uint32, b *found) {
	for i := range b.members {
		m := &b.members[i]
		if s.recent.get(&m.hash) != nil {
			continue
		}
		if e, ok, err := s.base.get(&m.hash); err == nil && ok && s.present[e.pack] && !s.doubted {
			continue
		}
		s.recent.add(entry{m.hash, place{seq, uint32(b.off), uint16(i)}, m.list, m.size})
	}
}

// Has says whether the store has h, going by the index: it reads no content. No
// may be wrong for what another process flushed since the store was opened.
func (s *Store) Has(h Hash) bool {
	_, ok, err := s.find(&h)
	return ok && err == nil
}

// Size returns the length of the content h, and whether the store has it.
func (s *Store) Size(h Hash) (int64, bool) {
	e, ok, err := s.find(&h)
	return e.size, ok && err == nil
}
