// Growthchart draws how the time of operations grows with the files of a tree:
// it reads the output of the benchmarks, a file named by its one argument, and
// writes an SVG with logarithmic axes to stdout. Where a line is as steep as the
// dashed one, the time is proportional to the files. It is the processors' time,
// which other work on the machine disturbs less than the clock's.
package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// series are the lines, by the names of their benchmarks without the size.
var series = []line{
	{name: "first capture, new store", bench: "Cold"},
	{name: "restore, 1 % differ", bench: "Restore/changed=1%"},
	{name: "revert, 1 % changed", bench: "Revert/changed=1%"},
	{name: "checkpoint, 1 % changed", bench: "Checkpoint/changed=1%"},
	{name: "run, nothing changed", bench: "Run/changed=0%"},
	{name: "capture, nothing changed", bench: "Merge/changed=0%"},
	{name: "walk without a cache", bench: "Walk/changed=0%"},
}

// line is one operation: seconds by files.
type line struct {
	name, bench string
	points      []point
}

type point struct{ files, seconds float64 }

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "growthchart:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("want the name of one file of benchmark results")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	lines, err := read(f, args[0])
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, draw(lines))
	return err
}

// read takes the medians of the benchmarks that are drawn.
func read(r io.Reader, name string) ([]line, error) {
	times := map[string]map[float64][]float64{}
	in := benchfmt.NewReader(r, name)
	for in.Scan() {
		result, ok := in.Result().(*benchfmt.Result)
		if !ok {
			continue // a line of prose
		}
		bench, files := sizeOf(result.Name)
		seconds, timed := result.Value("cpu-sec/op")
		if files == 0 || !timed {
			continue
		}
		if times[bench] == nil {
			times[bench] = map[float64][]float64{}
		}
		times[bench][files] = append(times[bench][files], seconds)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	lines := slices.Clone(series)
	for i, l := range lines {
		for files, all := range times[l.bench] {
			slices.Sort(all)
			lines[i].points = append(lines[i].points, point{files, all[len(all)/2]})
		}
		if len(lines[i].points) < 2 {
			return nil, fmt.Errorf("%s: no results of Benchmark%s at two sizes", name, l.bench)
		}
		slices.SortFunc(lines[i].points, func(a, b point) int { return int(a.files - b.files) })
	}
	return lines, nil
}

// sizeOf splits a benchmark's name into the number after "files=" and the rest.
func sizeOf(n benchfmt.Name) (bench string, files float64) {
	base, parts := n.Parts()
	bench = string(base)
	for _, p := range parts {
		text := string(p)
		if value, ok := strings.CutPrefix(text, "/files="); ok {
			files, _ = strconv.ParseFloat(value, 64)
		} else if !strings.HasPrefix(text, "-") {
			bench += text
		}
	}
	return bench, files
}

// The picture, in pixels. The names stand to the right of the lines' ends.
const (
	width, height           = 860, 480
	left, right, top, below = 70, 300, 46, 54
	labelStep               = 17
)

// axis maps a value between two powers of ten to pixels.
type axis struct {
	from, to   int // exponents
	start, end float64
}

func (a axis) at(v float64) float64 {
	return a.start + (math.Log10(v)-float64(a.from))/float64(a.to-a.from)*(a.end-a.start)
}

func axes(lines []line) (x, y axis) {
	x = axis{99, -99, left, width - right}
	y = axis{99, -99, height - below, top}
	for _, l := range lines {
		for _, p := range l.points {
			x.from, x.to = min(x.from, int(math.Floor(math.Log10(p.files)))), max(x.to, int(math.Ceil(math.Log10(p.files))))
			y.from, y.to = min(y.from, int(math.Floor(math.Log10(p.seconds)))), max(y.to, int(math.Ceil(math.Log10(p.seconds))))
		}
	}
	return x, y
}

// head gives the colours for light and for dark surroundings.
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">
<title>CPU time of decree's operations against the files of the tree, logarithmic axes</title>
<style>
  .back { fill: #ffffff } text { fill: #24292f } .soft { fill: #57606a }
  .grid { stroke: #d0d7de; stroke-width: 1 } .guide { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 5 5 }
  .line { fill: none; stroke-width: 2.25; stroke-linejoin: round } .lead { stroke-width: 1; fill: none; opacity: .6 }
  .c0 { stroke: #b35900 } .c1 { stroke: #8250df } .c2 { stroke: #cf222e } .c3 { stroke: #0969da }
  .c4 { stroke: #1a7f37 } .c5 { stroke: #0f7b8a } .c6 { stroke: #6e7781 }
  .d0 { fill: #b35900 } .d1 { fill: #8250df } .d2 { fill: #cf222e } .d3 { fill: #0969da }
  .d4 { fill: #1a7f37 } .d5 { fill: #0f7b8a } .d6 { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117 } text { fill: #e6edf3 } .soft { fill: #9198a1 }
    .grid { stroke: #30363d } .guide { stroke: #6e7681 }
    .c0 { stroke: #f0883e } .c1 { stroke: #bc8cff } .c2 { stroke: #ff7b72 } .c3 { stroke: #58a6ff }
    .c4 { stroke: #3fb950 } .c5 { stroke: #39c5cf } .c6 { stroke: #9198a1 }
    .d0 { fill: #f0883e } .d1 { fill: #bc8cff } .d2 { fill: #ff7b72 } .d3 { fill: #58a6ff }
    .d4 { fill: #3fb950 } .d5 { fill: #39c5cf } .d6 { fill: #9198a1 }
  }
</style>
<rect class="back" width="100%%" height="100%%"/>
<text x="%d" y="24" font-size="15" font-weight="600">CPU time of an operation against the files of the tree</text>
`

func draw(lines []line) string {
	var b strings.Builder
	x, y := axes(lines)
	fmt.Fprintf(&b, head, width, height, left)
	for e := x.from; e <= x.to; e++ {
		at := x.at(math.Pow10(e))
		fmt.Fprintf(&b, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", at, top, at, height-below)
		fmt.Fprintf(&b, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", at, height-below+20, grouped(e))
	}
	for e := y.from; e <= y.to; e++ {
		at := y.at(math.Pow10(e))
		fmt.Fprintf(&b, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", left, at, width-right, at)
		fmt.Fprintf(&b, "<text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left-8, at+4, duration(e))
	}
	fmt.Fprintf(&b, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">files</text>\n", (left+width-right)/2, height-14)
	drawGuide(&b, x, y)
	drawLines(&b, lines, x, y)
	b.WriteString("</svg>\n")
	return b.String()
}

// drawGuide draws a time proportional to the files, through the lower corner.
func drawGuide(b *strings.Builder, x, y axis) {
	decades := min(x.to-x.from, y.to-y.from)
	x2, y2 := math.Pow10(x.from+decades), math.Pow10(y.from+decades)
	fmt.Fprintf(b, "<line class=\"guide\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x.at(math.Pow10(x.from)), y.at(math.Pow10(y.from)), x.at(x2), y.at(y2))
	fmt.Fprintf(b, "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" font-size=\"12\">dashed: twice the files, twice the time</text>\n", x.at(math.Pow10(x.from))+64, y.at(math.Pow10(y.from))-8)
}

func drawLines(b *strings.Builder, lines []line, x, y axis) {
	places := labelPlaces(lines, y)
	for i, l := range lines {
		var path []string
		for _, p := range l.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.files), y.at(p.seconds)))
		}
		fmt.Fprintf(b, "<polyline class=\"line c%d\" points=\"%s\"/>\n", i, strings.Join(path, " "))
		for _, p := range l.points {
			fmt.Fprintf(b, "<circle class=\"d%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", i, x.at(p.files), y.at(p.seconds))
		}
		end := l.points[len(l.points)-1]
		fmt.Fprintf(b, "<polyline class=\"lead c%d\" points=\"%.1f,%.1f %.1f,%.1f\"/>\n", i, x.at(end.files)+5, y.at(end.seconds), x.at(end.files)+22, places[i])
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\">%s: %s</text>\n", x.at(end.files)+26, places[i]+4, l.name, took(end.seconds))
	}
}

// labelPlaces keeps the names apart: each as near to its line's end as those
// above it allow, all moved up where they would leave the picture.
func labelPlaces(lines []line, y axis) []float64 {
	order := make([]int, len(lines))
	places := make([]float64, len(lines))
	for i, l := range lines {
		order[i], places[i] = i, y.at(l.points[len(l.points)-1].seconds)
	}
	slices.SortFunc(order, func(a, b int) int { return int(places[a] - places[b]) })
	for k := 1; k < len(order); k++ {
		places[order[k]] = max(places[order[k]], places[order[k-1]]+labelStep)
	}
	for k, limit := len(order)-1, float64(height-below); k >= 0 && places[order[k]] > limit; k-- {
		places[order[k]] = limit
		limit -= labelStep
	}
	return places
}

// grouped is a power of ten with commas.
func grouped(e int) string {
	digits := "1" + strings.Repeat("0", e)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func duration(e int) string {
	switch {
	case e >= 0:
		return strconv.Itoa(int(math.Pow10(e))) + " s"
	case e >= -3:
		return strconv.Itoa(int(math.Pow10(e+3))) + " ms"
	}
	return strconv.Itoa(int(math.Pow10(e+6))) + " µs"
}

func took(seconds float64) string {
	if seconds >= 1 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%.0f ms", seconds*1e3)
}
