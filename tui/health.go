package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize"

	"decree/page"
)

// healthPane is the numbers of the history, as small bars.
type healthPane struct {
	plots []*page.Plot
	top   int
}

type healthMsg struct {
	plots []*page.Plot
	err   error
}

// barsOfPlot is how many points of a plot are shown.
const barsOfPlot = 8

// readPlots reads the history for the numbers of its health, which the pages show too.
func (e *engine) readPlots() ([]*page.Plot, error) {
	u, err := e.Read.Usage()
	if err != nil {
		return nil, err
	}
	return page.Plots(u, e.Read.Project().Config.MaxStore, page.Clock{Now: e.Now(), Location: e.Location}), nil
}

func (m *model) healthKey() tea.Cmd {
	m.working = "adding up the records"
	return func() tea.Msg {
		plots, err := m.readPlots()
		return healthMsg{plots, err}
	}
}

func (m *model) showHealth(msg healthMsg) {
	m.working = ""
	if msg.err != nil {
		m.fail(msg.err)
		return
	}
	m.health = &healthPane{plots: msg.plots}
}

// keyInHealth scrolls the numbers, or leaves them.
func (m *model) keyInHealth(name string) tea.Cmd {
	m.health.top += m.stepOf(name)
	switch name {
	case "esc", "q", "h", "left":
		m.health = nil
	case "space":
		m.health.top += m.pageRows()
	case "Y":
		return m.copyLine("decree du")
	}
	return nil
}

func (m *model) healthLines(columns, rows int) []string {
	s := &m.styles
	b := barLines{columns: columns - 2, loc: m.Location, bar: "█", title: s.title.Render, paint: s.key.Render}
	lines := b.all(m.health.plots)
	m.health.top = max(0, min(m.health.top, len(lines)-rows))
	return indented(lines[m.health.top:min(m.health.top+rows, len(lines))])
}

// barLines draws plots as lines of so many columns.
type barLines struct {
	columns      int
	loc          *time.Location
	bar          string // a column of a bar
	title, paint func(...string) string
}

func (b *barLines) all(plots []*page.Plot) (out []string) {
	for i, p := range plots {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, b.title(ansi.Truncate(clean(p.Title), b.columns, "…")))
		out = append(out, wrapped(clean(p.Words), b.columns)...)
		out = append(out, b.bars(p)...)
	}
	return out
}

// bars has a line for each bar: what it is of, the value, and the bar last, so that a line that is read aloud
// begins with its words.
func (b *barLines) bars(p *page.Plot) (out []string) {
	bars, left := p.Bars(barsOfPlot, b.loc)
	if len(p.Points) == 0 {
		return []string{"Nothing to show yet."}
	}
	labels, values := 0, 0
	for i := range bars {
		bars[i].Label = clean(bars[i].Label)
		labels = max(labels, ansi.StringWidth(bars[i].Label))
		values = max(values, ansi.StringWidth(bars[i].Shown))
	}
	labels = min(labels, b.columns*2/5)
	room := b.columns - labels - values - 4
	for _, bar := range bars {
		n := int(bar.Part*float64(room) + 0.5)
		if bar.Part > 0 {
			n = max(n, 1)
		}
		line := fit(bar.Label, labels) + "  " + strings.Repeat(" ", values-ansi.StringWidth(bar.Shown)) + bar.Shown
		if n > 0 {
			line += "  " + b.paint(strings.Repeat(b.bar, n))
		}
		out = append(out, line)
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("and %s more", humanize.Comma(int64(left))))
	}
	return out
}
