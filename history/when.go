package history

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"decree/project"
)

var (
	rfcForm   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`)
	dayForm   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2})?$`)
	clockForm = regexp.MustCompile(`^[0-9]{2}:[0-9]{2}$`)
)

// ParseTime reads a TIME of the command line, seen from now in loc:
//
//	2026-11-20T14:30:00Z, ...+02:00     RFC 3339, any offset
//	2026-11-20                          the start of that day in loc
//	2026-11-20 14:30                    that minute in loc
//	14:30                               today
//	90s ago, 15m ago, 2h ago, 3d ago, 1w ago
//	yesterday                           the start of the day before today
//
// Anything else, and a local time that no clock in loc showed, is an error of
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
	case clockForm.MatchString(s):
		t, err = localTime(fmt.Sprintf("%04d-%02d-%02d %s", year, month, day, s), loc)
	case s == "yesterday":
		t = time.Date(year, month, day-1, 0, 0, 0, 0, loc)
	case strings.HasSuffix(s, " ago"):
		var d time.Duration
		if d, err = project.ParseAge(strings.TrimSuffix(s, " ago")); err == nil {
			t = now.Add(-d)
		}
	default:
		err = fmt.Errorf("not a time that decree knows")
	}
	if err == nil && (t.Year() < 1700 || t.Year() > 2200) {
		err = fmt.Errorf("too far away")
	}
	if err != nil {
		return time.Time{}, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("time %q", clip(s)), Err: err,
			Advice: "write 2026-11-20, '2026-11-20 14:30', 14:30, 2026-11-20T14:30:00+01:00, '2h ago' (s, m, h, d, w) or yesterday"}
	}
	return t, nil
}

// localTime refuses what time.ParseInLocation would silently shift: a minute
// that a change to summer time leaves out.
func localTime(s string, loc *time.Location) (time.Time, error) {
	form := "2006-01-02 15:04"
	if len(s) == len("2006-01-02") {
		form = "2006-01-02"
	}
	t, err := time.ParseInLocation(form, s, loc)
	if err != nil {
		return t, fmt.Errorf("no such date or time of day")
	}
	if t.Format(form) == s {
		return t, nil
	}
	if form == "2006-01-02" {
		// The clocks go forward at midnight: the day begins when they have.
		for t.Format(form) < s {
			t = t.Add(15 * time.Minute)
		}
		return t, nil
	}
	return t, fmt.Errorf("no clock in %s showed it", loc)
}
