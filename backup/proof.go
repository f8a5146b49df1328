package backup

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// String says what the proof has found: "restored 5,120 of 5,120 files of 2026-11-20T03:00Z in 4.1 s", and
// what was wrong first.
func (p Proof) String() string {
	text := p.Result()
	if !p.OK && len(p.Problems) > 0 {
		text += ": " + p.Problems[0]
		if more := len(p.Problems) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
	}
	return text
}

// Result is String without what was wrong.
func (p Proof) Result() string {
	when := p.Generation
	if t, ok := TimeOf(p.Generation); ok {
		when = t.UTC().Format("2006-01-02T15:04Z")
	}
	text := fmt.Sprintf("restored %s of %s files of %s in %.1f s", humanize.Comma(int64(p.Files)), humanize.Comma(int64(p.Of)), when,
		(time.Duration(p.Duration) * time.Millisecond).Seconds())
	if !p.Whole {
		text += ", a sample"
	}
	return text
}
