package page_test

import (
	"encoding/xml"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/page"
)

func TestPlot(t *testing.T) {
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	p := page.Plot{Title: "Space <b>\x1b", Words: "What is taken.", Unit: page.Bytes, Line: true, Limit: 4 << 20,
		Points: []page.Point{{At: at, Value: 1 << 20}, {At: at.AddDate(0, 0, 1), Value: 3 << 20}}, Ahead: []page.Point{{At: at.AddDate(0, 0, 2), Value: 4 << 20}}}
	out := string(p.Draw(time.UTC))
	svg := out[strings.Index(out, "<svg"):strings.Index(out, "</figure>")]
	svg = svg[:strings.Index(svg, "</svg>")+len("</svg>")]
	require.NoError(t, xml.Unmarshal([]byte(svg), new(struct{})), "a picture that is not well formed")
	require.NotContains(t, out, "<b>")
	require.NotContains(t, out, "\x1b")
	require.Contains(t, svg, "4.0 MiB")
	require.Contains(t, out, "<tr><td>20 Nov 2026<td>1.0 MiB\n<tr><td>21 Nov 2026<td>3.0 MiB\n<tr><td>22 Nov 2026, expected<td>4.0 MiB\n")
	require.NotContains(t, out, "NaN")

	for _, odd := range []page.Plot{
		{Title: "One", Unit: page.Seconds, Line: true, Points: []page.Point{{At: at, Value: 0}}},
		{Title: "Same", Unit: page.Things, Noun: "run", Line: true, Points: []page.Point{{At: at, Value: 1}, {At: at, Value: 1}}},
		{Title: "None", Unit: page.Things, Noun: "run"},
		{Title: "Many", Unit: page.Things, Noun: "run", Points: make([]page.Point, 500)},
	} {
		out := string(odd.Draw(time.UTC))
		require.NotRegexp(t, "NaN|Inf", out)
		require.LessOrEqual(t, strings.Count(out, "<tr>"), 63)
	}
}

func TestFacts(t *testing.T) {
	code := 1
	r := &history.Record{ID: "2026112214020000-0", Reason: history.Run, Status: history.StatusReverted, Cwd: "a<b>", Attempts: 2,
		Command: []string{"make", "<script>\x1b"}, Description: "one\ntwo <i>", Started: clock.Now.Add(-26 * time.Hour), ExitCode: &code,
		Files: 2, Bytes: 2048, Parent: "2026112214020000-1", Actor: history.Actor{User: "ann", Host: "<desk>", Agent: "claude", Turn: 3}}
	out := string(page.FactList(page.Facts(r, page.FactOptions{Clock: clock, Labels: []string{"good"}, Link: func(id string) string { return "/r/" + id }})))
	require.NotRegexp(t, "<script|<i>|<desk>|\x1b", out)
	for _, want := range []string{
		"one two &lt;i&gt;", "with exit status 1, after 2 attempts", "yesterday 18:00", `<a href="/r/2026112214020000-1">`, "ann@&lt;desk&gt;, claude, turn 3", "2 files, 2.0 KiB",
	} {
		require.Contains(t, out, want)
	}
	require.Equal(t, `<time datetime="2026-11-22T20:00:00Z" title="2026-11-22 20:00:00 +00:00">today 20:00</time>`, string(clock.Time(clock.Now)))
}

// TestStyleIsSmall holds what may be sent, together with the server's script: 40 KB.
func TestStyleIsSmall(t *testing.T) {
	require.Less(t, len(page.Style), 28<<10)
	require.Regexp(t, `^'sha256-[A-Za-z0-9+/]{43}='$`, page.StyleHash())
	require.NotRegexp(t, `url\(|@import|https?:`, page.Style)
	require.NotRegexp(t, regexp.MustCompile("(?i)</style"), page.Style)
}
