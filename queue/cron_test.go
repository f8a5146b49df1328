//go:build unix

package queue

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// clockwork is a cron over a bench whose time a test sets; each life is a process.
func (b *bench) clockwork(loc *time.Location, do func(at func(string) []string)) {
	b.t.Helper()
	require.NoError(b.t, b.with(disk.OS, func(q *Queue) error {
		if err := q.prepare(context.Background()); err != nil {
			return err
		}
		c := newCron(q, func(text string) { b.said = append(b.said, text) })
		c.loc = loc
		do(func(at string) []string {
			now, err := time.ParseInLocation(time.DateTime, at, loc)
			if utc, uerr := time.Parse(time.RFC3339, at); uerr == nil {
				now, err = utc, nil
			}
			require.NoError(b.t, err)
			c.clock = func() time.Time { return now }
			require.NoError(b.t, c.tick())
			return b.inbox()
		})
		return nil
	}))
}

func (b *bench) job(name, expression, more string) {
	b.put(map[string]string{".decree/cron/" + name: "---\ncron: \"" + expression + "\"\n" + more + "---\ndo it\n"})
}

func TestCronFiresOnceAMinute(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "*/5 * * * *", "routine: nightly\n")
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Empty(t, at("2026-11-21 07:01:59"))
		require.Equal(t, []string{"2026112107050000-0.md"}, at("2026-11-21 07:05:00"))
		require.Len(t, at("2026-11-21 07:05:59"), 1, "once a minute")
		require.Len(t, at("2026-11-21 07:04:00"), 1, "the clock set back")
		require.Len(t, at("2026-11-21 07:10:30"), 2)
	})
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Len(t, at("2026-11-21 07:10:59"), 2, "a restart in the same minute")
		require.Len(t, at("2026-11-21 07:15:00"), 3)
	})
	text := b.read(".decree/inbox/2026112107050000-0.md")
	require.Contains(t, text, "chain: 2026112107050000")
	require.Contains(t, text, "routine: nightly")
	require.True(t, strings.HasSuffix(text, "---\ndo it\n"))
}

// TestCronAfterAClockThatWasAhead: a job that fired while the clock was a year ahead
// fires again as soon as the clock is right.
func TestCronAfterAClockThatWasAhead(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "*/5 * * * *", "")
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Len(t, at("2027-11-21 07:05:00"), 1)
		require.Len(t, at("2026-11-21 07:05:10"), 2)
		require.Len(t, at("2026-11-21 07:05:20"), 2, "once a minute")
		require.Len(t, at("2026-11-21 07:10:00"), 3)
	})
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Len(t, at("2026-11-21 07:10:20"), 3)
	})
	require.Contains(t, strings.Join(b.said, "\n"), "a.md: it fired last at 2027-11-21 07:05, which has not come yet: the clock was set back")
}

func TestCronCatchUp(t *testing.T) {
	for _, catchUp := range []bool{false, true} {
		b := newBench(t, nil)
		more := ""
		if catchUp {
			more = "catch_up: true\n"
		}
		b.job("a.md", "0 * * * *", more)
		b.clockwork(time.UTC, func(at func(string) []string) { require.Len(t, at("2026-11-21 07:00:10"), 1) })
		b.clockwork(time.UTC, func(at func(string) []string) {
			missed := 1
			if catchUp {
				missed = 2 // once, however many were missed
			}
			require.Len(t, at("2026-11-21 11:30:00"), missed)
			require.Len(t, at("2026-11-21 11:31:00"), missed)
			require.Len(t, at("2026-11-21 12:00:00"), missed+1)
		})
	}
}

// TestCronDaylightSaving: at 3:00 the clock of Berlin goes back to 2:00.
func TestCronDaylightSaving(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones here")
	}
	b := newBench(t, nil)
	b.job("a.md", "30 2 * * *", "")
	b.clockwork(loc, func(at func(string) []string) {
		require.Len(t, at("2026-10-25T00:30:00Z"), 1)
		require.Len(t, at("2026-10-25T01:30:00Z"), 1, "2:30 for the second time")
	})
	// In spring 2:30 is skipped.
	require.Empty(t, func() []string {
		b := newBench(t, nil)
		b.job("a.md", "30 2 * * *", "")
		b.clockwork(loc, func(at func(string) []string) {
			at("2026-03-29T00:59:00Z")
			at("2026-03-29T01:00:00Z")
			at("2026-03-29T01:30:00Z")
		})
		return b.inbox()
	}())
}

// TestCronDiedBeforeItsMessage: the firing was written down, its message was not.
func TestCronDiedBeforeItsMessage(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "* * * * *", "")
	b.clockwork(time.UTC, func(at func(string) []string) { at("2026-11-21 07:01:00") })
	require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/inbox/2026112107010000-0.md")))
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Equal(t, []string{"2026112107010000-0.md"}, at("2026-11-21 07:01:30"))
	})
}

func TestCronMistakesAreToldOnce(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "61 * * * *", "")
	b.put(map[string]string{".decree/cron/b.md": "no cron\n"})
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Empty(t, at("2026-11-21 07:01:00"))
		require.Empty(t, at("2026-11-21 07:02:00"))
	})
	require.Len(t, b.said, 2)
}
