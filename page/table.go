package page

import (
	"strconv"

	"decree/view"
)

// Lines as rows of a table.

// draws draws rows, hunk by hunk.
func (d *drawer) draws(rows []row) error {
	if !d.table {
		d.table = true
		d.write(d.tableHead())
	}
	var b []byte
	for len(rows) > 0 {
		if rows[0].kind == HunkLine {
			b = d.appendHunk(b, rows[0])
			rows = rows[1:]
		}
		n := 0
		for n < len(rows) && rows[n].kind != HunkLine {
			n++
		}
		b = d.appendLines(b, rows[:n])
		rows = rows[n:]
	}
	_, err := d.w.Write(b)
	return err
}

func (d *drawer) tableHead() string {
	side := func(name string) string {
		return "<th scope=\"col\">" + name + " line<th scope=\"col\">Sign<th scope=\"col\">" + name
	}
	const one = `<col class="no"><col class="sg"><col>`
	class, cols, heads := "diff", `<col class="no">`+one, `<th scope="col">Old line<th scope="col">New line<th scope="col">Sign<th scope="col">Text`
	if d.o.Split {
		class, cols, heads = "diff split", one+one, side("Old")+side("New")
	}
	return `<table class="` + class + `"><caption class="hidden">` + string(Path(d.sec.Path)) + ", " + view.OpWord(d.sec.Op) +
		`</caption><colgroup>` + cols + `</colgroup><thead class="hidden"><tr>` + heads + "</thead><tbody>\n"
}

// appendHunk draws the head of a hunk.
func (d *drawer) appendHunk(b []byte, r row) []byte {
	span := "4"
	if d.o.Split {
		span = "6"
	}
	b = append(b, `<tr class="h"><td colspan="`+span+`">`...)
	if !d.o.Marks {
		return append(append(b, r.head...), "\n"...)
	}
	b = append(b, `<label class="mark"><input type="checkbox" name="mark" data-hunk value="`+Mark(d.sec.Path, r.hunk)+`"> <span class="hidden">hunk `+strconv.Itoa(r.hunk)+` of `...)
	b = append(append(b, Path(d.sec.Path)...), "</span> "...)
	return append(append(b, r.head...), "</label>\n"...)
}

// painted is a line with what is known of its parts.
type painted struct {
	row
	tokens []Token // nil: plain
	strong []Range
}

// appendLines draws the lines of a hunk, or a part of them.
func (d *drawer) appendLines(b []byte, rows []row) []byte {
	lines := d.paint(rows)
	for len(lines) > 0 {
		if lines[0].kind == Context {
			b = d.appendPair(b, &lines[0], &lines[0])
			lines = lines[1:]
			continue
		}
		gone, come := 0, 0
		for gone < len(lines) && lines[gone].kind == Removed {
			gone++
		}
		for gone+come < len(lines) && lines[gone+come].kind == Added {
			come++
		}
		old, new := lines[:gone], lines[gone:gone+come]
		for i := range min(gone, come) {
			old[i].strong, new[i].strong = Words(old[i].text, new[i].text)
		}
		b = d.appendChange(b, old, new)
		lines = lines[gone+come:]
	}
	return b
}

// paint finds the tokens of both sides, each of which is a text of its own.
func (d *drawer) paint(rows []row) []painted {
	lines := make([]painted, len(rows))
	for i, r := range rows {
		lines[i].row = r
	}
	for _, other := range []byte{Added, Removed} { // what stays takes those of the new side
		var texts []string
		var at []int
		for i, r := range rows {
			if r.kind != other {
				texts, at = append(texts, r.text), append(at, i)
			}
		}
		for n, tokens := range d.colours.Tokens(d.sec.Path, texts) {
			lines[at[n]].tokens = tokens
		}
	}
	return lines
}

// appendChange draws lines and those that took their place.
func (d *drawer) appendChange(b []byte, old, new []painted) []byte {
	if !d.o.Split {
		for i := range old {
			b = d.appendPair(b, &old[i], nil)
		}
		for i := range new {
			b = d.appendPair(b, nil, &new[i])
		}
		return b
	}
	for i := range max(len(old), len(new)) {
		var left, right *painted
		if i < len(old) {
			left = &old[i]
		}
		if i < len(new) {
			right = &new[i]
		}
		b = d.appendPair(b, left, right)
	}
	return b
}

// appendPair draws a row: old and new are the same line, or one is missing, or, side by
// side, both are there.
func (d *drawer) appendPair(b []byte, old, new *painted) []byte {
	class := ""
	switch {
	case old == nil:
		class = ` class="a"`
	case new == nil:
		class = ` class="d"`
	case old != new:
		class = ` class="m"`
	}
	b = append(b, "<tr"+class+">"...)
	if d.o.Split {
		return append(appendSide(appendSide(b, old, true), new, false), '\n')
	}
	b = appendNumber(appendNumber(b, old, true), new, false)
	shown := old
	if old == nil {
		shown = new
	}
	return append(shown.appendText(b), '\n')
}

func appendSide(b []byte, l *painted, old bool) []byte {
	b = appendNumber(b, l, old)
	if l == nil {
		return append(b, "<td><td>"...)
	}
	return l.appendText(b)
}

func appendNumber(b []byte, l *painted, old bool) []byte {
	b = append(b, "<td>"...)
	switch {
	case l == nil:
		return b
	case old:
		return strconv.AppendInt(b, int64(l.old), 10)
	}
	return strconv.AppendInt(b, int64(l.new), 10)
}

// appendText draws the cells of a line's sign and text.
func (l *painted) appendText(b []byte) []byte {
	b = append(b, "<td>"...)
	switch l.kind {
	case Added:
		b = append(b, '+')
	case Removed:
		b = append(b, "&minus;"...)
	}
	b = append(b, "<td>"...)
	tokens := l.tokens
	if tokens == nil && l.text != "" {
		tokens = []Token{{Text: l.text}}
	}
	at, strong := 0, l.strong
	for _, t := range tokens {
		if t.Class != "" {
			b = append(b, `<span class="`+string(t.Class)+`">`...)
		}
		b, strong = appendStrong(b, t.Text, at, strong)
		if t.Class != "" {
			b = append(b, "</span>"...)
		}
		at += len(t.Text)
	}
	return l.appendEnd(b)
}

// appendStrong draws the part of a line that begins at at, and returns the ranges that end
// behind it.
func appendStrong(b []byte, text string, at int, strong []Range) ([]byte, []Range) {
	for text != "" && len(strong) > 0 && strong[0].From < at+len(text) {
		before := max(0, strong[0].From-at)
		b = appendText(b, text[:before])
		end := min(len(text), strong[0].To-at)
		b = append(appendText(append(b, "<b>"...), text[before:end]), "</b>"...)
		text, at = text[end:], at+end
		if strong[0].To > at {
			return b, strong
		}
		strong = strong[1:]
	}
	return appendText(b, text), strong
}
