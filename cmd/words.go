package cmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// count is "1 file", "3 files", "1,204 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	plural := noun + "s"
	if strings.HasSuffix(noun, "y") {
		plural = strings.TrimSuffix(noun, "y") + "ies"
	} else if strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "ch") {
		plural = noun + "es"
	}
	return humanize.Comma(int64(n)) + " " + plural
}

// size is a byte count for people: "1.5 MiB".
func size(n int64) string {
	if n < 0 {
		n = 0
	}
	return humanize.IBytes(uint64(n))
}

// ago is how long t lies back: "3 minutes ago". The future, which only a clock
// that was set back can make, is named as such.
func (s *session) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return humanize.RelTime(t, s.env.Now(), "ago", "from now")
}

// clock is t in the user's zone, to the second.
func (s *session) clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(s.env.Location).Format("2006-01-02 15:04:05 -07:00")
}

// span is a duration for people: "1.2 s", "3m 20s".
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
}

// roughly is a span without fractions of seconds: "3 s".
func roughly(d time.Duration) string {
	if d >= time.Second && d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return span(d)
}

// list is "a", "a and b", "a, b and c".
func list(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
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
