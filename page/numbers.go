package page

import (
	"fmt"
	"math"
	"slices"
	"time"

	"decree/history"
	"decree/recorder"
	"decree/view"
)

// The measures of the plots of a history.
const (
	mostDays   = 180 // points of a series over time; of a longer one each stands for several days
	mostRuns   = 100 // the newest, of a series of runs
	leastDays  = 14  // that a series over time begins before today
	mostSizes  = 12  // the largest paths
	rateDays   = 30  // that the growth is taken from
	aheadDays  = 30  // what is expected where nothing bounds it
	farthest   = 366 // days ahead
	hoursOfDay = 24 * time.Hour
)

// Plots are the numbers of a history: its space over time and what is to be expected, runs a day, time and
// changes a run, and the largest paths. maxStore is the config's max_store in bytes, 0: none.
func Plots(u *recorder.Usage, maxStore int64, c Clock) []*Plot {
	n := &numbers{clock: c, usage: u, space: map[time.Time]int64{}, runs: map[time.Time]int{}}
	for i := range u.Records {
		n.add(&u.Records[i])
	}
	slices.SortFunc(n.newest, func(a, b *history.Record) int { return a.Started.Compare(b.Started) })
	n.newest = n.newest[max(0, len(n.newest)-mostRuns):]
	return []*Plot{n.spaceOverTime(maxStore), n.runsADay(), n.timeARun(), n.changesARun(), n.sizes()}
}

// numbers are sums over records.
type numbers struct {
	clock  Clock
	usage  *recorder.Usage
	first  time.Time           // day
	space  map[time.Time]int64 // bytes, by the day on which they came
	known  int64               // bytes in space
	runs   map[time.Time]int   // by day
	newest []*history.Record   // runs and turns
}

func (n *numbers) add(u *recorder.RecordUsage) {
	r := u.Record
	if r == nil {
		return
	}
	day := n.day(r.Started)
	if n.first.IsZero() || day.Before(n.first) {
		n.first = day
	}
	n.space[day] += u.Total()
	n.known += u.Total()
	if (r.Reason == history.Run || r.Reason == history.Turn) && r.Status != history.StatusOpen {
		n.runs[day]++
		n.newest = append(n.newest, r)
	}
}

func (n *numbers) day(t time.Time) time.Time {
	t = t.In(n.clock.Location)
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, n.clock.Location)
}

// days are the points of a series from the first day to today; value gives each its own.
func (n *numbers) days(value func(from, to time.Time) float64) (list []Point) {
	if n.first.IsZero() {
		return nil
	}
	today := n.day(n.clock.Now)
	first := today.AddDate(0, 0, 1-leastDays)
	if n.first.Before(first) {
		first = n.first
	}
	step := 1 + int(today.Sub(first)/hoursOfDay)/mostDays
	for day := first; !day.After(today); {
		next := day.AddDate(0, 0, step)
		list = append(list, Point{At: day, Value: value(day, next)})
		day = next
	}
	return list
}

// sumOf adds up the days of a period.
func sumOf[T int | int64](days map[time.Time]T, from, to time.Time) (sum T) {
	for ; from.Before(to); from = from.AddDate(0, 0, 1) {
		sum += days[from]
	}
	return sum
}

func (n *numbers) spaceOverTime(maxStore int64) *Plot {
	total := n.usage.Total()
	p := &Plot{Title: "Space", Unit: Bytes, Line: true, Limit: float64(maxStore)}
	at := max(0, total-n.known) // what is of no record was there from the beginning
	p.Points = n.days(func(from, to time.Time) float64 {
		at += sumOf(n.space, from, to)
		return float64(at)
	})
	p.Words = "What is kept takes " + view.Size(total) + ", shown by the day on which it came. " + n.forecast(p, total, maxStore)
	return p
}

// forecast says what is to be expected, and adds it to the plot.
func (n *numbers) forecast(p *Plot, total, maxStore int64) string {
	if len(p.Points) == 0 {
		return ""
	}
	today := n.day(n.clock.Now)
	days := min(rateDays, 1+int(today.Sub(n.first)/hoursOfDay))
	rate := float64(sumOf(n.space, today.AddDate(0, 0, 1-days), today.AddDate(0, 0, 1))) / float64(days)
	last := p.Points[len(p.Points)-1].At
	expect := func(in int) float64 {
		size := float64(total) + rate*float64(in)
		p.Ahead = []Point{{At: last.AddDate(0, 0, in), Value: size}}
		return size
	}
	pace := fmt.Sprintf("At the rate of the last %s", view.Count(days, "day"))
	switch left := float64(maxStore - total); {
	case maxStore > 0 && left <= 0:
		return "That is more than max_store, " + view.Size(maxStore) + ": what is always kept does not fit."
	case rate < 1:
		return "It has not grown in the last " + view.Count(days, "day") + "."
	case maxStore == 0:
		size := expect(aheadDays)
		return fmt.Sprintf("%s it is %s in %d days; max_store sets no bound.", pace, view.Size(int64(size)), aheadDays)
	case left/rate > farthest:
		expect(farthest)
		return fmt.Sprintf("%s max_store, %s, is more than a year away.", pace, view.Size(maxStore))
	default:
		in := max(1, int(math.Ceil(left/rate)))
		expect(in)
		p.Ahead[0].Value = float64(maxStore)
		return fmt.Sprintf("%s max_store, %s, is reached in about %s; then the oldest records go.", pace, view.Size(maxStore), view.Count(in, "day"))
	}
}

func (n *numbers) runsADay() *Plot {
	p := &Plot{Title: "Runs a day", Words: "Runs and turns that are kept.", Unit: Things, Noun: "run"}
	p.Points = n.days(func(from, to time.Time) float64 { return float64(sumOf(n.runs, from, to)) })
	if len(p.Points) > 1 {
		if step := int(p.Points[1].At.Sub(p.Points[0].At) / hoursOfDay); step > 1 {
			p.Title = fmt.Sprintf("Runs in %d days", step)
		}
	}
	return p
}

// ofRuns are points of the newest runs, each named.
func (n *numbers) ofRuns(value func(r *history.Record) float64) (list []Point) {
	for _, r := range n.newest {
		name := n.clock.Words(r.Started)
		if what := view.What(r); what != "" {
			name += ", " + cut(what)
		}
		list = append(list, Point{At: r.Started, Name: name, Value: value(r)})
	}
	return list
}

// cut shortens a text.
func cut(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

func (n *numbers) timeARun() *Plot {
	return &Plot{Title: "Time a run", Words: n.newestWords("How long the command took,"), Unit: Seconds,
		Points: n.ofRuns(func(r *history.Record) float64 { return r.Duration.Seconds() })}
}

func (n *numbers) changesARun() *Plot {
	return &Plot{Title: "Changes a run", Words: n.newestWords("How many files were changed,"), Unit: Things, Noun: "file",
		Points: n.ofRuns(func(r *history.Record) float64 {
			return float64(r.Changes.Created + r.Changes.Modified + r.Changes.Deleted)
		})}
}

func (n *numbers) newestWords(begin string) string {
	return fmt.Sprintf("%s of the newest %s.", begin, view.Count(len(n.newest), "run"))
}

func (n *numbers) sizes() *Plot {
	p := &Plot{Title: "Sizes", Words: "The paths of which most was ever recorded.", Unit: Bytes}
	for _, path := range n.usage.Paths[:min(len(n.usage.Paths), mostSizes)] {
		p.Points = append(p.Points, Point{Name: view.ShownPath(path.Path), Value: float64(path.Bytes)})
	}
	return p
}
