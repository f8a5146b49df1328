package patch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"decree/tree"
	"errors"
	"fmt"
	"io"
	"slices"
)

// This file compares texts that are too large to be held. Both are read twice. The
// first reading keeps a sample of their lines, chosen by the lines' hashes, so that a
// line that is in both is in both samples. Those that occur once on each side and in the
// same order are where the texts can be cut. In the second reading each piece of one is
// compared with its piece of the other, which takes memory for the two pieces alone.

// The bounds of what is held at a time, for both sides together. They are variables for
// the tests' sake.
var (
	heldText   int64 = 32 << 20 // bytes of texts that are compared without being cut
	pieceText  int64 = 16 << 20 // bytes of a piece, if there are enough places to cut
	pieceLines int32 = 1 << 18  // its lines, likewise
	mostText   int64 = 80 << 20 // bytes of a piece in any case
)

// maxSamples bounds the lines of a side that are kept as samples.
const maxSamples = 1 << 18

// errNUL ends a reading at a NUL byte of contents that are too large for binaries.
var errNUL = errors.New("a NUL byte")

// sample is a line of a text: its hash, its number and where it begins.
type sample struct {
	sum  uint64
	line int32
	at   int64
}

func (s sample) hash() uint64 { return s.sum }

// sampled is what the first reading of a text keeps of it.
type sampled struct {
	lines []sample
	mask  uint64 // only lines whose hash has none of these bits are in lines
	count int32  // of all lines
	size  int64
}

func (s *sampled) add(sum uint64, n int) {
	if sum&s.mask == 0 {
		s.lines = append(s.lines, sample{sum, s.count, s.size})
		for len(s.lines) == maxSamples {
			s.thin(s.mask<<1 | 1)
		}
	}
	s.count++
	s.size += int64(n)
}

func (s *sampled) thin(mask uint64) {
	s.mask |= mask
	s.lines = slices.DeleteFunc(s.lines, func(l sample) bool { return l.sum&s.mask != 0 })
}

// cut is a place where two texts can be cut: the beginning of a line that both have.
type cut struct{ a, b sample }

// cuts returns the places where the texts can be cut, and their ends.
func cuts(a, b *sampled) []cut {
	a.thin(b.mask)
	b.thin(a.mask)
	for _, s := range []*sampled{a, b} {
		slices.SortFunc(s.lines, func(x, y sample) int { return cmp.Compare(x.sum, y.sum) })
	}
	var both []cut
	inBoth(onlyOnce(a.lines, sample.hash), onlyOnce(b.lines, sample.hash), sample.hash, func(x, y sample) {
		both = append(both, cut{x, y})
	})
	slices.SortFunc(both, func(x, y cut) int { return int(x.a.line - y.a.line) })
	anchors := make([]anchor, len(both))
	for i, c := range both {
		anchors[i] = anchor{c.a.line, c.b.line}
	}
	kept := both[:0]
	rest := increasing(anchors)
	for _, c := range both {
		if len(rest) > 0 && rest[0].a == c.a.line {
			kept, rest = append(kept, c), rest[1:]
		}
	}
	return append(kept, cut{sample{line: a.count, at: a.size}, sample{line: b.count, at: b.size}})
}

// prints are fingerprints of lines, of which it tells for sure that one is not there.
type prints []uint64

const printBits = 27 // 16 MiB

func newPrints() prints { return make(prints, 1<<(printBits-6)) }

func (p prints) add(sum uint64) { p[sum>>(64-printBits)>>6] |= 1 << (sum >> (64 - printBits) & 63) }
func (p prints) lack(sum uint64) bool {
	return p[sum>>(64-printBits)>>6]&(1<<(sum>>(64-printBits)&63)) == 0
}

// mostlyNew says whether half of the lines of come or more are not in gone.
func mostlyNew(gone, come []byte) bool {
	seen, lines, fresh := newPrints(), 0, 0
	for len(gone) > 0 {
		var line []byte
		line, gone = cutLine(gone)
		seen.add(lineSum(0).of(line).mixed())
	}
	for len(come) > 0 {
		var line []byte
		line, come = cutLine(come)
		lines++
		if seen.lack(lineSum(0).of(line).mixed()) {
			fresh++
		}
	}
	return 2*fresh >= lines
}

// scout reads both sides of c for the first time: where they can be cut, and how many
// bytes of hunks they make at least. Sizes and hashes are compared with the entries; with
// noNUL a NUL byte is errNUL.
func (w *Writer) scout(ctx context.Context, c Change, noNUL bool) (at []cut, least int64, err error) {
	var a, b sampled
	seen := newPrints()
	err = w.eachLine(ctx, c.OldContent, c.Old, noNUL, func(sum uint64, n int) {
		seen.add(sum)
		a.add(sum, n)
	})
	if err != nil {
		return nil, 0, err
	}
	added := int64(0)
	err = w.eachLine(ctx, c.NewContent, c.New, noNUL, func(sum uint64, n int) {
		if seen.lack(sum) {
			added += int64(n) + 1
		}
		b.add(sum, n)
	})
	// What stays is as long on both sides.
	removed := added + a.size + int64(a.count) - b.size - int64(b.count)
	return cuts(&a, &b), added + max(removed, 0), err
}

// lineSum is FNV-1a, begun at 0: the same line has the same hash in every run, so that
// the same texts make the same diff. That others can be made to have it too does no
// harm: no two lines are taken for one without being compared.
type lineSum uint64

func (h lineSum) of(data []byte) lineSum {
	for _, c := range data {
		h = (h ^ lineSum(c)) * 0x100000001b3
	}
	return h
}

func (h lineSum) mixed() uint64 { return mix(uint64(h) + 0x9e3779b97f4a7c15) }

// eachLine calls f with the hash and the length of each line of a content.
func (w *Writer) eachLine(ctx context.Context, c Content, e *tree.Entry, noNUL bool, f func(sum uint64, n int)) error {
	part, begun := lineSum(0), 0 // of a line that goes on in the next chunk
	size, sum := int64(0), sha256.New()
	err := w.eachChunk(ctx, c, func(chunk []byte) error {
		if noNUL && bytes.IndexByte(chunk, 0) >= 0 {
			return errNUL
		}
		sum.Write(chunk)
		size += int64(len(chunk))
		for len(chunk) > 0 {
			var line []byte
			line, chunk = cutLine(chunk)
			part = part.of(line)
			begun += len(line)
			if line[len(line)-1] == '\n' {
				f(part.mixed(), begun)
				part, begun = 0, 0
			}
		}
		return nil
	})
	if begun > 0 {
		f(part.mixed(), begun)
	}
	if err != nil {
		return err
	}
	return checkContent(size, tree.Hash(sum.Sum(nil)), e)
}

// piecewise reads both sides of c once more and calls f with their pieces, in order. A
// piece that is larger than mostText comes as several calls of apart, with some bytes of
// the one side or the other that cannot be compared.
func piecewise(ctx context.Context, c Change, at []cut, f func(a, b []byte) error, apart func(a, b []byte) error) (err error) {
	old, err := c.OldContent.Open()
	if err != nil {
		return err
	}
	defer old.Close()
	new, err := c.NewContent.Open()
	if err != nil {
		return err
	}
	defer new.Close()
	var a, b []byte
	var from cut
	for i := 0; i < len(at); i++ {
		to := at[i]
		for i+1 < len(at) && fits(from, at[i+1]) {
			i++
			to = at[i]
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		na, nb := to.a.at-from.a.at, to.b.at-from.b.at
		from = to
		if na+nb > mostText {
			if err := inParts(old, na, func(p []byte) error { return apart(p, nil) }); err != nil {
				return err
			}
			if err := inParts(new, nb, func(p []byte) error { return apart(nil, p) }); err != nil {
				return err
			}
			continue
		}
		if a, err = readInto(a, old, na); err != nil {
			return err
		}
		if b, err = readInto(b, new, nb); err != nil {
			return err
		}
		if err := f(a, b); err != nil {
			return err
		}
	}
	return nil
}

// fits says whether what lies between two cuts makes a piece.
func fits(from, to cut) bool {
	return to.a.at-from.a.at+to.b.at-from.b.at <= pieceText && to.a.line-from.a.line+to.b.line-from.b.line <= pieceLines
}

// readInto reads n bytes into buf's memory.
func readInto(buf []byte, r io.Reader, n int64) ([]byte, error) {
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	got, err := io.ReadFull(r, buf[:n])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: it ends after %d of %d bytes", errChanged, got, n)
	}
	return buf[:n], err
}

// inParts calls f with the next n bytes of r, some at a time.
func inParts(r io.Reader, n int64, f func([]byte) error) (err error) {
	var buf []byte
	for n > 0 && err == nil {
		if buf, err = readInto(buf, r, min(n, 1<<20)); err == nil {
			err = f(buf)
		}
		n -= int64(len(buf))
	}
	return err
}

// large writes a section of hunks between texts that are not held.
func (w *Writer) large(ctx context.Context, s *Section, c Change) error {
	at, least, err := w.scout(ctx, c, true)
	if errors.Is(err, errNUL) || err == nil && least > w.lim.InlineText {
		return w.stored(s)
	}
	if err != nil {
		return err
	}
	h := &hunkWriter{most: w.lim.InlineText}
	err = piecewise(ctx, c, at, func(a, b []byte) error {
		return h.piece(ctx, a, b)
	}, func([]byte, []byte) error { return errTooManyLines })
	if errors.Is(err, errTooManyLines) {
		return w.stored(s)
	}
	if err == nil {
		err = h.shut()
	}
	return w.hunks(s, h, err)
}
