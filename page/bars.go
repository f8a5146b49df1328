package page

import "time"

// Bar is a value of a plot as a line of text has it.
type Bar struct {
	Label string  // what it is of
	Shown string  // the value in its unit
	Part  float64 // of the largest value of the plot, 0 to 1
}

// Bars are the values of a plot for who draws text: at most most of its points, then what is expected and the
// limit. Of a line they are spread over the whole of it; else they are the newest, or the first where the points
// have no time. left is how many are not among them for that.
func (p *Plot) Bars(most int, loc *time.Location) (bars []Bar, left int) {
	add := func(label string, v float64) {
		part := 0.0
		if all := p.Most(); all > 0 {
			part = v / all
		}
		bars = append(bars, Bar{label, p.Shown(v), part})
	}
	list, left := p.some(most)
	for _, at := range list {
		add(p.label(at, loc), at.Value)
	}
	for _, at := range p.Ahead {
		add(p.label(at, loc)+", expected", at.Value)
	}
	if p.Limit > 0 {
		add("at most", p.Limit)
	}
	return bars, left
}

// some are at most most points; most is 2 or more.
func (p *Plot) some(most int) (list []Point, left int) {
	n := len(p.Points)
	switch {
	case n <= most:
		return p.Points, 0
	case p.Line:
		for i := range most {
			list = append(list, p.Points[i*(n-1)/(most-1)])
		}
		return list, 0
	case p.Points[0].At.IsZero():
		return p.Points[:most], n - most
	}
	return p.Points[n-most:], n - most
}
