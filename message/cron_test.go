package message_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the tests name zones, whatever the machine has

	"decree/message"

	"github.com/stretchr/testify/require"
)

func zone(t testing.TB, name string) *time.Location {
	l, err := time.LoadLocation(name)
	require.NoError(t, err)
	return l
}

func cron(t testing.TB, text string) *message.Schedule {
	s, err := message.ParseCron(text)
	require.NoError(t, err)
	return s
}

func TestCronRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"":                  `cron "": it needs five fields (minute hour day month weekday), and has 0`,
		"* * * *":           `cron "* * * *": it needs five fields (minute hour day month weekday), and has 4`,
		"0 * * * * *":       `cron "0 * * * * *": it needs five fields (minute hour day month weekday), and has 6`,
		"0 0 1 1 * 2026":    `cron "0 0 1 1 * 2026": it needs five fields (minute hour day month weekday), and has 6`,
		"@daily":            `cron "@daily": it needs five fields (minute hour day month weekday), and has 1`,
		"60 * * * *":        `cron "60 * * * *": minute: "60" is not a number from 0 to 59`,
		"-1 * * * *":        `cron "-1 * * * *": minute: "" is not a number from 0 to 59`,
		"* 24 * * *":        `cron "* 24 * * *": hour: "24" is not a number from 0 to 23`,
		"* * 0 * *":         `cron "* * 0 * *": day of month: "0" is not a number from 1 to 31`,
		"* * * 13 *":        `cron "* * * 13 *": month: "13" is not a number from 1 to 12`,
		"* * * * 8":         `cron "* * * * 8": day of week: "8" is not a number from 0 to 7`,
		"* * * mon *":       `cron "* * * mon *": month: "mon" is not a number from 1 to 12`,
		"* * L * *":         `cron "* * L * *": day of month: "L" is not a number from 1 to 31`,
		"* * 15W * *":       `cron "* * 15W * *": day of month: "15W" is not a number from 1 to 31`,
		"* * * * 5#2":       `cron "* * * * 5#2": day of week: "5#2" is not a number from 0 to 7`,
		"* * ? * *":         `cron "* * ? * *": day of month: "?" is not a number from 1 to 31`,
		"*/0 * * * *":       `cron "*/0 * * * *": minute: "0" is not a step from 1 to 59`,
		"*/60 * * * *":      `cron "*/60 * * * *": minute: "60" is not a step from 1 to 59`,
		"0/5 * * * *":       `cron "0/5 * * * *": minute: "0/5": a step needs * or a range before it`,
		"30-10 * * * *":     `cron "30-10 * * * *": minute: "30-10" is a range that ends before it begins`,
		"1-2-3 * * * *":     `cron "1-2-3 * * * *": minute: "2-3" is not a number from 0 to 59`,
		"1,,2 * * * *":      `cron "1,,2 * * * *": minute: "" is not a number from 0 to 59`,
		"5,99 * * * *":      `cron "5,99 * * * *": minute: "99" is not a number from 0 to 59`,
		"5 4 31 2,4,6 *":    `cron "5 4 31 2,4,6 *": there is no such day`,
		"*\u00a0* * * * 1 ": `cron "*\u00a0* * * * 1 ": it needs five fields (minute hour day month weekday), and has 6`,
	} {
		_, err := message.ParseCron(text)
		require.EqualError(t, err, reason)
	}
}

// TestCronNext compares with dates that were looked up in a calendar.
func TestCronNext(t *testing.T) {
	const form = "2006-01-02 15:04"
	for _, c := range []struct{ text, after, next string }{
		{"* * * * *", "2026-11-21 19:30", "2026-11-21 19:31"},
		{"*/15 * * * *", "2026-11-21 19:30", "2026-11-21 19:45"},
		{"7 * * * *", "2026-12-31 23:07", "2027-01-01 00:07"},
		{"0 9 * * 1-5", "2026-11-20 09:00", "2026-11-23 09:00"}, // Friday to Monday
		{"0 9 * * MON-fri", "2026-11-20 09:00", "2026-11-23 09:00"},
		{"0 0 * * 7", "2026-11-21 19:30", "2026-11-22 00:00"},
		{"0 0 * * 0", "2026-11-21 19:30", "2026-11-22 00:00"},
		{"0 0 * * 5-7", "2026-11-21 19:30", "2026-11-22 00:00"},
		{"0 0 * * fri-SUN", "2026-11-21 19:30", "2026-11-22 00:00"},
		{"0 0 * * MON-SUN", "2026-11-21 19:30", "2026-11-22 00:00"},
		{"0 0 13 * 5", "2026-11-21 19:30", "2026-11-27 00:00"}, // the 13th or a Friday
		{"0 0 29 2 *", "2026-11-21 19:30", "2028-02-29 00:00"},
		{"0 0 31 * *", "2026-11-01 00:00", "2026-12-31 00:00"},
		{"0 0 1 jan,jul *", "2026-11-01 00:00", "2027-01-01 00:00"},
		{"10-20/5 3 * * *", "2026-11-01 03:10", "2026-11-01 03:15"},
		{"05 08 * * *", "2026-11-01 08:05", "2026-11-02 08:05"},
	} {
		after, err := time.Parse(form, c.after)
		require.NoError(t, err)
		require.Equal(t, c.next, cron(t, c.text).Next(after.Add(59*time.Second)).Format(form), c.text)
	}
}

// firings are the minutes of a day in which s is due, as clock times, looked at in
// every minute that passes.
func firings(s *message.Schedule, day time.Time) []string {
	var at []string
	for m := day; m.Before(day.AddDate(0, 0, 1)); m = m.Add(time.Minute) {
		if s.Due(m.Add(17 * time.Second)) {
			at = append(at, m.Format("15:04 MST"))
		}
	}
	return at
}

func TestCronOverTheChangeOfTheClock(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	spring := time.Date(2026, 3, 29, 0, 0, 0, 0, berlin)  // 02:00 is followed by 03:00
	autumn := time.Date(2026, 10, 25, 0, 0, 0, 0, berlin) // 03:00 is followed by 02:00

	daily := cron(t, "30 2 * * *")
	require.Empty(t, firings(daily, spring), "the minute does not come")
	require.Equal(t, []string{"02:30 CEST"}, firings(daily, autumn), "it comes twice")
	require.Equal(t, []string{"02:30 CET"}, firings(daily, autumn.AddDate(0, 0, 1)))

	require.Equal(t, []string{"03:00 CEST"}, firings(cron(t, "0 2,3 * * *"), spring))
	require.Equal(t, []string{"02:00 CEST", "03:00 CET"}, firings(cron(t, "0 2,3 * * *"), autumn))

	hourly := cron(t, "30 * * * *")
	require.Len(t, firings(hourly, spring), 23)
	require.Len(t, firings(hourly, autumn), 25)
	require.Equal(t, []string{"01:30 CEST", "02:30 CEST", "02:30 CET", "03:30 CET"}, firings(hourly, autumn)[1:5])

	require.Len(t, firings(cron(t, "* * * * *"), spring), 23*60)
	require.Len(t, firings(cron(t, "* * * * *"), autumn), 25*60)
	require.Len(t, firings(cron(t, "*/20 2-3 * * *"), spring), 3)
	require.Len(t, firings(cron(t, "*/20 2-3 * * *"), autumn), 6)
}

// TestCronNextIsTheNextDue walks every minute around the changes of zones that change at
// midnight, by half an hour, or for good, and compares with Next.
func TestCronNextIsTheNextDue(t *testing.T) {
	for zoneName, days := range map[string][]string{
		"Europe/Berlin":       {"2026-03-28", "2026-10-24"},
		"Australia/Lord_Howe": {"2026-04-04", "2026-10-03"},
		"America/Sao_Paulo":   {"2018-11-03", "2018-02-17"},
		"Asia/Beirut":         {"2026-03-28", "2026-10-24"},
		"Pacific/Apia":        {"2011-12-29"}, // a day that never was
		"Asia/Pyongyang":      {"2015-08-14"}, // put back half an hour, for good
		"America/St_Johns":    {"2010-11-06"}, // at one minute past midnight
	} {
		at := zone(t, zoneName)
		for _, day := range days {
			from, err := time.ParseInLocation("2006-01-02", day, at)
			require.NoError(t, err)
			for _, text := range []string{"* * * * *", "30 2 * * *", "15 * * * *", "0 0 * * *", "*/7 0-3,23 * * *", "45 23 * * 6", "10 1 * 10,11,4 0"} {
				s := cron(t, text)
				want := []time.Time{}
				end := from.Add(72 * time.Hour)
				for m := from.Add(time.Minute); m.Before(end); m = m.Add(time.Minute) {
					if s.Due(m) {
						want = append(want, m)
					}
				}
				got := []time.Time{}
				for m := s.Next(from); m.Before(end); m = s.Next(m) {
					got = append(got, m)
				}
				require.Equal(t, want, got, "%s %s %s", zoneName, day, text)
			}
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, text := range []string{"* * * * *", "*/5 0-6,12 1,15 jan-MAR mon-fri", "0 0 29 2 5", "@hourly", "1-5/2 7 * * 7", "0 0 L * 5#3"} {
		f.Add(text)
	}
	from := time.Date(2026, 10, 24, 22, 0, 0, 0, zone(f, "Europe/Berlin"))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := message.ParseCron(text)
		if err != nil {
			return
		}
		next := s.Next(from)
		if next.IsZero() || !next.After(from) || !s.Due(next) {
			t.Fatalf("%q: Next says %v", text, next)
		}
	})
}
