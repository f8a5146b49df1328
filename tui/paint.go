package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"decree/page"
	"decree/view"
)

// paint draws rows of a diff. What is added and what is removed are coloured as the texts that they
// are of: those of a hunk's side follow each other.
func (m *model) paint(v *diffView, lines []diffLine, from int) []string {
	if columns := m.width + v.left; v.painted == nil || len(v.painted) > mostPainted || v.paintedFor != columns {
		v.painted, v.paintedFor = map[int]string{}, columns
	}
	missing := false
	for i := range lines {
		_, known := v.painted[from+i]
		missing = missing || !known
	}
	if missing {
		for i, t := range v.tokens(lines) {
			v.painted[from+i] = m.paintLine(v, lines[i], t)
		}
	}
	out := make([]string, len(lines))
	for i := range lines {
		out[i] = v.painted[from+i]
	}
	return out
}

// scrolledAside is a painted row without the columns that are out of sight; the sign of its line stays.
func scrolledAside(painted string, kind byte, left int) string {
	if left == 0 {
		return painted
	}
	sign := 0
	if kind != 's' && kind != '@' {
		sign = 1
	}
	return ansi.Cut(painted, 0, sign) + ansi.TruncateLeft(ansi.TruncateLeft(painted, sign, ""), left, "…")
}

// mostPainted is how many rows are kept as they were painted.
const mostPainted = 2000

// tokens are those of each row, nil where it stays plain.
func (v *diffView) tokens(lines []diffLine) [][]page.Token {
	out := make([][]page.Token, len(lines))
	for begin := 0; begin < len(lines); {
		end := begin + 1
		for end < len(lines) && lines[end].sec == lines[begin].sec && lines[end].hunk == lines[begin].hunk {
			end++
		}
		name := v.doc.section(lines[begin].sec).path
		for _, sides := range []string{" -", " +"} {
			var texts []string
			var at []int
			for i := begin; i < end; i++ {
				if strings.IndexByte(sides, lines[i].kind) >= 0 {
					texts, at = append(texts, untabbed(lines[i].text)), append(at, i)
				}
			}
			if len(texts) == 0 {
				continue
			}
			for i, t := range v.colours.Tokens(name, texts) {
				out[at[i]] = t
			}
		}
		begin = end
	}
	return out
}

func (m *model) paintLine(v *diffView, l diffLine, tokens []page.Token) string {
	s := &m.styles
	switch l.kind {
	case 's':
		sec := v.doc.section(l.sec)
		text := sec.word + "  " + view.ShownPath(sec.path)
		if sec.note != "" {
			text += "  " + sec.note
		}
		return s.file.Render(text)
	case '@':
		return s.hunk.Render(clean(l.text))
	case '\\':
		return s.dim.Render("\\ the file ends without a newline")
	case '+':
		return s.added.Render("+") + m.coloured(l.text, tokens, s.addedGround.Render, v.paintedFor)
	case '-':
		return s.removed.Render("-") + m.coloured(l.text, tokens, s.removedGround.Render, v.paintedFor)
	}
	return " " + m.coloured(l.text, tokens, nil, v.paintedFor)
}

// coloured is a line with its tokens' colours, or all of it as plain has it. It is cut before it
// is painted: a line is no longer than a screen, and what is out of sight before it.
func (m *model) coloured(text string, tokens []page.Token, plain func(...string) string, columns int) string {
	if plain == nil {
		plain = func(texts ...string) string { return strings.Join(texts, "") }
	}
	if len(tokens) == 0 {
		return plain(ansi.Truncate(clean(text), columns, "…"))
	}
	var b strings.Builder
	for _, t := range tokens {
		part := clean(t.Text)
		if style, ok := m.styles.token[string(t.Class)]; ok {
			b.WriteString(style.Render(part))
			continue
		}
		b.WriteString(plain(part))
	}
	return b.String()
}
