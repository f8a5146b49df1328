package message

import "time"

// Schedule is a cron expression. It is safe for concurrent use.
type Schedule struct {
	text     string
	segments []string
	hourly   bool // the hour field begins with '*'
}

// ParseCron reads the five standard fields (minute, hour, day of month, month, day of
// week), divided by spaces or tabs: '*', numbers, ranges, steps over '*' and ranges,
// lists; jan..dec and sun..sat; 0 and 7 are Sunday. If both days are given, either will
// do, as in cron(8). Anything else, also @daily, seconds, years, L, W, # and ?, is an
// *Error, and so is an expression that no day of the next 40 years matches.
func ParseCron(text string) (*Schedule, error) { return parseCron(text) }

// Due says whether the minute of t, on the clock of t's location, is one to fire in.
// A minute that the clock skips in spring never is. One that it shows twice in autumn is
// due the first time only, unless the hour field begins with '*': such a job goes on
// through the repeated hour.
func (s *Schedule) Due(t time.Time) bool { return s.due(t) }

// Next returns the first minute after t's that is due, in t's location; zero if there is
// none within 40 years.
func (s *Schedule) Next(t time.Time) time.Time { return s.next(t) }

// String is the expression as it was written.
func (s *Schedule) String() string { return s.text }
