package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"decree/disk"
)

const (
	packMagic  = "decree pack 1\n\x00\x00"
	packFamily = "decree pack "
	packSuffix = ".pack"
	packStart  = 32 // length of a pack's header
)

// identity is a pack's random name; it tells a pack from another of the same number.
type identity [16]byte

// coverage is what the index knows of a pack.
type coverage struct {
	pack    uint32
	id      identity
	length  int64 // bytes of the pack whose objects are in the index
	retired bool  // its objects are elsewhere: it is being taken away
}

func packName(seq uint32) string { return fmt.Sprintf("%08x%s", seq, packSuffix) }

// packNumber is the inverse of packName.
func packNumber(name string) (uint32, bool) {
	digits, ok := strings.CutSuffix(name, packSuffix)
	if !ok || len(digits) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil && packName(uint32(n)) == name
}

func newPackHeader() (head [packStart]byte) {
	copy(head[:], packMagic)
	rand.Read(head[len(packMagic):])
	return head
}

// readPackHead returns the identity that stands at the head of a pack, and
// whether the magic before it is right. A damaged head, or one that the disk cannot read, is
// no error: blocks say for themselves what they hold. A newer version is. The identity of a head that
// cannot be read is zero, which is unknown and may be any.
func readPackHead(f io.ReaderAt, name string) (id identity, sound bool, err error) {
	var head [packStart]byte
	n, err := f.ReadAt(head[:], 0)
	if unreadable(err) {
		return id, false, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return id, false, err
	}
	magic := string(head[:len(packMagic)])
	copy(id[:], head[len(packMagic):])
	if v := newerVersion(magic, packFamily); v != "" && n == packStart {
		return id, false, &VersionError{File: name, Version: v}
	}
	return id, magic == packMagic && n == packStart, nil
}

// newerVersion returns the name in a magic of the family when its number is above
// 1, else nothing: a torn header is not a new format.
func newerVersion(magic, family string) string {
	name, _, ended := strings.Cut(magic, "\n")
	digits, ours := strings.CutPrefix(name, family)
	n, err := strconv.ParseUint(digits, 10, 16)
	if !ours || !ended || err != nil || n < 2 {
		return ""
	}
	return name
}

// listPacks returns the numbers of the packs in dir; dir may be nil.
func listPacks(dir disk.Dir) (map[uint32]bool, error) {
	present := map[uint32]bool{}
	if dir == nil {
		return present, nil
	}
	list, err := dir.List()
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if seq, ok := packNumber(e.Name); ok && (e.Kind == disk.Regular || e.Kind == disk.Unknown) {
			present[seq] = true
		}
	}
	return present, nil
}

// handles keeps packs open for reading, so that a pack that is compacted away
// stays readable to who has begun. Safe for concurrent use.
type handles struct {
	mu    sync.RWMutex
	open  map[uint32]disk.File
	limit int
}

// readAt reads the bytes at off of a pack, opening it where that has not been
// done. known, if not nil, is what the index says of the pack: errIdentity if
// it is another one.
func (p *handles) readAt(dir disk.Dir, seq uint32, known *coverage, buf []byte, off int64) error {
	for {
		p.mu.RLock()
		f := p.open[seq]
		if f != nil {
			_, err := f.ReadAt(buf, off)
			if unreadable(err) { // once may be a disk's or a network's trouble of a moment
				_, err = f.ReadAt(buf, off)
			}
			p.mu.RUnlock()
			if errors.Is(err, io.EOF) {
				return errShort
			}
			return err
		}
		p.mu.RUnlock()
		if err := p.add(dir, seq, known); err != nil {
			return err
		}
	}
}

func (p *handles) add(dir disk.Dir, seq uint32, known *coverage) error {
	if dir == nil {
		return fs.ErrNotExist
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[seq] != nil {
		return nil
	}
	f, err := dir.Open(packName(seq))
	if err != nil {
		return err
	}
	id, _, err := readPackHead(f, packName(seq))
	if unknown := (identity{}); err == nil && known != nil && known.id != id && known.id != unknown && id != unknown {
		err = errIdentity
	}
	if err != nil {
		f.Close()
		return err
	}
	for other, g := range p.open {
		if len(p.open) < p.limit {
			break
		}
		g.Close()
		delete(p.open, other)
	}
	if p.open == nil {
		p.open = map[uint32]disk.File{}
	}
	p.open[seq] = f
	return nil
}

// drop closes the pack's handle: it is gone or another one now.
func (p *handles) drop(seq uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.open[seq]; f != nil {
		f.Close()
		delete(p.open, seq)
	}
}

func (p *handles) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for seq, f := range p.open {
		f.Close()
		delete(p.open, seq)
	}
}
