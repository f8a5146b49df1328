package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// wound is a stretch of a pack that holds no sound block.
type wound struct {
	off, length int64
	lost        []member // known where the block's header is sound
	err         error
}

// found is a sound block as a scan meets it; members are valid until the next one.
type found struct {
	off     int64
	head    blockHead
	members []member
}

// scan is what a pack's bytes from one offset on turned out to be.
type scan struct {
	end    int64 // where the sound part ends and a torn tail begins; the size if there is none
	unread bool  // the disk cannot read a part of that tail, so that nobody knows whether it is torn, or the end
	wounds []wound
}

// packScan is a scan in work.
type packScan struct {
	scan
	visit   func(*found) error
	flushed int64   // what lies below was durable once
	open    []wound // they may yet prove to be a torn tail
	behind  []found // sound blocks behind them, which would be torn with them
}

// add takes the next sound block.
func (p *packScan) add(b *found) error {
	p.flushed = max(p.flushed, int64(b.head.flushed))
	if len(p.open) == 0 {
		return p.visit(b)
	}
	p.behind = append(p.behind, found{b.off, b.head, append([]member(nil), b.members...)})
	return p.decide()
}

// decide ends the doubt about what is known to have been durable: it is no torn tail.
func (p *packScan) decide() error {
	for len(p.open) > 0 && p.open[0].off < p.flushed {
		p.wounds = append(p.wounds, p.open[0])
		p.open = p.open[1:]
	}
	n := 0
	for ; n < len(p.behind) && (len(p.open) == 0 || p.behind[n].off < p.open[0].off); n++ {
		if err := p.visit(&p.behind[n]); err != nil {
			return err
		}
	}
	p.behind = p.behind[n:]
	return nil
}

// scanPack walks the blocks of a pack of the given size from offset from on and
// calls visit for each that is sound, payload checksum included. What follows a
// broken place is found by the block magic. A broken place is torn, together with
// all that follows, unless it lies below durable or a sound block behind it says
// that it was flushed; then it is a wound. The error is the disk's, the context's or visit's.
func scanPack(ctx context.Context, f io.ReaderAt, from, size, durable int64, visit func(*found) error) (scan, error) {
	w := window{r: f, size: size, buf: make([]byte, min(1<<20, max(0, size-from)))}
	p := packScan{visit: visit, flushed: durable}
	var b found
	for off := from; off < size; {
		if err := ctx.Err(); err != nil {
			return p.scan, err
		}
		err := w.block(off, &b)
		if err == nil {
			off += b.head.length()
			err = p.add(&b)
		} else {
			var broken wound
			if broken, err = w.wound(off, &b, err); err == nil {
				p.open = append(p.open, broken)
				off += broken.length
			}
		}
		if err != nil {
			return p.scan, err
		}
	}
	if err := p.decide(); err != nil {
		return p.scan, err
	}
	p.end = size
	if len(p.open) > 0 {
		p.end = p.open[0].off
		p.unread = slices.ContainsFunc(p.open, func(w wound) bool { return unreadable(w.err) })
	}
	return p.scan, nil
}

// outline is what the headers of a pack's blocks say of it.
type outline struct {
	id    identity
	size  int64 // of the file
	sound bool  // it holds nothing but blocks with sound headers
}

// headers calls each for the blocks of a pack that have a sound header, in their order. It
// reads no payload.
func (s *Store) headers(ctx context.Context, seq uint32, each func(*found)) (o outline, err error) {
	f, err := s.packs.Open(packName(seq))
	if err != nil {
		return o, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return o, err
	}
	id, _, err := readPackHead(f, packName(seq))
	if err != nil {
		return o, err
	}
	o, err = outlineOf(ctx, f, st.Size, each)
	o.id = id
	return o, err
}

// outlineOf is headers for a pack that is open, whose identity is not asked for.
func outlineOf(ctx context.Context, f io.ReaderAt, size int64, each func(*found)) (o outline, err error) {
	o.size, o.sound = size, true
	w := window{r: f, size: size, buf: make([]byte, 64<<10)}
	var b found
	for off := int64(packStart); off < size; {
		if err := ctx.Err(); err != nil {
			return o, err
		}
		if err := w.header(off, &b); err != nil {
			hurt, err := w.wound(off, &b, err)
			if err != nil {
				return o, err
			}
			o.sound = false
			off += hurt.length
			continue
		}
		each(&b)
		off += b.head.length()
	}
	return o, nil
}

// wound measures the broken place at off: to the end of a block whose header is
// sound, else to the next thing that begins like a block and has a sound header.
func (w *window) wound(off int64, b *found, cause error) (wound, error) {
	if !broken(cause) {
		return wound{}, cause
	}
	hurt := wound{off: off, err: cause}
	if errors.Is(cause, errPayload) || errors.Is(cause, errUnread) {
		hurt.length = b.head.length()
		hurt.lost = append(hurt.lost, b.members...)
		return hurt, nil
	}
	at := off + 1
	for ; at < w.size; at++ {
		next, err := w.find(at)
		if err != nil {
			return hurt, err
		}
		at = next
		var probe found
		if at >= w.size || w.header(at, &probe) == nil {
			break
		}
	}
	hurt.length = min(at, w.size) - off
	return hurt, nil
}

// broken says whether err is about the bytes of one place, which the disk may have and be unable to read.
func broken(err error) bool {
	if unreadable(err) {
		return true
	}
	for _, e := range []error{errMagic, errShort, errHeader, errBounds, errPayload} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// nextSector is where what follows the sector at off begins: a disk can be unable to read
// that one alone, or the page of its file system.
func nextSector(off int64) int64 {
	const sector = 4 << 10
	return off/sector*sector + sector
}

// window reads a pack forward through one buffer.
type window struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	off  int64 // of buf[0]
	n    int   // bytes in buf
}

// at returns n bytes at off, valid until the next call; errShort behind the end. Where the disk
// cannot read some of them, what it gave before these is what the buffer holds.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off+int64(n) > w.size {
		return nil, errShort
	}
	if off < w.off || off+int64(n) > w.off+int64(w.n) {
		if n > len(w.buf) {
			w.buf = make([]byte, n)
		}
		want := int(min(int64(len(w.buf)), w.size-off))
		w.off, w.n = off, 0
		got, err := w.r.ReadAt(w.buf[:want], off)
		for got < n && unreadable(err) { // what can be read is not lost with what it was asked for with
			to := min(int64(want), nextSector(off+int64(got))-off)
			more, again := w.r.ReadAt(w.buf[got:to], off+int64(got))
			if got += more; again != nil {
				err = again
				break
			}
		}
		w.n = got
		if got < n {
			if err == nil || errors.Is(err, io.EOF) {
				err = errShort
			}
			return nil, err
		}
	}
	return w.buf[off-w.off:][:n], nil
}

// header reads and checks the header at off.
func (w *window) header(off int64, b *found) error {
	fixed, err := w.at(off, blockFixed)
	if err != nil {
		return err
	}
	b.off = off
	if b.head, err = readHead(fixed); err != nil {
		return err
	}
	header, err := w.at(off, int(b.head.header))
	if err != nil {
		return err
	}
	b.members, err = readMembers(b.members[:0], header, off, &b.head)
	if err == nil && off+b.head.length() > w.size {
		err = errShort
	}
	return err
}

// block reads the header at off and checks the payload behind it.
func (w *window) block(off int64, b *found) error {
	if err := w.header(off, b); err != nil {
		return err
	}
	sum, at := uint32(0), off+int64(b.head.header)
	for left := int(b.head.stored); left > 0; {
		piece, err := w.at(at, min(left, 256<<10))
		if unreadable(err) {
			return fmt.Errorf("%w: %w", errUnread, err)
		}
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, piece)
		at += int64(len(piece))
		left -= len(piece)
	}
	if sum != b.head.payloadSum {
		return errPayload
	}
	return nil
}

// find returns the offset of the next block magic at or behind off, or the size. It passes over sectors
// that cannot be read.
func (w *window) find(off int64) (int64, error) {
	const step = 64 << 10
	for off < w.size {
		n := int(min(step, w.size-off))
		piece, err := w.at(off, n)
		next := off + int64(n-len(blockMagic)+1)
		if n < step {
			next = w.size
		}
		if unreadable(err) {
			piece, err = w.buf[:w.n], nil
			next = nextSector(off + int64(w.n))
		}
		if err != nil {
			return 0, err
		}
		if i := bytes.Index(piece, []byte(blockMagic)); i >= 0 {
			return off + int64(i), nil
		}
		off = next
	}
	return w.size, nil
}
