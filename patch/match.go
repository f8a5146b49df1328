package patch

import (
	"context"
	"math"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// This file decides which lines of two texts stay. The texts are sequences of numbers, one
// a distinct line; the answer is two marks, same[i] for each line, which pair up in order.
//
// A block is a part of both sides. What its sides begin and end with in common is marked;
// then go-udiff's DiffLines is tried, whose answer is minimal up to the number of edits
// at which it gives up; a block with more is cut at the lines that are unique in both
// sides, in their longest increasing run, and each gap is a block again. That is done anew
// only in blocks half as large as the last one for which it was done, so the work of all
// levels together is bounded. Blocks without such lines are cut by a Myers search of our
// own, with a bound on the edits it looks ahead (myers.go), or, where that does not see
// the end, at unique runs of several lines.

// trusted is the number of edits, added and removed lines together, up to which an answer
// of DiffLines is the minimal one: it searches 50 from each end and then gives up. An
// answer with more may be anything that is valid.
const trusted = 100

// maxTry bounds the lines of a block that DiffLines is tried on; it wants 16 bytes a line.
const maxTry = 1 << 20

// untried is a block's anchored before anchors were sought at all.
const untried = math.MaxInt32

// block is a part of both sides, ends exclusive. anchored is the size of the innermost
// block around it in which anchors were sought.
type block struct{ a0, a1, b0, b1, anchored int32 }

func (k block) size() int32 { return k.a1 - k.a0 + k.b1 - k.b0 }

// matcher holds the two sequences without the lines that only one of them has, which
// match nothing and would only hide how alike the rest is.
type matcher struct {
	a, b         []int32 // numbers of the lines that both sides have
	fromA, fromB []int32 // where each stands in the whole sequence; nil: at the same place
	sameA, sameB []bool  // of the whole sequences: the answer
	seen         []seenAt
	names        string  // four bytes a number: what DiffLines compares
	stack        []block // explicit, since the depth follows the contents
	myers        myers
}

// seenAt counts a line within the block at hand: 0 not there, -1 more than once, otherwise
// its index plus 1.
type seenAt struct{ a, b int32 }

// match returns for each line of a and b whether it stays. Numbers are below distinct.
func match(ctx context.Context, a, b []int32, distinct int) (sameA, sameB []bool, err error) {
	m := &matcher{sameA: make([]bool, len(a)), sameB: make([]bool, len(b)), seen: make([]seenAt, distinct)}
	m.reduce(a, b)
	if len(m.a) == 0 || len(m.b) == 0 {
		return m.sameA, m.sameB, ctx.Err()
	}
	m.names = lineNames(distinct)
	m.stack = append(m.stack, block{0, int32(len(m.a)), 0, int32(len(m.b)), untried})
	for n := 0; len(m.stack) > 0; n++ {
		if n%64 == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		k := m.trim(m.pop())
		if k.a0 == k.a1 || k.b0 == k.b1 {
			continue
		}
		if k.anchored == untried || 2*k.size() <= k.anchored {
			m.startBlock(k)
		} else {
			m.cut(k)
		}
	}
	return m.sameA, m.sameB, nil
}

// reduce drops the lines that stand on one side only.
func (m *matcher) reduce(a, b []int32) {
	for _, id := range a {
		m.seen[id].a = 1
	}
	for _, id := range b {
		m.seen[id].b = 1
	}
	keep := func(ids []int32) (kept, from []int32) {
		n := 0
		for _, id := range ids {
			if m.seen[id] == (seenAt{1, 1}) {
				n++
			}
		}
		if n == len(ids) {
			return ids, nil
		}
		kept, from = make([]int32, 0, n), make([]int32, 0, n)
		for i, id := range ids {
			if m.seen[id] == (seenAt{1, 1}) {
				kept, from = append(kept, id), append(from, int32(i))
			}
		}
		return kept, from
	}
	m.a, m.fromA = keep(a)
	m.b, m.fromB = keep(b)
	clear(m.seen)
}

// lineNames returns a text from which each number's four bytes can be cut: strings of one
// length, so that comparing two lines takes the same time however long they are.
func lineNames(distinct int) string {
	names := make([]byte, 0, 4*distinct)
	for id := range distinct {
		names = append(names, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	return string(names)
}

func (m *matcher) pop() block {
	k := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return k
}

func (m *matcher) push(k block) {
	if k.a0 < k.a1 && k.b0 < k.b1 {
		m.stack = append(m.stack, k)
	}
}

// pair marks that line i of a and line j of b are one that stays.
func (m *matcher) pair(i, j int32) {
	m.sameA[standsAt(m.fromA, i)] = true
	m.sameB[standsAt(m.fromB, j)] = true
}

// standsAt returns where line i of what was kept stands in the whole sequence.
func standsAt(from []int32, i int32) int32 {
	if from == nil {
		return i
	}
	return from[i]
}

// trim marks what the sides of k begin and end with in common and returns the rest.
func (m *matcher) trim(k block) block {
	for k.a0 < k.a1 && k.b0 < k.b1 && m.a[k.a0] == m.b[k.b0] {
		m.pair(k.a0, k.b0)
		k.a0++
		k.b0++
	}
	for k.a0 < k.a1 && k.b0 < k.b1 && m.a[k.a1-1] == m.b[k.b1-1] {
		k.a1--
		k.b1--
		m.pair(k.a1, k.b1)
	}
	return k
}

// startBlock works on a block in which nothing has been sought so far.
func (m *matcher) startBlock(k block) {
	m.count(k)
	done := m.minimal(k)
	var anchors []anchor
	if !done {
		anchors = m.unique(k)
	}
	m.uncount(k)
	switch {
	case done:
	case len(anchors) > 0:
		m.split(k, anchors)
	default:
		m.cutOrRuns(k)
	}
}

// count fills m.seen for the block; uncount empties it again.
func (m *matcher) count(k block) {
	for i := k.a0; i < k.a1; i++ {
		s := &m.seen[m.a[i]].a
		*s = firstOnly(*s, i)
	}
	for j := k.b0; j < k.b1; j++ {
		s := &m.seen[m.b[j]].b
		*s = firstOnly(*s, j)
	}
}

func firstOnly(was, i int32) int32 {
	if was == 0 {
		return i + 1
	}
	return -1
}

func (m *matcher) uncount(k block) {
	for _, id := range m.a[k.a0:k.a1] {
		m.seen[id] = seenAt{}
	}
	for _, id := range m.b[k.b0:k.b1] {
		m.seen[id] = seenAt{}
	}
}

// minimal lets DiffLines work on the block and takes its answer if it is to be trusted.
// Lines that only one side of the block has are left out: they cannot match, and the edits
// are counted without them.
func (m *matcher) minimal(k block) bool {
	atA, linesA, ok := m.shared(m.a, k.a0, k.a1)
	if !ok {
		return false
	}
	atB, linesB, ok := m.shared(m.b, k.b0, k.b1)
	if !ok || len(linesA)-len(linesB) > trusted || len(linesB)-len(linesA) > trusted {
		return false
	}
	if len(linesA) == 0 || len(linesB) == 0 {
		return true
	}
	diffs, ok := diffLines(linesA, linesB)
	if !ok {
		return false
	}
	i, j := 0, 0
	for _, d := range append(diffs, lcs.Diff{Start: len(linesA), ReplStart: len(linesB)}) {
		for ; i < d.Start; i, j = i+1, j+1 {
			m.pair(atA[i], atB[j])
		}
		i, j = d.End, d.ReplEnd
	}
	return true
}

// shared returns the lines of one side of the block that its other side has too, with
// their indices; false if they are too many.
func (m *matcher) shared(ids []int32, from, to int32) (at []int32, lines []string, ok bool) {
	if to-from > maxTry {
		return nil, nil, false
	}
	at, lines = make([]int32, 0, to-from), make([]string, 0, to-from)
	for i := from; i < to; i++ {
		id := ids[i]
		if s := m.seen[id]; s.a != 0 && s.b != 0 {
			at = append(at, i)
			lines = append(lines, m.names[4*id:4*id+4])
		}
	}
	return at, lines, true
}

// diffLines calls lcs.DiffLines and reports whether its answer is sound and minimal. It is
// a library's search with its own inner checks, so a panic in it is an answer that is not
// to be trusted, and not the end of a recording.
func diffLines(a, b []string) (diffs []lcs.Diff, ok bool) {
	defer func() {
		if recover() != nil {
			diffs, ok = nil, false
		}
	}()
	diffs = lcs.DiffLines(a, b)
	edits, i, j := 0, 0, 0
	for _, d := range diffs {
		if d.Start < i || d.End < d.Start || d.End > len(a) ||
			d.ReplStart < j || d.ReplEnd < d.ReplStart || d.ReplEnd > len(b) ||
			d.Start-i != d.ReplStart-j || !equalLines(a[i:d.Start], b[j:d.ReplStart]) {
			return nil, false
		}
		edits += d.End - d.Start + d.ReplEnd - d.ReplStart
		if edits > trusted {
			return nil, false
		}
		i, j = d.End, d.ReplEnd
	}
	return diffs, len(a)-i == len(b)-j && equalLines(a[i:], b[j:])
}

func equalLines(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// split marks the anchors and makes blocks of the gaps between them.
func (m *matcher) split(k block, anchors []anchor) {
	gap := block{a0: k.a0, b0: k.b0, anchored: k.size()}
	for _, an := range anchors {
		m.pair(an.a, an.b)
		gap.a1, gap.b1 = an.a, an.b
		m.push(gap)
		gap.a0, gap.b0 = an.a+1, an.b+1
	}
	gap.a1, gap.b1 = k.a1, k.b1
	m.push(gap)
}

// Unique runs of lines are sought, when the Myers search does not see the end, in blocks of
// these sizes: smaller ones do not need it, larger ones would need too much memory.
const (
	runsFrom = 2048
	runsTo   = 1 << 22
)

// cutOrRuns works on a block that has no unique lines.
func (m *matcher) cutOrRuns(k block) {
	c := m.myers.search(m.a[k.a0:k.a1], m.b[k.b0:k.b1])
	if !c.exact && k.size() >= runsFrom && k.size() <= runsTo {
		if anchors := m.uniqueRuns(k); len(anchors) > 0 {
			m.split(k, anchors)
			return
		}
	}
	m.cutAt(k, k.size(), c)
}

// cut works on a block that is too large a part of one in which anchors were sought.
func (m *matcher) cut(k block) {
	m.cutAt(k, k.anchored, m.myers.search(m.a[k.a0:k.a1], m.b[k.b0:k.b1]))
}

func (m *matcher) cutAt(k block, anchored int32, c crossing) {
	if c.a1-c.a0+c.b1-c.b0 == k.size() {
		return // Nothing was found: the block is a replacement.
	}
	m.push(block{k.a0, k.a0 + c.a0, k.b0, k.b0 + c.b0, anchored})
	m.push(block{k.a0 + c.a0, k.a0 + c.a1, k.b0 + c.b0, k.b0 + c.b1, anchored})
	m.push(block{k.a0 + c.a1, k.a1, k.b0 + c.b1, k.b1, anchored})
}
