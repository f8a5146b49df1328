package history

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"decree/project"
)

var (
	rfcForm   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`)
	dayForm   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}(:[0-9]{2})?)?$`)
	zoneForm  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(:[0-9]{2})? [+-][0-9]{2}:[0-9]{2}$`)
	clockForm = regexp.MustCompile(`^[0-9]{2}:[0-9]{2}(:[0-9]{2})?$`)
	spanForm  = regexp.MustCompile(`^(an?|[0-9]{1,9}) (second|minute|hour|day|week|month|year)s? (ago|from now)$`)
)

// spans are the units of times in words. Months and years are those of the times that
// lists show, so that a record is found by what they say of it.
var spans = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	"week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour, "year": 360 * 24 * time.Hour}

// ParseTime reads a TIME of the command line, seen from now in loc:
//
//	2026-11-20T14:30:00Z, ...+02:00     RFC 3339, any offset
//	2026-11-20                          the start of that day in loc
//	2026-11-20 14:30, ... 14:30:05      that minute or second in loc
//	2026-11-20 14:30:05 +02:00          the same with an offset
//	14:30, 14:30:05                     today
//	90s ago, 15m ago, 2h ago, 3d ago, 1w ago
//	2 hours ago, an hour ago            second, minute, hour, day, week, month (30 days), year (360 days)
//	1 day from now                      where a clock that was ahead made records
//	now
//	yesterday                           the start of the day before today
//
// These are also all forms in which decree prints times. Anything else, and a local time that no clock in loc showed, is an error of
// kind Usage with an example.
func ParseTime(s string, now time.Time, loc *time.Location) (time.Time, error) {
	now = now.In(loc)
	year, month, day := now.Date()
	var t time.Time
	var err error
	switch {
	case rfcForm.MatchString(s):
		t, err = time.Parse(time.RFC3339Nano, s)
	case dayForm.MatchString(s):
		t, err = localTime(s, loc)
	case zoneForm.MatchString(s):
		t, err = time.Parse("2006-01-02 15:04:05 -07:00"[:len(s)-len(" -07:00")]+" -07:00", s)
	case clockForm.MatchString(s):
		t, err = localTime(fmt.Sprintf("%04d-%02d-%02d %s", year, month, day, s), loc)
	case s == "yesterday":
		t = time.Date(year, month, day-1, 0, 0, 0, 0, loc)
	case s == "now":
		t = now
	case spanForm.MatchString(s):
		t, err = inWords(spanForm.FindStringSubmatch(s), now)
	case strings.HasSuffix(s, " ago"):
		var d time.Duration
		if d, err = project.ParseAge(strings.TrimSuffix(s, " ago")); err == nil {
			t = now.Add(-d)
		}
	default:
		err = fmt.Errorf("not a time that decree understands")
	}
	if err == nil && (t.Year() < firstYear || t.Year() > lastYear) {
		err = fmt.Errorf("too far in the past or the future")
	}
	if err != nil {
		return time.Time{}, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("time %q", clip(s)), Err: err,
			Advice: "write 2026-11-20, '2026-11-20 14:30', 14:30, 2026-11-20T14:30:00+01:00, '2h ago' (s, m, h, d, w), '2 hours ago' or yesterday"}
	}
	return t, nil
}

// inWords is what spanForm matched: a number, a unit, a direction.
func inWords(m []string, now time.Time) (time.Time, error) {
	n := int64(1)
	if m[1][0] != 'a' {
		n, _ = strconv.ParseInt(m[1], 10, 64)
	}
	unit := spans[m[2]]
	if n > int64((1<<63-1)/unit) {
		return now, fmt.Errorf("too far in the past or the future")
	}
	if m[3] == "ago" {
		n = -n
	}
	return now.Add(time.Duration(n) * unit), nil
}

// localTime refuses what time.ParseInLocation would silently shift: a minute
// that a change to summer time leaves out.
func localTime(s string, loc *time.Location) (time.Time, error) {
	form := "2006-01-02 15:04:05"[:len(s)]
	t, err := time.ParseInLocation(form, s, loc)
	if err != nil {
		return t, fmt.Errorf("no such date or time of day")
	}
	if t.Format(form) == s {
		return t, nil
	}
	if len(form) == len("2006-01-02") {
		// The clocks go forward at midnight: the day begins when they have.
		for t.Format(form) < s {
			t = t.Add(15 * time.Minute)
		}
		return t, nil
	}
	return t, fmt.Errorf("the clocks in %s skipped that time", loc)
}

// A record's times lie in these years: beyond them nanoseconds do not fit 64 bits,
// and order is by nanoseconds.
const firstYear, lastYear = 1700, 2200

// Recordable returns t, or the time nearest to it that a record can hold: a record
// made while the clock is wrong by centuries must be readable like any other. A day
// is left above it, since the start of a record comes after the one before.
func Recordable(t time.Time) time.Time {
	first := time.Date(firstYear, time.January, 2, 0, 0, 0, 0, time.UTC)
	last := time.Date(lastYear, time.December, 31, 0, 0, 0, 0, time.UTC)
	switch {
	case t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t
}
