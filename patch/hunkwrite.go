package patch

import (
	"bytes"
	"context"
	"errors"
)

// hunkWriter makes the hunks of a section out of what two texts have in common and what
// they have not, told in order. The hunks are held until it is known that they are not
// too long, in pages, so that a long section leaves no outgrown copies behind.
type hunkWriter struct {
	most int64 // bytes of all hunks that are held

	a, b           int // lines told so far
	added, removed int64

	lead  []byte // before a hunk: the last common lines, at most contextLines
	open  bool
	hunk  Hunk   // the open one, its starts still as rangeFrom has them
	body  pages  // its lines
	after []byte // in a hunk: the common lines behind its last change
	done  pages  // the hunks before it
}

// pages hold bytes without outgrown copies.
type pages struct {
	list [][]byte
	size int64
}

// pageSize is the size of a page.
const pageSize = 256 << 10

// room returns the page that has some.
func (p *pages) room() *[]byte {
	if n := len(p.list); n > 0 && len(p.list[n-1]) < cap(p.list[n-1]) {
		return &p.list[n-1]
	}
	// The first ones are small: most sections are.
	p.list = append(p.list, make([]byte, 0, min(pageSize, 4<<10<<min(len(p.list), 8))))
	return &p.list[len(p.list)-1]
}

func (p *pages) byte(c byte) {
	page := p.room()
	*page = append(*page, c)
	p.size++
}

func (p *pages) bytes(b []byte) {
	p.size += int64(len(b))
	for len(b) > 0 {
		page := p.room()
		n := min(len(b), cap(*page)-len(*page))
		*page, b = append(*page, b[:n]...), b[n:]
	}
}

// take moves what o holds behind what p holds; o is empty then.
func (p *pages) take(o *pages) {
	if len(o.list) == 1 { // small, and there may be very many of them
		p.bytes(o.list[0])
		o.list[0], o.size = o.list[0][:0], 0
		return
	}
	p.list, p.size = append(p.list, o.list...), p.size+o.size
	*o = pages{}
}

// errTooLong says that the hunks are longer than a section may be.
var errTooLong = errors.New("the section is too long")

// common tells of whole lines that both texts have.
func (w *hunkWriter) common(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	n := Lines(text)
	w.a, w.b = w.a+n, w.b+n
	if !w.open {
		w.lead = lastOf(w.lead, text)
		return nil
	}
	held := Lines(w.after)
	if held+n <= 2*contextLines {
		w.after = append(w.after, text...)
		return nil
	}
	w.after = append(w.after, headOf(text, contextLines-held)...)
	if err := w.shut(); err != nil {
		return err
	}
	w.lead = lastOf(append(w.lead[:0], w.after...), text[len(headOf(text, contextLines-held)):])
	w.after = w.after[:0]
	return nil
}

// headOf returns the first n lines of text.
func headOf(text []byte, n int) []byte { return text[:len(text)-len(skipLines(text, n))] }

// lastOf returns the last contextLines lines of head and text together, in head's memory.
func lastOf(head, text []byte) []byte {
	if n := Lines(text); n < contextLines {
		keep := head[lastLines(head, contextLines-n):]
		return append(head[:copy(head, keep)], text...)
	}
	return append(head[:0], text[lastLines(text, contextLines):]...)
}

// lastLines returns where the last n lines of text begin, the last of which may lack its '\n'.
func lastLines(text []byte, n int) int {
	if len(text) == 0 || text[len(text)-1] == '\n' {
		return backLines(text, n)
	}
	return backLines(text[:bytes.LastIndexByte(text, '\n')+1], n-1)
}

// change tells of whole lines that come in the place of others.
func (w *hunkWriter) change(gone, come []byte) error {
	if len(gone)+len(come) == 0 {
		return nil
	}
	if !w.open {
		w.open = true
		n := Lines(w.lead)
		w.hunk = Hunk{OldStart: w.a - n, NewStart: w.b - n}
		w.after, w.lead = append(w.after[:0], w.lead...), w.lead[:0]
	}
	w.context()
	old, new := w.lines('-', gone), w.lines('+', come)
	w.hunk.OldLines, w.hunk.NewLines = w.hunk.OldLines+old, w.hunk.NewLines+new
	w.a, w.b = w.a+old, w.b+new
	w.removed, w.added = w.removed+int64(old), w.added+int64(new)
	return w.tooLong()
}

// context writes the common lines that are held.
func (w *hunkWriter) context() {
	n := w.lines(' ', w.after)
	w.hunk.OldLines, w.hunk.NewLines = w.hunk.OldLines+n, w.hunk.NewLines+n
	w.after = w.after[:0]
}

func (w *hunkWriter) tooLong() error {
	if w.done.size+w.body.size > w.most {
		return errTooLong
	}
	return nil
}

// shut ends the hunk, if one is open, with the first common lines that are held. It
// leaves them all where they are, to be a lead.
func (w *hunkWriter) shut() error {
	if !w.open {
		return nil
	}
	after := w.after
	w.after = after[:len(headOf(after, contextLines))]
	w.context()
	w.after, w.open = after, false
	w.hunk.OldStart, w.hunk.NewStart = rangeStart(w.hunk.OldStart, w.hunk.OldLines), rangeStart(w.hunk.NewStart, w.hunk.NewLines)
	w.done.bytes(append(w.hunk.appendHeader(nil), '\n'))
	w.done.take(&w.body)
	return w.tooLong()
}

// rangeStart is the inverse of rangeFrom.
func rangeStart(from, n int) int {
	if n == 0 {
		return from
	}
	return from + 1
}

// lines writes text as lines of a kind and returns how many they are.
func (w *hunkWriter) lines(kind byte, text []byte) (n int) {
	for len(text) > 0 && w.body.size <= w.most {
		var line []byte
		line, text = cutLine(text)
		w.body.byte(kind)
		w.body.bytes(line)
		if line[len(line)-1] != '\n' {
			w.body.bytes([]byte("\n" + noNewline + "\n"))
		}
		n++
	}
	return n
}

// writeTo writes the hunks, when the last one is shut.
func (w *hunkWriter) writeTo(out output) {
	for _, page := range w.done.list {
		out.bytes(page)
	}
}

// piece tells of two texts, or parts of them.
func (w *hunkWriter) piece(ctx context.Context, a, b []byte) error {
	c, err := compare(ctx, a, b)
	if err == nil {
		return w.compared(c)
	}
	if !errors.Is(err, errTooManyLines) {
		return err
	}
	// Where lines were only added or only removed, or most are new, it does not matter
	// which of them stay.
	from := commonHead(a, b)
	tail := commonTail(a[from:], b[from:])
	gone, come := a[from:len(a)-tail], b[from:len(b)-tail]
	if len(gone) > 0 && len(come) > 0 && !mostlyNew(gone, come) {
		return err
	}
	if err := w.common(a[:from]); err != nil {
		return err
	}
	if err := w.change(gone, come); err != nil {
		return err
	}
	return w.common(a[len(a)-tail:])
}

// compared tells of the edits of a comparison.
func (w *hunkWriter) compared(c *comparison) error {
	if err := w.common(c.head); err != nil {
		return err
	}
	at := 0
	for _, e := range c.edits {
		if err := w.common(c.a.lines(at, e.a0)); err != nil {
			return err
		}
		if err := w.change(c.a.lines(e.a0, e.a1), c.b.lines(e.b0, e.b1)); err != nil {
			return err
		}
		at = e.a1
	}
	return w.common(c.a.data[c.a.start[at]:])
}
