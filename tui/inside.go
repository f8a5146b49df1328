package tui

import (
	"cmp"
	"context"
	"io"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"decree/timeline"
	"decree/view"
)

// insideMsg are the files that the records of a session or a race changed, by the record: as many as the beginning
// of each diff names.
type insideMsg map[string][]section

// The bounds of what is read for it.
const (
	mostInside = 60
	insideRead = 256 << 10 // bytes of a diff
)

// lookInside reads, beside the screen, which files the records of a row changed.
func (m *model) lookInside(ctx context.Context, row *timeline.Row) tea.Cmd {
	inner := row.Inner[:min(len(row.Inner), mostInside)]
	return func() tea.Msg {
		out := insideMsg{}
		for i := range inner {
			if s := sourceOf(&inner[i]); s.none == "" && inner[i].Kind == timeline.Record && inner[i].Files() > 0 {
				out[inner[i].ID] = m.beginning(ctx, s)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		return out
	}
}

// beginning are the files that the beginning of a diff names. What cannot be read says so where the record is opened.
func (m *model) beginning(ctx context.Context, s source) []section {
	doc := s.document(m.history)
	open := doc.open
	doc.open = func() (io.ReadCloser, error) {
		f, err := open()
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(f, insideRead), f}, nil
	}
	_ = doc.index(ctx, func() {})
	return doc.sections
}

// innerLines are what a session or a race holds, one below the other, each with its files as far as there is room.
func (m *model) innerLines(r *timeline.Row, columns, rows int) []string {
	out := []string{"", " " + m.styles.dim.Render("enter shows each of them in the timeline"), ""}
	var blocks [][]string
	for i := range r.Inner[:min(len(r.Inner), max(1, rows-len(out)))] {
		in := &r.Inner[i]
		blocks = append(blocks, append(m.innerHead(r, in, columns), m.innerFiles(in, columns)...))
	}
	share := shared(blocks, rows-len(out))
	for _, b := range blocks {
		if len(b) > share {
			b = append(b[:share-1:share-1], m.styles.dim.Render("     …"))
		}
		out = append(out, b...)
	}
	return out
}

// shared is how many lines each block has, so that all have the same as far as they need it.
func shared(blocks [][]string, rows int) (share int) {
	for share = 1; ; share++ {
		sum, more := 0, false
		for _, b := range blocks {
			sum += min(len(b), share+1)
			more = more || len(b) > share
		}
		if sum > rows || !more {
			return share
		}
	}
}

// innerHead is what a record is in what it is folded into.
func (m *model) innerHead(r, in *timeline.Row, columns int) []string {
	s := &m.styles
	counts := m.rowCounts(in, columns) + " "
	if r.Kind == timeline.Race {
		left := " " + s.strong.Render(cmp.Or(in.Name, in.Badge)) + "  "
		if in.Judged != "" {
			left += s.verdict(in.Judged) + s.dim.Render(" · ")
		}
		return []string{ends(left+s.tone(in.Tone).Render(in.Status), counts, columns)}
	}
	lines := wrapped(s.badge[in.Badge].Render(in.Badge)+"  "+shortWhen(in.When)+"  "+in.What, columns-2)
	lines[0] = ends(" "+lines[0], counts, columns)
	for i := range lines[1:] {
		lines[i+1] = "   " + lines[i+1]
	}
	return lines
}

// innerFiles are the files of a record, and an empty line.
func (m *model) innerFiles(in *timeline.Row, columns int) (out []string) {
	files := m.record.inside[in.ID]
	for _, f := range files[:min(len(files), m.height)] {
		out = append(out, ends("     "+fileLetter(f.word)+" "+endOf(view.ShownPath(f.path), columns-7-ansi.StringWidth(m.fileCounts(f))), m.fileCounts(f), columns))
	}
	return append(out, "")
}
