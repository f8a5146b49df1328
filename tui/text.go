package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"decree/plan"
	"decree/view"
)

// clean makes a line of a file safe to show: what a terminal would obey or turn around
// becomes visible, and a tab spaces.
func clean(text string) string { return view.OneLine(untabbed(text)) }

// untabbed has spaces in the place of tabs.
func untabbed(text string) string {
	if !strings.ContainsRune(text, '\t') {
		return text
	}
	var b strings.Builder
	column := 0
	for i := range len(text) { // byte by byte: what is no UTF-8 stays as it is
		if text[i] != '\t' {
			b.WriteByte(text[i])
			if text[i]&0xC0 != 0x80 {
				column++
			}
			continue
		}
		n := 4 - column%4
		b.WriteString("    "[:n])
		column += n
	}
	return b.String()
}

// fit cuts a line, which may be styled, to so many columns and fills it up to them.
func fit(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	text = ansi.Truncate(text, columns, "…")
	if n := columns - ansi.StringWidth(text); n > 0 {
		text += strings.Repeat(" ", n)
	}
	return text
}

// endOf is a path in so many columns: of a long one its end is read, which tells it from others.
func endOf(path string, columns int) string {
	if over := ansi.StringWidth(path) - max(columns, 8); over > 0 {
		return ansi.TruncateLeft(path, over+1, "…")
	}
	return path
}

// ends has left stand at the beginning of a line and right at its end; where there is not enough room
// left is cut.
func ends(left, right string, columns int) string {
	room := columns - ansi.StringWidth(right)
	if room < 8 {
		return fit(left, columns)
	}
	return fit(left, room) + right
}

// wrapped breaks a text into lines.
func wrapped(text string, columns int) []string {
	return strings.Split(ansi.Wrap(text, max(columns, 10), ""), "\n")
}

// itemLine is a path of a plan and what is in its way.
func itemLine(it plan.Item) string {
	text := view.ShownPath(it.Path)
	if it.Reason != "" {
		text += "  " + clean(it.Reason)
	} else {
		text += "  " + clean(string(it.Verdict))
	}
	return text
}
