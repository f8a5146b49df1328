package cmd

import (
	"bytes"
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// width is how many columns of a terminal text takes: 2 for a wide character, none for
// what joins the one before it, and none for the colours.
func width(text string) int {
	n, plainText := 0, true
	for i := range len(text) {
		if c := text[i]; c >= 0x80 || c == 0x1b {
			plainText = false
			break
		}
	}
	if plainText {
		return len(text)
	}
	for {
		before, rest, ok := strings.Cut(text, "\x1b[")
		n += uniseg.StringWidth(before)
		if !ok {
			return n
		}
		_, text, _ = strings.Cut(rest, "m")
	}
}

// clip shortens text to n columns, with an ellipsis where something is left out.
func clip(text string, n int) string {
	if width(text) <= n {
		return text
	}
	taken, state := 0, -1
	for rest := text; ; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if taken+w > n-1 {
			return text[:len(text)-len(rest)-len(cluster)] + "…"
		}
		taken += w
	}
}

// padded is text with spaces up to n columns.
func padded(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-width(text)))
}

// table is lines of cells. Its columns are as wide as their widest cell, of which the
// last of a line is none, and a gap; blanks at a line's end are left out.
type table struct {
	lines  [][]string
	widths []int
	gap    int // 0: two spaces
	most   int // columns of a line, what is longer is clipped; 0: no limit
	tabs   bytes.Buffer
	to     io.Writer
}

// tabbed is a table of the lines that are written to it, whose cells tabs divide. It is
// written to w by Flush.
func tabbed(w io.Writer, gap int) *table { return &table{to: w, gap: gap} }

func (t *table) Write(p []byte) (int, error) { return t.tabs.Write(p) }

func (t *table) Flush() error {
	for line := range strings.Lines(t.tabs.String()) {
		t.add(strings.Split(strings.TrimSuffix(line, "\n"), "\t")...)
	}
	t.tabs.Reset()
	return t.write(t.to)
}

func (t *table) add(cells ...string) {
	for i, c := range cells[:max(0, len(cells)-1)] {
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], width(c))
	}
	t.lines = append(t.lines, cells)
}

func (t *table) write(w io.Writer) error {
	gap := t.gap
	if gap == 0 {
		gap = 2
	}
	for _, cells := range t.lines {
		var b strings.Builder
		for i, c := range cells {
			b.WriteString(c)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]+gap-width(c)))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if t.most > 0 {
			line = clip(line, t.most)
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}
