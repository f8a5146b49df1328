package browser

import (
	"strings"
	"testing"
)

// TestPages looks at every page of the demo, and at pages that are not there.
func TestPages(t *testing.T) {
	s, _ := demo(t)
	for _, c := range []struct{ name, path, sees string }{
		{"timeline", "/", "Before the agent"},
		{"timeline-filtered", "/?q=words", "Filter"},
		{"timeline-wrong-filter", "/?q=since:nonsense", "since"},
		{"record", "run:Format", "verified"},
		{"record-failed", "run:rm -r docs", "expected package"},
		{"record-side-by-side", "run:Format?view=split", "verified"},
		{"record-turn", "run:Leave out words", "words/stop.go"},
		{"draft", "run:Tidy", "TODO.md"},
		{"file", "/f/docs/usage.md", "What changed it"},
		{"file-compared", "/f/docs/usage.md?a=now&b=now", "What changed it"},
		{"file-blame", "/f/docs/usage.md?blame=yes", "Words"},
		{"drafts", "/drafts", "tidy"},
		{"race", "/race/greet", "greet.2"},
		{"session", "/sessions/5f0c2a7e-demo", "Write a test for empty input"},
		{"inbox", "/inbox", "read-files"},
		{"health", "/health", "Doctor"},
		{"no-such-record", "/r/2020010100000000-0", "Back to the timeline"},
		{"no-such-file", "/f/no/such/file", "Back to the timeline"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := s.open(t, hand{script: true})
			if what, is := strings.CutPrefix(c.path, "run:"); is {
				what, query, _ := strings.Cut(what, "?")
				b.visit(strings.TrimSuffix("/r/"+b.recordAbout(what)+"?"+query, "?"))
			} else if c.path != "/" {
				b.visit(c.path)
			}
			if strings.HasPrefix(c.name, "no-such") {
				b.forgive("404")
			}
			b.sees(c.sees)
			b.looked(c.name)
		})
	}
}

// recordAbout is the id of the newest record on the timeline whose row has a text.
func (b *tab) recordAbout(text string) string {
	b.Helper()
	return eval[string](b, `([...document.querySelectorAll('li[id^="r-"]')].find(e => e.textContent.includes(`+quoted(text)+`)) || {id: 'r-none'}).id.slice(2)`)
}
