package cmd

import (
	"io"
	"os"
	"slices"
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

// clipPath shortens a path to n columns in its middle: its end says most.
func clipPath(path string, n int) string {
	if width(path) <= n {
		return path
	}
	var clusters []string
	for rest, state := path, -1; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		clusters = append(clusters, cluster)
	}
	head := strings.TrimSuffix(clip(path, max(1, n/3)), "…")
	tail, room := "", n-width(head)-1
	for _, c := range slices.Backward(clusters) {
		if width(c+tail) > room {
			break
		}
		tail = c + tail
	}
	return head + "…" + tail
}

// table is lines of cells. Its columns are as wide as their widest cell, of which the
// last of a line is none, and a gap; blanks at a line's end are left out.
type table struct {
	lines  [][]string
	widths []int
	gap    int // 0: two spaces
	most   int // columns of a line; 0: no limit
	// paths are the columns that are shortened in the middle where a line does not fit,
	// the first of them first. What is longer even so is clipped at its end.
	paths []int
	end   int // columns that the last one keeps, leastLast if it is 0
	// ragged leaves the lines of a table that does not fit whole, and unaligned.
	ragged bool
}

// fits makes the table as narrow as out is, if that is a terminal: a file and another
// program get all of every cell. paths are the columns that can be shortened.
func (s *session) fits(t *table, out *os.File, paths ...int) *table {
	if isTerminal(out) {
		t.most, t.paths = s.columns(out), paths
	}
	return t
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

// fitted breaks text between words where out is a terminal that is narrower.
func (s *session) fitted(text string, out *os.File) string {
	if !isTerminal(out) {
		return text
	}
	return strings.TrimRight(wrap(text, s.columns(out)-1, ""), "\n")
}

// leastPath is how many columns a path keeps, leastLast the last column.
const (
	leastPath = 12
	leastLast = 16
)

// extent is how wide the table is without its last column, and that one.
func (t *table) extent(gap int) (before, last int) {
	for _, n := range t.widths {
		before += n + gap
	}
	for _, cells := range t.lines {
		if len(cells) == len(t.widths)+1 {
			last = max(last, width(cells[len(cells)-1]))
		}
	}
	return before, last
}

// shorten takes from the paths what the table is too wide.
func (t *table) shorten(gap int) {
	before, end := t.extent(gap)
	last := len(t.widths)
	if !slices.Contains(t.paths, last) {
		end = min(end, max(t.end, leastLast))
	}
	excess := before + end - t.most
	for _, col := range t.paths {
		if excess <= 0 || col > last {
			continue
		}
		size := end
		if col < last {
			size = t.widths[col]
		}
		size = max(min(size, leastPath), size-excess)
		if col < last {
			excess -= t.widths[col] - size
			t.widths[col] = size
		}
		for _, cells := range t.lines {
			if len(cells) > col && (col < last || len(cells) == last+1) {
				cells[col] = clipPath(cells[col], size)
			}
		}
	}
}

func (t *table) write(w io.Writer) error {
	gap := t.gap
	if gap == 0 {
		gap = 2
	}
	switch before, last := t.extent(gap); {
	case t.most == 0 || before+last <= t.most:
	case t.ragged:
		clear(t.widths)
	default:
		t.shorten(gap)
	}
	for _, cells := range t.lines {
		var b strings.Builder
		for i, c := range cells {
			b.WriteString(c)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", max(0, t.widths[i]-width(c))+gap))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if t.most > 0 && !t.ragged {
			line = clip(line, t.most)
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}
