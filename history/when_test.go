package history

import (
	"testing"
	"time"

	"decree/project"

	"github.com/dustin/go-humanize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones here")
	}
	now := time.Date(2026, 11, 21, 7, 1, 59, 5, berlin)
	local := func(y int, m time.Month, d, h, min int) time.Time { return time.Date(y, m, d, h, min, 0, 0, berlin) }
	for s, want := range map[string]time.Time{
		"2026-11-20T14:30:00Z":           time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC),
		"2026-11-20T14:30:00+05:30":      time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
		"2026-11-20T14:30:00.123456789Z": time.Date(2026, 11, 20, 14, 30, 0, 123456789, time.UTC),
		"2026-11-20":                     local(2026, 11, 20, 0, 0),
		"2026-11-20 14:30":               local(2026, 11, 20, 14, 30),
		"2026-07-01 14:30":               local(2026, 7, 1, 14, 30),
		"14:30":                          local(2026, 11, 21, 14, 30),
		"00:00":                          local(2026, 11, 21, 0, 0),
		"yesterday":                      local(2026, 11, 20, 0, 0),
		"90s ago":                        now.Add(-90 * time.Second),
		"15m ago":                        now.Add(-15 * time.Minute),
		"2h ago":                         now.Add(-2 * time.Hour),
		"3d ago":                         now.Add(-72 * time.Hour),
		"1w ago":                         now.Add(-168 * time.Hour),
		"0s ago":                         now,
		"2026-11-20 14:30:05":            local(2026, 11, 20, 14, 30).Add(5 * time.Second),
		"2026-11-20 14:30:05 -02:00":     time.Date(2026, 11, 20, 16, 30, 5, 0, time.UTC),
		"2026-11-20 14:30 +05:30":        time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
		"14:30:05":                       local(2026, 11, 21, 14, 30).Add(5 * time.Second),
		"now":                            now,
		"2 hours ago":                    now.Add(-2 * time.Hour),
		"an hour ago":                    now.Add(-time.Hour),
		"a minute ago":                   now.Add(-time.Minute),
		"1 second ago":                   now.Add(-time.Second),
		"3 days ago":                     now.Add(-72 * time.Hour),
		"2 weeks ago":                    now.Add(-14 * 24 * time.Hour),
		"1 month ago":                    now.Add(-30 * 24 * time.Hour),
		"2 years ago":                    now.Add(-720 * 24 * time.Hour),
		"1 year from now":                now.Add(360 * 24 * time.Hour),
	} {
		got, err := ParseTime(s, now, berlin)
		require.NoError(t, err, s)
		assert.True(t, want.Equal(got), "%s: %s, want %s", s, got, want)
	}
	for _, s := range []string{"", " ", "Now", "today", "tomorrow", "Yesterday", " yesterday", "yesterday ", "noon", "2h", "2 h ago", "2h  ago", "2hours ago", "-2h ago", "2h ago ", "1.5h ago", "h ago", " ago", "ago",
		"1y ago", "99999999999999h ago", "999999999w ago", "2026", "2026-11", "2026-1-2", "2026-13-01", "2026-02-30", "2026-11-20 25:00", "2026-11-20 14:60", "2026-11-20 14:30:60", "2026-11-20 14:30:00.5", "2026-11-20 14:30:00+01:00", "2026-11-20 14:30:00 +0100", "2026-11-20 +01:00", "14:30:5", "some hours ago", "2 hours", "-2 hours ago", "1.5 hours ago", "999999999 years ago", "2 hours from", "two hours ago", "2026-11-20T14:30", "2026-11-20T14:30Z",
		"2026-11-20t14:30:00z", "2026-11-20T14:30:00", "2026-11-20T14:30:00,5Z", "2026-11-20T14:30:00+0530", "2026-11-20T24:00:00Z", "2026-11-20  14:30", "20/11/2026", "11/20/2026", "Nov 20", "1:30", "14.30", "2pm",
		"24:00", "1700000000", "0001-01-01", "9999-12-31", "2026-11-20T14:30:00+99:00", "last week", "2026-03-29 02:30", "\u0662h ago"} {
		_, err := ParseTime(s, now, berlin)
		require.Error(t, err, "%q", s)
		assert.Equal(t, project.Usage, project.KindOf(err), s)
		assert.Contains(t, project.HintOf(err), "2026-11-20", s)
	}
	// Where the clocks go forward at midnight, a day begins at one.
	if cairo, err := time.LoadLocation("Africa/Cairo"); err == nil {
		got, err := ParseTime("2026-04-24", now, cairo)
		require.NoError(t, err)
		assert.Equal(t, "2026-04-24 01:00", got.Format("2006-01-02 15:04"))
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2026-11-20T14:30:00Z", "2026-11-20", "2026-11-20 14:30", "14:30", "90s ago", "yesterday", "2 hours ago", "now", "2026-11-20 14:30:05 +01:00", "", "2026-02-30", "99999999999w ago"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 7, 1, 59, 5, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTime(s, now, time.UTC)
		if err != nil {
			return
		}
		if y := got.Year(); y < 1700 || y > 2200 {
			t.Fatalf("%q: %s", s, got)
		}
		if CheckLabel(s) == nil {
			t.Fatalf("%q is a time and a label", s)
		}
	})
}

// TestParseTimeOfLists: a record is found by what lists say of its time.
func TestParseTimeOfLists(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 1, 59, 5, time.UTC)
	for d := time.Duration(0); d < 540*24*time.Hour; d = d*5/4 + 700*time.Millisecond {
		text := humanize.RelTime(now.Add(-d), now, "ago", "from now")
		got, err := ParseTime(text, now, time.UTC)
		require.NoError(t, err, text)
		assert.False(t, got.Before(now.Add(-d)), "%s: %s", d, text)
	}
	for d := time.Duration(0); d < 10*360*24*time.Hour; d = d*5/4 + 700*time.Millisecond {
		_, err := ParseTime(humanize.RelTime(now.Add(d), now, "ago", "from now"), now, time.UTC)
		require.NoError(t, err)
	}
}
