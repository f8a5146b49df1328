package capture

import (
	"cmp"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"

	"decree/disk"
)

// The cache is a log: a head of two slots, then blocks, each written once and behind
// those that it refers to. A slot names the block of the root. A commit appends blocks
// and then writes the older slot, so that at any moment one slot is whole; since all
// hangs on its checksums, a slot whose blocks were lost in a power failure is found out.
//
// What lies behind the end that the slot names was never committed, and is written over.
// When more than half is garbage, the live blocks are copied to a new file that takes
// the old one's place.
const (
	cacheName = "cache"
	nextName  = "cache.new"
	headSize  = 4096
	slotAt    = 2048 // of the second slot; the first is at 0
	slotSize  = 104
	slotMagic = "decree cache 2\x00\n"
	// Of version 1 no directory's object is known, and the tree's id is another one: all
	// else is as it is now.
	slotMagic1 = "decree cache 1\x00\n"
	foldFloor  = 1 << 20 // garbage that is not worth a fold
)

// slot is the commit of one cache state, little-endian with its checksum at the end.
type slot struct {
	seq      uint64
	root     ref
	end      int64 // of the blocks
	dev, ino uint64
	tree     Hash
}

func (s *slot) encode() []byte {
	b := append(make([]byte, 0, slotSize), slotMagic...)
	b = le.AppendUint64(b, s.seq)
	b = le.AppendUint64(b, uint64(s.root.off))
	b = le.AppendUint32(b, s.root.sum)
	b = le.AppendUint64(b, uint64(s.end))
	b = le.AppendUint64(b, s.dev)
	b = le.AppendUint64(b, s.ino)
	b = append(b, s.tree[:]...)
	b = append(b, make([]byte, slotSize-4-len(b))...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeSlot(b []byte) (s slot, ok bool) {
	b = b[:slotSize]
	if magic := string(b[:16]); magic != slotMagic && magic != slotMagic1 || crc32.Checksum(b[:slotSize-4], castagnoli) != le.Uint32(b[slotSize-4:]) {
		return s, false
	}
	s = slot{
		seq: le.Uint64(b[16:]), root: ref{int64(le.Uint64(b[24:])), le.Uint32(b[32:])},
		end: int64(le.Uint64(b[36:])), dev: le.Uint64(b[44:]), ino: le.Uint64(b[52:]), tree: Hash(b[60:92]),
	}
	if string(b[:16]) == slotMagic1 {
		s.tree = Hash{}
	}
	return s, s.root.off >= headSize && s.root.off < s.end
}

// cache is an open stat cache: the blocks of the last commit, mapped, and those that the
// present walk adds. Reading and adding blocks is safe for concurrent use; block is not
// for added ones before flush.
type cache struct {
	dir      disk.Dir
	self     disk.Info // of the root
	seq      uint64
	slot     int  // that the last commit did not write
	root     ref  // of the last commit; zero: none
	tree     Hash // the same
	base     int64
	replaces bool // the file is a new one, that takes the old one's place

	file    disk.File // nil: blocks are kept in memory
	data    []byte    // mapped
	release func() error
	unload  func() // gives back the memory of data until it is used again

	mu      sync.Mutex
	added   []byte // blocks behind what is flushed
	flushed int64
	dirty   bool
}

const flushSize = 1 << 20

// openCache opens the committed state. That there is none, or one that cannot be used or opened,
// is no error.
func openCache(req *Request) (*cache, error) {
	if req.CacheDir == nil {
		return memoryCache(), nil
	}
	self, err := req.Root.Self()
	if err != nil {
		return nil, err
	}
	f, err := openCacheFile(req)
	if absent(err) || disk.OtherKind(err) || errors.Is(err, fs.ErrPermission) {
		return freshCache(req)
	}
	if err != nil {
		return nil, err
	}
	c := &cache{dir: req.CacheDir, self: self, file: f}
	if !c.load() {
		_ = c.close()
		return freshCache(req)
	}
	if req.Writer == nil {
		c.file.Close()
		c.file = nil
	}
	return c, nil
}

func openCacheFile(req *Request) (disk.File, error) {
	if req.Writer == nil {
		return req.CacheDir.Open(cacheName)
	}
	if st, err := req.CacheDir.Stat(cacheName); err != nil || st.Kind != disk.Regular {
		return nil, cmp.Or(err, disk.ErrNotRegular)
	}
	return req.CacheDir.OpenWrite(cacheName, 0o600)
}

// load finds the newest whole slot; it must be of this root.
func (c *cache) load() bool {
	if c.mapFile() != nil {
		return false
	}
	data := c.data
	if len(data) < headSize {
		return false
	}
	var s slot
	found := false
	unread := disk.Reading(data, func() {
		for i, at := range []int{0, slotAt} {
			if t, ok := decodeSlot(data[at:]); ok && (!found || t.seq > s.seq) && t.end <= int64(len(data)) {
				s, found, c.slot = t, true, 1-i
			}
		}
	})
	if unread != nil || !found || s.dev != c.self.Dev || s.ino != c.self.Ino {
		return false
	}
	c.seq, c.root, c.tree, c.base, c.flushed = s.seq, s.root, s.tree, s.end, s.end
	c.data = data[:s.end]
	return true
}

// freshCache begins an empty cache.
func freshCache(req *Request) (*cache, error) {
	c := memoryCache()
	if req.CacheDir == nil || req.Writer == nil {
		return c, nil
	}
	self, err := req.Root.Self()
	if err != nil {
		return nil, err
	}
	c.dir, c.self, c.replaces = req.CacheDir, self, true
	if err := c.dir.Remove(nextName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if c.file, err = c.dir.Create(nextName, 0o600); err != nil {
		return nil, err
	}
	return c, nil
}

// memoryCache is for walks that write nothing.
func memoryCache() *cache { return &cache{base: headSize, flushed: headSize, unload: func() {}} }

// close releases the file; blocks must no longer be used.
func (c *cache) close() error {
	var errs []error
	if c.release != nil {
		errs = append(errs, c.release())
		c.release, c.data = nil, nil
	}
	if c.file != nil {
		errs = append(errs, c.file.Close())
		c.file = nil
		if c.replaces { // never committed
			if err := c.dir.Remove(nextName); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	c.added = nil
	return errors.Join(errs...)
}

// block returns the block at r, nil for the zero ref. One of the file has been read whole when it is returned, against
// its checksum, so that all of it is in memory then: a copy of each made a warm capture of 90,000 files 6 % slower.
func (c *cache) block(r ref) (b block, err error) {
	if r.off >= headSize && r.off < int64(len(c.data)) {
		if disk.Reading(c.data, func() { b, err = openBlock(c.data[r.off:], r) }) != nil {
			return nil, errDamaged
		}
		return b, err
	}
	return c.mapped(r)
}

// mapped is block for who looks at what it returns within disk.Reading.
func (c *cache) mapped(r ref) (block, error) {
	switch {
	case r.off == 0:
		return nil, nil
	case r.off < headSize:
		return nil, errDamaged
	case r.off < int64(len(c.data)):
		return openBlock(c.data[r.off:], r)
	}
	at := r.off - c.flushed
	if at < 0 || at >= int64(len(c.added)) {
		return nil, errDamaged
	}
	return openBlock(c.added[at:], r)
}

// put adds a sealed block.
func (c *cache) put(b block) (ref, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.added == nil && c.file != nil {
		c.added = make([]byte, 0, flushSize+flushSize/8) // untouched, it costs nothing
	}
	r := ref{c.flushed + int64(len(c.added)), b.sum()}
	c.added = append(c.added, b...)
	for len(c.added)%8 != 0 {
		c.added = append(c.added, 0)
	}
	c.dirty = true
	if c.file == nil || len(c.added) < flushSize {
		return r, nil
	}
	return r, c.write()
}

// write hands the added blocks to the file.
func (c *cache) write() error {
	if len(c.added) == 0 {
		return nil
	}
	if _, err := c.file.WriteAt(c.added, c.flushed); err != nil {
		return err
	}
	c.flushed += int64(len(c.added))
	c.added = c.added[:0]
	return nil
}

// flush makes the added blocks readable.
func (c *cache) flush() error {
	if c.file == nil || !c.dirty {
		return nil
	}
	if err := c.write(); err != nil {
		return err
	}
	if c.release != nil {
		if err := c.release(); err != nil {
			return err
		}
		c.release, c.data, c.unload = nil, nil, func() {}
	}
	if err := c.mapFile(); err != nil {
		return err
	}
	if int64(len(c.data)) < c.flushed {
		return io.ErrUnexpectedEOF
	}
	c.data = c.data[:c.flushed]
	return nil
}

// mapFile maps what the file is now.
func (c *cache) mapFile() error {
	data, release, err := c.file.Map()
	if err != nil {
		return err
	}
	file := c.file // which may be closed by then
	c.data, c.release, c.unload = data, release, func() { file.Unload(data) }
	return nil
}

// commit puts r's state in force.
func (c *cache) commit(r *Result) error {
	if c.dir == nil || c.file == nil || r.root.off == 0 {
		return nil
	}
	if !c.dirty && r.Tree == c.tree {
		return nil
	}
	live := int64(0)
	if b, err := c.block(r.root); err != nil {
		return err
	} else if b != nil {
		live = b.sums().live
	}
	s := slot{seq: c.seq + 1, root: r.root, end: c.flushed, dev: c.self.Dev, ino: c.self.Ino, tree: r.Tree}
	if !c.replaces && c.flushed-headSize > 2*live+foldFloor {
		return c.fold(s)
	}
	if err := c.writeSlot(c.file, s, c.slot); err != nil {
		return err
	}
	if c.replaces {
		if err := c.dir.Rename(nextName, c.dir, cacheName); err != nil {
			return err
		}
		c.replaces = false
	}
	c.seq, c.slot = s.seq, 1-c.slot
	c.root, c.tree, c.dirty = r.root, r.Tree, false
	return nil
}

func (c *cache) writeSlot(f disk.File, s slot, which int) error {
	_, err := f.WriteAt(s.encode(), int64(which)*slotAt)
	return err
}

// fold copies the live blocks to a new file, which takes the place of the old one. The
// old one stays mapped for r.
func (c *cache) fold(s slot) error {
	if err := c.dir.Remove(nextName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := c.dir.Create(nextName, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	to := &cache{base: headSize, flushed: headSize, file: f}
	if s.root, err = copyBlocks(c, s.root, to); err != nil {
		return err
	}
	if err := to.write(); err != nil {
		return err
	}
	s.end = to.flushed
	if err := c.writeSlot(f, s, 0); err != nil {
		return err
	}
	if err := c.dir.Rename(nextName, c.dir, cacheName); err != nil {
		return err
	}
	c.dirty = false
	return nil
}

// copyBlocks copies the tree of blocks at r from one cache to another, children first.
func copyBlocks(from *cache, r ref, to *cache) (ref, error) {
	type frame struct {
		b block
		i int
	}
	first, err := from.block(r)
	if err != nil {
		return ref{}, err
	}
	frames := []frame{{b: append(block(nil), first...)}}
	for {
		f := &frames[len(frames)-1]
		for f.i < f.b.count() && (f.b.kind(f.i) != kDir || f.b.child(f.i).off == 0) {
			f.i++
		}
		if f.i < f.b.count() {
			child, err := from.block(f.b.child(f.i))
			if err != nil {
				return ref{}, err
			}
			frames = append(frames, frame{b: append(block(nil), child...)})
			continue
		}
		f.b.seal(f.b.sums())
		at, err := to.put(f.b)
		if err != nil {
			return ref{}, err
		}
		frames = frames[:len(frames)-1]
		if len(frames) == 0 {
			return at, nil
		}
		up := &frames[len(frames)-1]
		up.b.setDir(up.i, up.b.mode(up.i), up.b.entry(up.i).Owner, at, Hash(up.b.hash(up.i)))
		up.i++
	}
}

// Forget removes the cache from dir: the next capture reads every file. It is for after
// the store has lost objects that the cache believes to be there. That there is no cache
// is no error.
func Forget(dir disk.Dir) error {
	for _, name := range []string{cacheName, nextName} {
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
