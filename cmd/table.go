package cmd

import (
	"io"
	"unicode/utf8"
)

// table is lines of cells. Its columns are as wide as their widest cell and two
// spaces, in characters; blanks at a line's end are left out.
type table struct {
	lines  [][]string
	widths []int
}

func (t *table) add(cells ...string) {
	for i, c := range cells {
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c))
	}
	t.lines = append(t.lines, cells)
}

func (t *table) write(w io.Writer) error {
	var b []byte
	for _, cells := range t.lines {
		b = b[:0]
		for i, c := range cells {
			b = append(b, c...)
			for n := utf8.RuneCountInString(c); n < t.widths[i]+2; n++ {
				b = append(b, ' ')
			}
		}
		for len(b) > 0 && b[len(b)-1] == ' ' {
			b = b[:len(b)-1]
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return nil
}
