package backup

import (
	"fmt"
	"slices"
	"time"

	"decree/project"
)

// datedGeneration is a generation as rotation sees it.
type datedGeneration struct {
	Name string
	Time time.Time
}

// verdict is what becomes of a generation.
type verdict struct {
	datedGeneration
	// KeptBy are the rules that keep it: "newest", "last", "daily", "weekly", "monthly",
	// "pre-restore". None: it goes.
	KeptBy []string
}

// verdicts returns a verdict on each generation, oldest first, by their own times in UTC. A day's
// newest generation stands for that day; the one of the oldest day of an ISO week or of a month
// stands for that. What any rule keeps stays. The newest stays whatever the rules are, and so do
// all that restores have replaced, which no rule counts.
func verdicts(generations []datedGeneration, keep project.BackupRetention) []verdict {
	var counted []*verdict // newest first
	out := make([]verdict, len(generations))
	for i, g := range generations {
		out[i].datedGeneration = g
	}
	slices.SortStableFunc(out, func(a, b verdict) int { return a.Time.Compare(b.Time) })
	for i := range slices.Backward(out) {
		if v := &out[i]; IsPreRestore(v.Name) {
			v.KeptBy = append(v.KeptBy, "pre-restore")
		} else {
			counted = append(counted, v)
		}
	}
	if len(counted) > 0 {
		counted[0].KeptBy = append(counted[0].KeptBy, "newest")
	}
	days := firstOf(counted, func(t time.Time) string { return t.Format(time.DateOnly) })
	mark(counted, "last", keep.Last)
	mark(days, "daily", keep.Daily)
	mark(lastOf(days, isoWeek), "weekly", keep.Weekly)
	mark(lastOf(days, func(t time.Time) string { return t.Format("2006-01") }), "monthly", keep.Monthly)
	return out
}

// mark keeps the first n by a rule; all of them where n is negative.
func mark(list []*verdict, rule string, n int) {
	if n < 0 || n > len(list) {
		n = len(list)
	}
	for _, v := range list[:n] {
		v.KeptBy = append(v.KeptBy, rule)
	}
}

// firstOf returns of each span the first, lastOf the last; list is newest first.
func firstOf(list []*verdict, span func(time.Time) string) (out []*verdict) {
	last := ""
	for _, v := range list {
		if s := span(v.Time.UTC()); s != last {
			out, last = append(out, v), s
		}
	}
	return out
}

func lastOf(list []*verdict, span func(time.Time) string) (out []*verdict) {
	last := ""
	for _, v := range list {
		if s := span(v.Time.UTC()); s != last {
			out, last = append(out, v), s
		} else {
			out[len(out)-1] = v
		}
	}
	return out
}

func isoWeek(t time.Time) string {
	year, week := t.ISOWeek()
	return fmt.Sprintf("%d-%02d", year, week)
}
