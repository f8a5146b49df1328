package patch

import (
	"bytes"
	"context"
)

// Merged is what came of a three-way merge.
type Merged struct {
	// Data has the changes of both sides; where they conflict it has both, between
	// marker lines.
	Data      []byte
	Conflicts int
}

// Sides are the names that stand on marker lines.
type Sides struct{ Ours, Theirs string }

// Merge brings the changes that lead from base to theirs into ours, line by line
// (diff3). A change that only one side has made is taken; what both have changed in
// the same way is taken once; other changes that overlap, or that no unchanged line
// parts, are a conflict.
//
// Where lines are repeated there are several ways to say what a side has changed, and
// a merge can be clean in one and a conflict in another. So it is made twice, from
// both ends, which leads to different ways; it is clean only if both come to the same
// bytes. Lines are split at '\n' only. Its errors are ctx's, and one for texts of too
// many lines.
func Merge(ctx context.Context, base, ours, theirs []byte, names Sides) (*Merged, error) {
	down, err := merge(ctx, base, ours, theirs)
	if err != nil {
		return nil, err
	}
	one := down.render(names, false) // its parts may be a million, and are not kept beside those of the other end
	if one.Conflicts > 0 {
		return one, nil
	}
	up, err := merge(ctx, upended(base), upended(ours), upended(theirs))
	if err != nil {
		return nil, err
	}
	other := up.render(names, true)
	if other.Conflicts > 0 || bytes.Equal(one.Data, other.Data) {
		return other, nil
	}
	whole := merged{parts: []part{{ours: ours, theirs: theirs, conflict: true}}, conflicts: 1}
	return whole.render(names, false), nil
}

// merged is a merge in parts: what is settled, in ours, and what is not.
type merged struct {
	parts     []part
	conflicts int
}

type part struct {
	ours, theirs []byte
	conflict     bool
}

func merge(ctx context.Context, base, ours, theirs []byte) (*merged, error) {
	a, err := changesOf(ctx, base, ours)
	if err != nil {
		return nil, err
	}
	b, err := changesOf(ctx, base, theirs)
	if err != nil {
		return nil, err
	}
	m := merging{base: base, a: a, b: b}
	m.out.parts = make([]part, 0, 2*(len(a)+len(b))+1)
	for len(m.a) > 0 || len(m.b) > 0 {
		switch {
		case len(m.b) == 0 || len(m.a) > 0 && m.a[0].to < m.b[0].from:
			m.take(m.a[0])
			m.a = m.a[1:]
		case len(m.a) == 0 || m.b[0].to < m.a[0].from:
			m.take(m.b[0])
			m.b = m.b[1:]
		default:
			m.both()
		}
	}
	m.out.parts = append(m.out.parts, part{ours: base[m.pos:]})
	return &m.out, nil
}

// change is base[lo:hi] become text: whole lines. Where lines are repeated it could
// as well stand elsewhere between from and to.
type change struct {
	lo, hi   int
	text     []byte
	from, to int
}

// reach sets from and to: over lines that are among those which the change takes or
// brings. Over others it cannot be moved, whole or in part.
func (c *change) reach(base []byte) {
	own := map[string]bool{}
	for _, block := range [...][]byte{base[c.lo:c.hi], c.text} {
		for l := range bytes.Lines(block) {
			own[string(l)] = true
		}
	}
	c.from, c.to = c.lo, c.hi
	for c.from > 0 {
		start := bytes.LastIndexByte(base[:c.from-1], '\n') + 1
		if !own[string(base[start:c.from])] {
			break
		}
		c.from = start
	}
	for c.to < len(base) {
		l, _ := cutLine(base[c.to:])
		if !own[string(l)] {
			break
		}
		c.to += len(l)
	}
}

// changesOf are the changes from base to side, in order and apart from each other.
func changesOf(ctx context.Context, base, side []byte) ([]change, error) {
	c, err := compare(ctx, base, side)
	if err != nil {
		return nil, err
	}
	lead := len(base) - len(c.a.data) // what the comparison left out as common
	out := make([]change, len(c.edits))
	for i, e := range c.edits {
		ch := change{lo: lead + int(c.a.start[e.a0]), hi: lead + int(c.a.start[e.a1]), text: c.b.lines(e.b0, e.b1)}
		ch.reach(base)
		out[i] = ch
	}
	return out, nil
}

// merging is a merge on its way: what is left of both sides, and how far base is done.
type merging struct {
	base []byte
	a, b []change
	pos  int
	out  merged
}

func (m *merging) take(c change) {
	m.out.parts = append(m.out.parts, part{ours: m.base[m.pos:c.lo]}, part{ours: c.text})
	m.pos = c.hi
}

// both deals with the changes of both sides that hang together.
func (m *merging) both() {
	lo, hi := min(m.a[0].lo, m.b[0].lo), max(m.a[0].hi, m.b[0].hi)
	reach, na, nb := max(m.a[0].to, m.b[0].to), 0, 0
	for grown := true; grown; {
		grown = false
		for ; na < len(m.a) && m.a[na].from <= reach; na++ {
			hi, reach, grown = max(hi, m.a[na].hi), max(reach, m.a[na].to), true
		}
		for ; nb < len(m.b) && m.b[nb].from <= reach; nb++ {
			hi, reach, grown = max(hi, m.b[nb].hi), max(reach, m.b[nb].to), true
		}
	}
	ours, theirs := m.side(m.a[:na], lo, hi), m.side(m.b[:nb], lo, hi)
	m.a, m.b = m.a[na:], m.b[nb:]
	m.take(change{lo: lo, hi: hi, text: ours})
	if !bytes.Equal(ours, theirs) {
		m.out.conflicts++
		m.out.parts[len(m.out.parts)-1] = part{ours, theirs, true}
	}
}

// side is base[lo:hi] with one side's changes.
func (m *merging) side(list []change, lo, hi int) (out []byte) {
	for _, c := range list {
		out = append(append(out, m.base[lo:c.lo]...), c.text...)
		lo = c.hi
	}
	return append(out, m.base[lo:hi]...)
}

// render is the merge as it is written into the file; up: it was made of upended texts.
func (m *merged) render(names Sides, up bool) *Merged {
	size := 0
	for _, p := range m.parts {
		size += len(p.ours) + len(p.theirs)
	}
	out := &Merged{Data: make([]byte, 0, size), Conflicts: m.conflicts}
	for i, p := range m.parts {
		if up {
			p = m.parts[len(m.parts)-1-i]
			p.ours, p.theirs = upright(p.ours), upright(p.theirs)
		}
		if !p.conflict {
			out.Data = append(out.Data, p.ours...)
			continue
		}
		out.mark("<<<<<<< ", names.Ours)
		out.Data = append(out.Data, p.ours...)
		out.mark("=======", "")
		out.Data = append(out.Data, p.theirs...)
		out.mark(">>>>>>> ", names.Theirs)
	}
	return out
}

// mark begins a new line with a mark.
func (m *Merged) mark(mark, name string) {
	if n := len(m.Data); n > 0 && m.Data[n-1] != '\n' {
		m.Data = append(m.Data, '\n')
	}
	m.Data = append(append(append(m.Data, mark...), name...), '\n')
}

// openEnd stands, in an upended text, behind the line that had no newline. A text has
// no NUL byte.
const openEnd = "\x00\n"

// upended is text with its lines in the other order.
func upended(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(openEnd))
	for end := len(text); end > 0; {
		start := bytes.LastIndexByte(text[:end-1], '\n') + 1
		out = append(out, text[start:end]...)
		if out[len(out)-1] != '\n' {
			out = append(out, openEnd...)
		}
		end = start
	}
	return out
}

// upright is what an upended text was.
func upright(text []byte) []byte {
	return bytes.ReplaceAll(upended(text), []byte(openEnd), nil)
}
