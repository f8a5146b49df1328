package patch

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"runtime"
)

// contextLines is the number of unchanged lines around a change.
const contextLines = 3

// maxRegion bounds the lines, of both sides together, that are looked at one by one, and
// with them the memory, which is about 50 bytes each. Texts of more are cut.
const maxRegion = 1 << 21

// errTooManyLines says that two texts differ over more than maxRegion lines.
var errTooManyLines = errors.New("too many lines to compare")

// comparison is what two texts differ in. Lines are split at '\n' only; a last line without
// one is a line of its own and differs from the same line with one.
//
// Only a region of each text is held as lines: from three lines before the first
// difference to three lines behind the last one. All else is common to both.
type comparison struct {
	head  []byte // what is common before the region
	a, b  side
	skip  int    // lines before the region, the same number on both sides
	edits []edit // in order, apart from each other
}

// side is the region of one text: line i is data[start[i]:start[i+1]]. Behind the last one
// data goes on with lines that are common to both sides.
type side struct {
	data  []byte
	start []uint32
}

func (s *side) len() int          { return len(s.start) - 1 }
func (s *side) line(i int) []byte { return s.data[s.start[i]:s.start[i+1]] }

// lines returns lines from to to, exclusive, as one piece.
func (s *side) lines(from, to int) []byte { return s.data[s.start[from]:s.start[to]] }

// more takes one more line into the region; false if there is none.
func (s *side) more() bool {
	end := s.start[len(s.start)-1]
	line, _ := cutLine(s.data[end:])
	if len(line) == 0 {
		return false
	}
	s.start = append(s.start, end+uint32(len(line)))
	return true
}

// edit replaces the lines a0 to a1 of the old region by b0 to b1 of the new one, the ends
// exclusive.
type edit struct{ a0, a1, b0, b1 int }

// compare finds what turns a into b. Its errors are errTooManyLines and ctx's.
func compare(ctx context.Context, a, b []byte) (*comparison, error) {
	from := commonHead(a, b)
	aEnd, bEnd := len(a), len(b)
	if tail := commonTail(a[from:], b[from:]); tail > 0 {
		aEnd, bEnd = aEnd-tail, bEnd-tail
	}
	lead := backLines(a[:from], contextLines)
	follow := len(a[aEnd:]) - len(skipLines(a[aEnd:], contextLines))
	c := &comparison{head: a[:lead], skip: bytes.Count(a[:lead], []byte{'\n'})}
	aRegion, bRegion := a[lead:aEnd+follow], b[lead:bEnd+follow]
	if bytes.Count(aRegion, []byte{'\n'})+bytes.Count(bRegion, []byte{'\n'}) > maxRegion {
		return nil, errTooManyLines
	}
	c.a, c.b = split(aRegion), split(bRegion)
	c.a.data, c.b.data = a[lead:], b[lead:]
	in := newInterner(&c.a, &c.b)
	ida, idb, distinct := in.add(&c.a, 0), in.add(&c.b, 1), in.distinct()
	in = nil
	tidy(len(ida) + len(idb))
	sameA, sameB, err := match(ctx, ida, idb, distinct)
	if err != nil {
		return nil, err
	}
	tidy(len(ida) + len(idb))
	c.edits = slide(collect(sameA, sameB), ida, idb)
	c.extendLast()
	return c, nil
}

// manyLines is how many make garbage worth collecting at once.
const manyLines = 1 << 19

// tidy collects what a phase has left behind before the next allocates, if it had
// many lines. Left to itself, the collector lets the heap grow to twice what is in
// use, which for two large texts is the greater part of the peak.
func tidy(lines int) {
	if lines >= manyLines {
		runtime.GC()
	}
}

// extendLast lets the last edit, which may have slid to the end of the region, slide on, and
// brings the lines into the region that it then needs as context.
func (c *comparison) extendLast() {
	if len(c.edits) == 0 {
		return
	}
	e := &c.edits[len(c.edits)-1]
	for {
		for c.a.len() < e.a1+contextLines && c.a.more() {
			c.b.more()
		}
		if !c.slidesOn(*e) {
			return
		}
		e.a0, e.a1, e.b0, e.b1 = e.a0+1, e.a1+1, e.b0+1, e.b1+1
	}
}

// slidesOn reports whether the last edit, if it only adds or only removes lines, can move
// down by one.
func (c *comparison) slidesOn(e edit) bool {
	switch {
	case e.a1 == c.a.len():
		return false
	case e.a0 == e.a1:
		return bytes.Equal(c.b.line(e.b0), c.b.line(e.b1))
	case e.b0 == e.b1:
		return bytes.Equal(c.a.line(e.a0), c.a.line(e.a1))
	}
	return false
}

// commonHead returns the length of the common whole lines that a and b begin with.
func commonHead(a, b []byte) int {
	n := commonPrefix(a, b)
	return bytes.LastIndexByte(a[:n], '\n') + 1
}

func commonPrefix(a, b []byte) int {
	const step = 4096
	most := min(len(a), len(b))
	n := 0
	for n+step <= most && bytes.Equal(a[n:n+step], b[n:n+step]) {
		n += step
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// commonTail returns the length of the common whole lines that a and b end with; both
// begin at the start of a line.
func commonTail(a, b []byte) int {
	const step = 4096
	most := min(len(a), len(b))
	n := 0
	for n+step <= most && bytes.Equal(a[len(a)-n-step:len(a)-n], b[len(b)-n-step:len(b)-n]) {
		n += step
	}
	for n < most && a[len(a)-n-1] == b[len(b)-n-1] {
		n++
	}
	if startsLine(a, len(a)-n) && startsLine(b, len(b)-n) {
		return n
	}
	i := bytes.IndexByte(a[len(a)-n:], '\n')
	if i < 0 {
		return 0
	}
	return n - i - 1
}

func startsLine(data []byte, at int) bool { return at == 0 || data[at-1] == '\n' }

// backLines returns where the last n lines of data, which ends behind a '\n', begin.
func backLines(data []byte, n int) int {
	at := len(data)
	for range n {
		if at == 0 {
			break
		}
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	return at
}

// skipLines returns data without its first n lines.
func skipLines(data []byte, n int) []byte {
	for range n {
		_, data = cutLine(data)
	}
	return data
}

// split finds the lines of data.
func split(data []byte) side {
	n := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	s := side{data: data, start: make([]uint32, 1, n+1)}
	for at := 0; at < len(data); {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			at = len(data)
		} else {
			at += i + 1
		}
		s.start = append(s.start, uint32(at))
	}
	return s
}

// interner numbers distinct lines from 0, so that comparing two of them is comparing two
// numbers. It is a hash table with open addressing over the texts themselves: a Go map of
// strings would take several times the memory.
type interner struct {
	sides [2]*side
	seed  maphash.Seed
	slots []uint32 // number+1 of a line, 0 if free; a power of two long
	sums  []uint32 // of each number: its line's hash
	where []uint32 // of each number: a line that has it, times two, plus its side
}

func newInterner(a, b *side) *interner {
	return &interner{sides: [2]*side{a, b}, seed: maphash.MakeSeed(), slots: make([]uint32, 128)}
}

// distinct returns how many different lines there are.
func (in *interner) distinct() int { return len(in.sums) }

// add returns the number of each line of s, which is the side of that index.
func (in *interner) add(s *side, which uint32) []int32 {
	ids := make([]int32, s.len())
	for i := range ids {
		line := s.line(i)
		sum := uint32(maphash.Bytes(in.seed, line))
		mask := uint32(len(in.slots) - 1)
		at := sum & mask
		for {
			slot := in.slots[at]
			if slot == 0 {
				ids[i] = in.insert(at, sum, uint32(i)<<1|which)
				break
			}
			if in.sums[slot-1] == sum && bytes.Equal(in.text(slot-1), line) {
				ids[i] = int32(slot - 1)
				break
			}
			at = (at + 1) & mask
		}
	}
	return ids
}

func (in *interner) text(id uint32) []byte {
	w := in.where[id]
	return in.sides[w&1].line(int(w >> 1))
}

// grown returns list with room for n in all, and no more.
func grown(list []uint32, n int) []uint32 {
	return append(make([]uint32, 0, n), list...)
}

// insert gives the next number to a line and keeps the table at most three quarters full.
func (in *interner) insert(at, sum, where uint32) int32 {
	in.sums = append(in.sums, sum)
	in.where = append(in.where, where)
	in.slots[at] = uint32(len(in.sums))
	if 4*len(in.sums) > 3*len(in.slots) {
		n := 2 * len(in.slots)
		in.slots = nil // made again from sums
		in.sums = grown(in.sums, 3*n/4+1)
		in.where = grown(in.where, 3*n/4+1)
		tidy(n)
		in.slots = make([]uint32, n)
		mask := uint32(len(in.slots) - 1)
		for id, sum := range in.sums {
			at := sum & mask
			for in.slots[at] != 0 {
				at = (at + 1) & mask
			}
			in.slots[at] = uint32(id + 1)
		}
	}
	return int32(len(in.sums) - 1)
}
