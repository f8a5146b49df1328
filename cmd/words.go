package cmd

import (
	"fmt"
	"strings"
	"time"

	"decree/backup"
	"decree/view"
)

// The words that all faces have in common are view's.
var (
	count          = view.Count
	size           = view.Size
	span           = view.Span
	list           = view.List
	isCheckpoint   = view.IsCheckpoint
	changeWords    = view.ChangeWords
	changesInWords = view.ChangesInWords
	statusWords    = view.StatusWords
	draftState     = view.DraftState
	took           = view.Took
)

// ago is how long t lies back: "3 minutes ago". The future, which only a clock
// that was set back can make, is named as such.
func (s *session) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return backup.RelativeTime(t, s.env.Now(), "ago")
}

// clock is t in the user's zone, to the second.
func (s *session) clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(s.env.Location).Format("2006-01-02 15:04:05 -07:00")
}

// roughly is a span without fractions of seconds: "3 s".
func roughly(d time.Duration) string {
	if d >= time.Second && d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return span(d)
}

// wrap breaks text into lines of at most so many columns and puts indent before
// each. Lines of text that begin with a space are left as they are.
func wrap(text string, columns int, indent string) string {
	var b strings.Builder
	for _, par := range strings.Split(strings.TrimSpace(text), "\n") {
		if par == "" || strings.HasPrefix(par, " ") {
			b.WriteString(strings.TrimRight(indent+par, " ") + "\n")
			continue
		}
		column := 0
		for _, word := range strings.Fields(par) {
			n := width(word)
			switch {
			case column == 0:
				b.WriteString(indent)
				column = len(indent)
			case column+1+n > columns:
				b.WriteString("\n" + indent)
				column = len(indent)
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}
