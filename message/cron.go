package message

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// Schedule is a cron expression. It is safe for concurrent use.
type Schedule struct {
	fields []string // the five, normalised
	hourly bool     // the hour field begins with '*'
}

// horizon is how far ahead Next looks. 29 February is a given day of the week once in 28
// years, or in 40 where a century that is no leap year lies between.
const horizon = 40 * 366 * 24 * time.Hour

// cronField is what may stand in one field.
type cronField struct {
	name  string
	least int
	most  int
	names []string // for the numbers from least up
}

var cronFields = []cronField{
	{name: "minute", most: 59},
	{name: "hour", most: 23},
	{name: "day of month", least: 1, most: 31},
	{name: "month", least: 1, most: 12, names: strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
	{name: "day of week", most: 7, names: strings.Fields("sun mon tue wed thu fri sat")},
}

// ParseCron reads the five standard fields (minute, hour, day of month, month, day of
// week), divided by spaces or tabs: '*', numbers, ranges, steps over '*' and ranges,
// lists; jan..dec and sun..sat; 0 and 7 are Sunday. If both days are given, either will
// do, as in cron(8), unless one begins with '*'. Anything else, also @daily, seconds, years, L, W, # and ?, is an
// *Error, and so is an expression that no day of the next 40 years matches.
func ParseCron(text string) (*Schedule, error) {
	s := &Schedule{fields: strings.Fields(text)}
	if len(s.fields) != len(cronFields) {
		return nil, &Error{Reason: fmt.Sprintf("cron %q: it needs five fields (minute hour day month weekday), and has %d", text, len(s.fields))}
	}
	for i, f := range cronFields {
		if err := f.check(&s.fields[i]); err != nil {
			return nil, &Error{Reason: fmt.Sprintf("cron %q: %s: %s", text, f.name, err)}
		}
	}
	s.hourly = strings.HasPrefix(s.fields[1], "*")
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, &Error{Reason: fmt.Sprintf("cron %q: there is no such day", text)}
	}
	return s, nil
}

// check refuses what is not standard, and writes names as numbers.
func (f cronField) check(text *string) error {
	items := strings.Split(*text, ",")
	for i, item := range items {
		span, step, stepped := strings.Cut(item, "/")
		if stepped {
			if n, ok := number(step); !ok || n < 1 || n > f.most {
				return fmt.Errorf("%q is not a step from 1 to %d", step, f.most)
			}
		}
		if span == "*" {
			continue
		}
		from, to, ranged := strings.Cut(span, "-")
		a, err := f.value(from)
		if err != nil {
			return err
		}
		if stepped && !ranged {
			return fmt.Errorf("%q: a step needs * or a range before it", item)
		}
		items[i] = fmt.Sprint(a)
		if !ranged {
			continue
		}
		b, err := f.value(to)
		if err != nil {
			return err
		}
		if b == 0 && f.most == 7 {
			b = 7 // the Sunday at the end of a week
		}
		if b < a {
			return fmt.Errorf("%q is a range that ends before it begins", span)
		}
		items[i] = fmt.Sprintf("%d-%d", a, b)
		if stepped {
			items[i] += "/" + step
		}
	}
	*text = strings.Join(items, ",")
	return nil
}

// value reads a number or a name.
func (f cronField) value(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.least + i, nil
	}
	n, ok := number(text)
	if !ok || n < f.least || n > f.most {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, f.least, f.most)
	}
	return n, nil
}

// Due says whether the minute of t, on the clock of t's location, is one to fire in.
// A minute that the clock skips in spring never is. One that it shows twice in autumn is
// due the first time only, unless the hour field begins with '*': such a job goes on
// through the repeated hour.
func (s *Schedule) Due(t time.Time) bool {
	return s.matches(t, s.fields...) && (s.hourly || !repeated(t))
}

// matches asks the library about fields of the expression; those not given match.
func (s *Schedule) matches(t time.Time, fields ...string) bool {
	segments := append([]string{"0"}, fields...) // of seconds
	t = t.Add(-time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	g := gronx.New()
	g.C.SetRef(t)
	due, err := g.SegmentsDue(segments)
	return err == nil && due
}

// Next returns the first minute after t's that is due, in t's location; zero if there is
// none within 40 years.
func (s *Schedule) Next(t time.Time) time.Time {
	end := t.Add(horizon)
	t = t.Truncate(time.Minute)
	for t = t.Add(time.Minute); t.Before(end); {
		hour, minute, _ := t.Clock()
		switch {
		case !s.matches(t, "*", "*", s.fields[2], s.fields[3], s.fields[4]):
			t = skip(t, 24*time.Hour-time.Duration(hour)*time.Hour-time.Duration(minute)*time.Minute)
		case !s.matches(t, "*", s.fields[1], "*", "*", "*"):
			t = skip(t, time.Hour-time.Duration(minute)*time.Minute)
		case !s.Due(t):
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// skip is t and d, but not beyond the next change of the clock: up to there the clock
// goes as time does.
func skip(t time.Time, d time.Duration) time.Time {
	next := t.Add(d)
	if _, change := t.ZoneBounds(); !change.IsZero() && change.Before(next) {
		return change
	}
	return next
}

// repeated says whether the clock of t's location showed t's minute once before, because
// it was put back since.
func repeated(t time.Time) bool {
	change, _ := t.ZoneBounds()
	if change.IsZero() {
		return false
	}
	_, now := t.Zone()
	_, before := change.Add(-time.Second).Zone()
	return t.Sub(change) < time.Duration(before-now)*time.Second
}
