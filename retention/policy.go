package retention

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Policy is how long records of one reason are kept: each that one of its rules
// keeps, whatever the others say. The zero Policy keeps none beyond what is always
// kept.
type Policy struct {
	All                          bool          // every record
	Last, Daily, Weekly, Monthly int           // that many newest, and newest of a day, ISO week, month
	MaxAge                       time.Duration // those that are not older; 0: no such rule
}

// Record is what has to be known of a record.
type Record struct {
	ID       string
	Reason   string
	Started  time.Time
	Order    int64 // of two records the one that was made first has the lesser; 0: Started says it
	Seq      int
	Open     bool
	Part     bool // of what is not over: it was made inside such a record, such a one inside of it, or it is a draft that was published there
	Labelled bool
	Newer    bool     // a newer decree wrote it: this one cannot know what it holds
	Draft    bool     // work of an isolated run that waits to be published
	UnderWay bool     // of a message that the queue has not ended: its record says how far it came
	Outbox   bool     // it did not succeed, and messages lie in its outbox
	Redo     bool     // an undo, and 'redo' can bring again what it took back
	Needs    []string // the records without which it cannot be undone
}

// compare orders by Order, then time in nanoseconds, then sequence, then id.
func (r *Record) compare(o *Record) int {
	return cmp.Or(cmp.Compare(r.Order, o.Order), r.Started.Compare(o.Started), cmp.Compare(r.Seq, o.Seq), cmp.Compare(r.ID, o.ID))
}

// Verdict is what is to become of a record.
type Verdict struct {
	Record
	Keep bool
	// Fixed: neither a policy nor a cap on the size can take it.
	Fixed bool
	// Why are the rules that keep it, or the one that does not.
	Why []string
}

// Decide returns a verdict on each record, oldest first. A reason that policies
// lack is kept whole. loc is whose days are meant.
func Decide(records []Record, policies map[string]Policy, loc *time.Location) []Verdict {
	d := &decision{list: make([]Verdict, len(records)), byID: make(map[string]int, len(records))}
	for i, r := range records {
		d.list[i].Record = r
	}
	slices.SortFunc(d.list, func(a, b Verdict) int { return a.compare(&b.Record) })
	for i := range d.list {
		d.byID[d.list[i].ID] = i
	}
	d.fix()
	d.rules(policies, loc)
	d.keepNeeded()
	return d.list
}

type decision struct {
	list []Verdict // oldest first
	byID map[string]int
}

func (v *Verdict) keep(why string) {
	v.Keep = true
	v.Why = append(v.Why, why)
}

// fix keeps what is kept in any case.
func (d *decision) fix() {
	newest := map[string]bool{}
	for i := range slices.Backward(d.list) {
		v := &d.list[i]
		for _, rule := range []struct {
			holds bool
			why   string
		}{
			{v.Open, "open"},
			{v.Part, "made inside a record that is not over, or around one"},
			{v.Labelled, "labelled"},
			{v.Newer, "written by a newer decree"},
			{v.Draft, "a draft that waits"},
			{v.UnderWay, "its message is not in done or dead yet"},
			{v.Outbox, "messages in its outbox"},
			{!newest[""], "the newest record"},
			{!newest[v.Reason] && (v.Reason == "publish" || v.Reason == "restore"), "the newest " + v.Reason},
		} {
			if rule.holds {
				v.keep(rule.why)
				v.Fixed = true
			}
		}
		newest[""], newest[v.Reason] = true, true
	}
	for _, i := range d.closure(func(v *Verdict) bool { return v.Fixed }) {
		d.list[i].Fixed = true
	}
}

// rules applies each reason's policy.
func (d *decision) rules(policies map[string]Policy, loc *time.Location) {
	byReason := map[string][]*Verdict{} // newest first
	for i := range slices.Backward(d.list) {
		v := &d.list[i]
		byReason[v.Reason] = append(byReason[v.Reason], v)
		if v.Redo {
			v.keep("'decree redo' can bring again what it took back")
		}
	}
	for reason, list := range byReason {
		p, known := policies[reason]
		if !known || p.All {
			for _, v := range list {
				v.keep("all of " + reason)
			}
			continue
		}
		p.apply(list, d.list[len(d.list)-1].Started, loc)
	}
}

// apply goes through the records of one reason, newest first.
func (p Policy) apply(list []*Verdict, newest time.Time, loc *time.Location) {
	buckets := []bucket{
		{n: p.Daily, unit: "day", of: func(t time.Time) string { return t.Format("2006-01-02") }},
		{n: p.Weekly, unit: "week", of: isoWeek},
		{n: p.Monthly, unit: "month", of: func(t time.Time) string { return t.Format("2006-01") }},
	}
	for i, v := range list {
		if p.MaxAge > 0 && newest.Sub(v.Started) <= p.MaxAge {
			v.keep("not older than " + span(p.MaxAge))
		}
		if i < p.Last {
			v.keep(fmt.Sprintf("among the last %d of %s", p.Last, v.Reason))
		}
		for b := range buckets {
			if in, first := buckets[b].take(v.Started.In(loc)); first {
				v.keep("the newest of " + buckets[b].unit + " " + in)
			}
		}
		v.lose(p.reach(v.Reason))
	}
}

// lose says why no rule keeps v, unless one does.
func (v *Verdict) lose(why string) {
	if !v.Keep {
		v.Why = []string{why}
	}
}

// reach is what the numbers of a policy keep, in words.
func (p Policy) reach(reason string) string {
	numbers := p.Last + p.Daily + p.Weekly + p.Monthly
	switch {
	case p.MaxAge > 0 && numbers == 0:
		return "older than " + span(p.MaxAge)
	case p.MaxAge > 0 || numbers > p.Last:
		return "kept by no rule for " + reason
	case p.Last > 0:
		return fmt.Sprintf("not among the last %d of %s", p.Last, reason)
	}
	return "none of " + reason + " are kept"
}

// bucket keeps the newest record of each of n spans of time that have one.
type bucket struct {
	n    int
	unit string
	of   func(time.Time) string
	seen []string
}

// take is given the records newest first by their order. Their times may be out of that order, where the clock was
// wrong for a while.
func (b *bucket) take(t time.Time) (in string, first bool) {
	in = b.of(t)
	if len(b.seen) >= b.n || slices.Contains(b.seen, in) {
		return in, false
	}
	b.seen = append(b.seen, in)
	return in, true
}

func isoWeek(t time.Time) string {
	year, week := t.ISOWeek()
	return fmt.Sprintf("%d-W%02d", year, week)
}

// span is an age as a config has it.
func span(d time.Duration) string {
	for _, u := range []struct {
		name string
		of   time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if d%u.of == 0 {
			return fmt.Sprintf("%d%s", d/u.of, u.name)
		}
	}
	return fmt.Sprintf("%ds", int64(d/time.Second))
}

// keepNeeded keeps what the kept ones need.
func (d *decision) keepNeeded() {
	for _, i := range d.closure(func(v *Verdict) bool { return v.Keep }) {
		v := &d.list[i]
		if !v.Keep {
			v.Keep, v.Why = true, nil
		}
		v.Why = append(v.Why, "needed to undo "+d.needer(i))
	}
}

// closure are the records that the picked ones need and that were not picked.
func (d *decision) closure(pick func(*Verdict) bool) []int {
	var todo, found []int
	seen := map[int]bool{}
	for i := range d.list {
		if pick(&d.list[i]) {
			todo = append(todo, i)
			seen[i] = true
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, id := range d.list[i].Needs {
			if j, known := d.byID[id]; known && !seen[j] {
				seen[j] = true
				todo, found = append(todo, j), append(found, j)
			}
		}
	}
	slices.Sort(found)
	return found
}

// needer is the oldest record that needs i and stays.
func (d *decision) needer(i int) string {
	for k := range d.list {
		if slices.Contains(d.list[k].Needs, d.list[i].ID) && d.list[k].Keep {
			return d.list[k].ID
		}
	}
	return "a later record"
}
