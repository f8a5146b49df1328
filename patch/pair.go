package patch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
)

// streamFrom is the size above which two sides are compared while they are read, so
// that of what they begin with in common only the last lines are held.
const streamFrom = keepBuffer

// headStep is how much of each side is read at a time.
const headStep = 256 << 10

// errNUL ends a reading at a NUL byte of contents that are too large for binaries.
var errNUL = errors.New("a NUL byte")

// loadPair reads both sides into w.old and w.new, but for lines that both begin with:
// all of them but the last contextLines or more. It returns how many it left out. Sizes
// and hashes are those of the whole contents; errNUL means that they are no texts.
func (w *Writer) loadPair(ctx context.Context, oldC, newC Content, s *Section) (skipped int, err error) {
	a, err := oldC.Open()
	if err != nil {
		return 0, err
	}
	defer a.Close()
	b, err := newC.Open()
	if err != nil {
		return 0, err
	}
	defer b.Close()
	p := pair{a: half{r: a, sum: sha256.New()}, b: half{r: b}}
	if err := p.common(ctx); err != nil {
		return 0, err
	}
	if w.old, err = p.a.rest(ctx, s.Old, w.old, p.head); err != nil {
		return 0, err
	}
	w.new, err = p.b.rest(ctx, s.New, w.new, p.head)
	return p.skipped, err
}

// pair is two contents that have been the same up to where they are read.
type pair struct {
	a, b    half
	head    []byte // the end of what is common
	skipped int    // lines before it
}

// half is one side of a pair. What was read of it and is not common is in ahead.
type half struct {
	r     io.Reader
	sum   hash.Hash
	size  int64 // of what sum has seen
	buf   []byte
	ahead []byte
	ended bool
}

// fill reads the next step.
func (h *half) fill() error {
	if h.buf == nil {
		h.buf = make([]byte, headStep)
	}
	n, err := io.ReadFull(h.r, h.buf)
	h.ahead = h.buf[:n]
	if h.ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); h.ended {
		return nil
	}
	return err
}

// common reads on until the sides differ or one ends. The one sum serves both as long
// as what it has seen is the same.
func (p *pair) common(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.a.fill(); err != nil {
			return err
		}
		if err := p.b.fill(); err != nil {
			return err
		}
		if p.a.ended || p.b.ended || !bytes.Equal(p.a.ahead, p.b.ahead) {
			return p.part()
		}
		if bytes.IndexByte(p.a.ahead, 0) >= 0 {
			return errNUL
		}
		p.a.sum.Write(p.a.ahead)
		p.a.size += int64(len(p.a.ahead))
		p.keep(p.a.ahead)
	}
}

// keep adds common bytes to the head and lets go what is above their last lines: one
// more than the context, since the last may be in part. Where lines are so long that a
// step has not as many, all is kept.
func (p *pair) keep(data []byte) {
	from := backLines(data, contextLines+1)
	if from > 0 {
		p.skipped += bytes.Count(p.head, []byte{'\n'}) + bytes.Count(data[:from], []byte{'\n'})
		p.head = p.head[:0]
	}
	p.head = append(p.head, data[from:]...)
}

// part gives the second side a sum of its own.
func (p *pair) part() error {
	c, ok := p.a.sum.(hash.Cloner)
	if !ok {
		return errors.ErrUnsupported
	}
	sum, err := c.Clone()
	if err != nil {
		return err
	}
	p.b.sum, p.b.size = sum, p.a.size
	return nil
}

// rest reads what is left behind the head into buf's memory and checks the whole.
func (h *half) rest(ctx context.Context, e *Entry, buf, head []byte) ([]byte, error) {
	data := buf[:0]
	if need := int64(len(head)) + max(e.Size-h.size, 0); int64(cap(data)) < need {
		data = make([]byte, 0, need)
	}
	data = append(data, head...)
	for {
		if bytes.IndexByte(h.ahead, 0) >= 0 {
			return data, errNUL
		}
		h.sum.Write(h.ahead)
		h.size += int64(len(h.ahead))
		if h.size > e.Size {
			return data, fmt.Errorf("%w: longer than %d bytes", errChanged, e.Size)
		}
		data = append(data, h.ahead...)
		if h.ended {
			return data, checkContent(h.size, Hash(h.sum.Sum(nil)), e)
		}
		if err := ctx.Err(); err != nil {
			return data, err
		}
		if err := h.fill(); err != nil {
			return data, err
		}
	}
}
