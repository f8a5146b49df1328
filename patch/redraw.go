package patch

import (
	"bytes"
	"context"
)

// Redraw returns the section's hunks with n lines of context instead of three. old is the
// whole content that the section begins with. With loose, lines that differ in white
// space alone count as equal and are shown as they are in the new content: such hunks are
// for people, and can not be applied. A section that does not fit old keeps its hunks.
func (s *Section) Redraw(old []byte, n int, loose bool) []Hunk {
	lines := bytes.SplitAfter(old, []byte{'\n'})
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	var edits []rewrite
	for i := range s.Hunks {
		more, ok := rewritesOf(&s.Hunks[i], lines)
		if !ok {
			return s.Hunks
		}
		edits = append(edits, more...)
	}
	if loose {
		edits = loosened(edits, lines)
	}
	return drawn(edits, lines, n)
}

// rewrite replaces the lines from to to, exclusive, of the old content by others.
type rewrite struct {
	from, to int
	added    [][]byte
}

// rewritesOf are a hunk's changes; ok is false where it does not fit lines.
func rewritesOf(h *Hunk, lines [][]byte) (out []rewrite, ok bool) {
	at, open := h.oldFrom(), false
	for l := range h.Lines() {
		if l.Kind != '+' && (at >= len(lines) || !bytes.Equal(lines[at], l.Text)) {
			return nil, false
		}
		if l.Kind == ' ' {
			open = false
			at++
			continue
		}
		if !open {
			out, open = append(out, rewrite{from: at, to: at}), true
		}
		c := &out[len(out)-1]
		if l.Kind == '-' {
			at++
			c.to = at
		} else {
			c.added = append(c.added, l.Text)
		}
	}
	return out, true
}

// loosened takes the lines out of changes that differ in white space alone. Those of lines
// become what the new content has.
func loosened(edits []rewrite, lines [][]byte) (out []rewrite) {
	for _, e := range edits {
		at, taken := e.from, 0
		flush := func(to, added int) {
			if to > at || added > taken {
				out = append(out, rewrite{at, to, e.added[taken:added]})
			}
		}
		for _, p := range pairs(lines[e.from:e.to], e.added) {
			flush(e.from+p[0], p[1])
			lines[e.from+p[0]] = e.added[p[1]]
			at, taken = e.from+p[0]+1, p[1]+1
		}
		flush(e.to, len(e.added))
	}
	return out
}

// pairs are lines that a and b have in common, but for white space, as their indexes.
func pairs(a, b [][]byte) (out [][2]int) {
	numbers := map[string]int32{}
	numbered := func(lines [][]byte) []int32 {
		ids := make([]int32, len(lines))
		for i, l := range lines {
			bare := string(bytes.Join(bytes.Fields(l), nil))
			id, ok := numbers[bare]
			if !ok {
				id = int32(len(numbers))
				numbers[bare] = id
			}
			ids[i] = id
		}
		return ids
	}
	x, y := numbered(a), numbered(b)
	sameA, sameB, err := match(context.Background(), x, y, len(numbers))
	if err != nil {
		return nil // only a cancelled search has one
	}
	j := 0
	for i, same := range sameA {
		if !same {
			continue
		}
		for !sameB[j] {
			j++
		}
		out = append(out, [2]int{i, j})
		j++
	}
	return out
}

// drawn makes hunks of changes with n lines of context.
func drawn(edits []rewrite, lines [][]byte, n int) (out []Hunk) {
	grown := 0 // by how many lines the changes before have made the content longer
	for len(edits) > 0 {
		last := 0
		for last+1 < len(edits) && edits[last+1].from-edits[last].to <= 2*n {
			last++
		}
		from, to := max(0, edits[0].from-n), min(len(lines), edits[last].to+n)
		var body []byte
		at, added := from, 0
		for _, e := range edits[:last+1] {
			body = withLines(body, ' ', lines[at:e.from])
			body = withLines(body, '-', lines[e.from:e.to])
			body = withLines(body, '+', e.added)
			added += len(e.added) - (e.to - e.from)
			at = e.to
		}
		body = withLines(body, ' ', lines[at:to])
		h := Hunk{OldLines: to - from, NewLines: to - from + added, Body: body}
		h.OldStart, h.NewStart = rangeStart(from, h.OldLines), rangeStart(from+grown, h.NewLines)
		out = append(out, h)
		grown += added
		edits = edits[last+1:]
	}
	return out
}

// withLines appends lines of a kind; the last one of a content may have no newline.
func withLines(body []byte, kind byte, lines [][]byte) []byte {
	for _, l := range lines {
		body = append(append(body, kind), l...)
		if !bytes.HasSuffix(l, []byte{'\n'}) {
			body = append(body, "\n"+noNewline+"\n"...)
		}
	}
	return body
}
