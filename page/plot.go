package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"decree/view"
)

// Unit says what the values of a plot are.
type Unit string

// The units.
const (
	Bytes   Unit = "bytes"
	Seconds Unit = "seconds"
	Things  Unit = "number" // of things; Plot.Noun names one
)

// Point is a value, at a time or of what Name says; or both.
type Point struct {
	At    time.Time
	Name  string
	Value float64
}

// Plot is a series of numbers to be shown, in order. It has no HTML in it: a terminal draws the
// same one as bars.
type Plot struct {
	Title  string
	Words  string // what it shows, in a sentence or two
	Unit   Unit
	Noun   string // of a Things: "run"
	Line   bool   // a line over time, else bars side by side
	Points []Point
	Ahead  []Point // what is to be expected, after the last point
	Limit  float64 // a value that must not be passed; 0: none
}

// Shown is a value in the plot's unit: "1.5 MiB", "2.0 s", "3 runs".
func (p *Plot) Shown(v float64) string {
	switch p.Unit {
	case Bytes:
		return view.Size(int64(v))
	case Seconds:
		return view.Span(time.Duration(v * float64(time.Second)))
	}
	return view.Count(int(v), p.Noun)
}

// short is Shown for an axis.
func (p *Plot) short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case p.Unit == Things:
		return humanize.Comma(int64(v))
	}
	return p.Shown(v)
}

// label is what a point is called.
func (p *Plot) label(at Point, loc *time.Location) string {
	if at.Name != "" || at.At.IsZero() {
		return at.Name
	}
	return dayOf(at, loc)
}

func dayOf(at Point, loc *time.Location) string {
	if at.At.IsZero() {
		return ""
	}
	return at.At.In(loc).Format("2 Jan 2006")
}

// Most is the largest value that is to be seen.
func (p *Plot) Most() float64 {
	most := p.Limit
	for _, list := range [][]Point{p.Points, p.Ahead} {
		for _, at := range list {
			most = max(most, at.Value)
		}
	}
	return most
}

// The measures of a drawing, in its own units.
const (
	plotWidth, plotHeight                    = 480.0, 200.0
	plotLeft, plotRight, plotTop, plotBottom = 64.0, 8.0, 10.0, 24.0
)

// Draw draws a plot with its table.
func (p *Plot) Draw(loc *time.Location) template.HTML {
	b := []byte(`<figure class="plot"><figcaption><strong>`)
	b = append(appendText(b, p.Title), "</strong> "...)
	b = append(appendText(b, p.Words), "</figcaption>\n"...)
	if len(p.Points) == 0 {
		return template.HTML(append(b, "<p class=\"note\">Nothing to show yet.</p></figure>"...))
	}
	b = append(b, `<svg viewBox="0 0 480 200" role="img" aria-label="`...)
	b = append(appendAttribute(b, view.OneLine(p.Title)+". The table has the numbers."), `">`...)
	d := p.scale()
	b = d.appendAxes(b, loc)
	if p.Line {
		b = d.appendLine(b)
	} else {
		b = d.appendBars(b, loc)
	}
	b = append(b, "</svg>\n"...)
	return template.HTML(append(p.appendTable(b, loc), "</figure>\n"...))
}

// scaled is a plot with the measures of its axes.
type scaled struct {
	*Plot
	top      float64 // the value at the upper edge
	step     float64
	from, to time.Time
}

func (p *Plot) scale() *scaled {
	d := &scaled{Plot: p}
	d.step = niceStep(p.Most()/3, p.Unit)
	d.top = max(d.step, math.Ceil(p.Most()/d.step)*d.step)
	d.from, d.to = p.Points[0].At, p.Points[len(p.Points)-1].At
	if n := len(p.Ahead); n > 0 {
		d.to = p.Ahead[n-1].At
	}
	return d
}

// niceStep is a round number not below least: 1, 2 or 5 times a power of ten, or of two
// for bytes.
func niceStep(least float64, unit Unit) float64 {
	if least <= 0 {
		return 1
	}
	if unit == Bytes {
		return math.Pow(2, math.Ceil(math.Log2(least)))
	}
	size := math.Pow(10, math.Floor(math.Log10(least)))
	for _, n := range []float64{1, 2, 5, 10} {
		if n*size >= least {
			if unit == Things {
				return max(1, n*size)
			}
			return n * size
		}
	}
	return 10 * size
}

func (d *scaled) y(v float64) float64 {
	return plotHeight - plotBottom - v/d.top*(plotHeight-plotTop-plotBottom)
}

// x is the middle of point i, or of a time.
func (d *scaled) x(i int, at time.Time) float64 {
	wide := plotWidth - plotLeft - plotRight
	if d.Line {
		if all := d.to.Sub(d.from); all > 0 {
			return plotLeft + wide*float64(at.Sub(d.from))/float64(all)
		}
		return plotLeft + wide/2
	}
	return plotLeft + wide*(float64(i)+0.5)/float64(len(d.Points))
}

func (d *scaled) appendAxes(b []byte, loc *time.Location) []byte {
	for v := 0.0; v <= d.top*1.001; v += d.step {
		b = fmt.Appendf(b, `<path class="grid" d="M%.0f %.1fH%.0f"/><text class="y" x="%.0f" y="%.1f">`, plotLeft, d.y(v), plotWidth-plotRight, plotLeft-8, d.y(v)+4)
		b = append(appendText(b, d.short(v)), "</text>"...)
	}
	if d.Limit > 0 {
		b = fmt.Appendf(b, `<path class="limit" d="M%.0f %.1fH%.0f"/>`, plotLeft, d.y(d.Limit), plotWidth-plotRight)
	}
	first, last := d.Points[0], d.Points[len(d.Points)-1]
	if n := len(d.Ahead); n > 0 {
		last = d.Ahead[n-1]
	}
	b = fmt.Appendf(b, `<text class="x" x="%.0f" y="%.0f">`, plotLeft, plotHeight-6)
	b = append(appendText(b, dayOf(first, loc)), "</text>"...)
	if len(d.Points) > 1 || len(d.Ahead) > 0 {
		b = fmt.Appendf(b, `<text class="x end" x="%.0f" y="%.0f">`, plotWidth-plotRight, plotHeight-6)
		b = append(appendText(b, dayOf(last, loc)), "</text>"...)
	}
	return b
}

func (d *scaled) appendLine(b []byte) []byte {
	var line []byte
	for i, at := range d.Points {
		line = fmt.Appendf(line, "%c%.1f %.1f", "ML"[min(i, 1)], d.x(i, at.At), d.y(at.Value))
	}
	last := d.Points[len(d.Points)-1]
	b = fmt.Appendf(b, `<path class="area" d="%sL%.1f %.1fH%.1fZ"/><path class="line" d="%s"/>`, line, d.x(0, last.At), d.y(0), d.x(0, d.from), line)
	b = fmt.Appendf(b, `<circle class="dot" cx="%.1f" cy="%.1f" r="3.5"/>`, d.x(0, last.At), d.y(last.Value))
	if len(d.Ahead) == 0 {
		return b
	}
	b = fmt.Appendf(b, `<path class="ahead" d="M%.1f %.1f`, d.x(0, last.At), d.y(last.Value))
	for _, at := range d.Ahead {
		b = fmt.Appendf(b, "L%.1f %.1f", d.x(0, at.At), d.y(at.Value))
	}
	return append(b, `"/>`...)
}

func (d *scaled) appendBars(b []byte, loc *time.Location) []byte {
	wide := (plotWidth - plotLeft - plotRight) / float64(len(d.Points))
	bar := min(24, wide*0.75)
	for i, at := range d.Points {
		if at.Value == 0 {
			continue
		}
		y := min(d.y(at.Value), d.y(0)-1)
		b = fmt.Appendf(b, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"><title>`, d.x(i, at.At)-bar/2, y, bar, d.y(0)-y, min(2, bar/3))
		b = append(appendText(b, d.label(at, loc)+": "+d.Shown(at.Value)), "</title></rect>"...)
	}
	return b
}

// tableRows is how many points a table has; of more it has the last.
const tableRows = 60

func (p *Plot) appendTable(b []byte, loc *time.Location) []byte {
	list := p.Points
	b = append(b, "<details class=\"numbers\"><summary>Table</summary><table><thead><tr><th scope=\"col\">When or what<th scope=\"col\">"...)
	b = append(appendText(b, p.Title), "</thead><tbody>\n"...)
	if cut := len(list) - tableRows; cut > 0 {
		list = list[cut:]
		b = append(b, "<tr><td>Earlier<td>"+strconv.Itoa(cut)+" more\n"...)
	}
	for _, at := range list {
		b = append(appendText(append(b, "<tr><td>"...), p.label(at, loc)), "<td>"...)
		b = append(appendText(b, p.Shown(at.Value)), '\n')
	}
	for _, at := range p.Ahead {
		b = append(appendText(append(b, "<tr><td>"...), p.label(at, loc)), ", expected<td>"...)
		b = append(appendText(b, p.Shown(at.Value)), '\n')
	}
	return append(b, "</tbody></table></details>"...)
}
