//go:build unix

package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
)

// clockwork is a cron over a bench whose time a test sets; each life is a process.
func (b *bench) clockwork(loc *time.Location, do func(at func(string) []string)) {
	b.t.Helper()
	require.NoError(b.t, b.clockworkOn(disk.OS, loc, do))
}

// clockworkOn returns what the last look ended with.
func (b *bench) clockworkOn(d disk.Disk, loc *time.Location, do func(at func(string) []string)) error {
	var last error
	return b.with(d, func(q *Queue) error {
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
			last = c.tick()
			return b.inbox()
		})
		return last
	})
}

func (b *bench) job(name, expression, more string) {
	b.put(map[string]string{".decree/cron/" + name: "---\ncron: \"" + expression + "\"\n" + more + "---\ndo it\n"})
}

func TestCronFiresOnceAMinute(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/nightly.sh": "true\n"})
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
	require.Contains(t, text, "cron_job: a\n")
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
	require.Contains(t, strings.Join(b.said, "\n"), "a.md: it last fired at 2027-11-21 07:05, which is still to come: the clock was set back")
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

// TestCronDied: at each step of a firing its process ends, and the next one in the
// same minute makes up for what is missing, and for nothing else.
func TestCronDied(t *testing.T) {
	for n, fired := 0, true; fired; n++ {
		b := newBench(t, nil)
		b.job("a.md", "* * * * *", "")
		fired = false
		steps := 0
		dying := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if !st.Write || !strings.Contains(st.Path, "cron") && !strings.Contains(st.Path, "inbox/2") {
				return disktest.Action{}
			}
			steps++
			fired = fired || steps == n+1
			return disktest.Action{Die: steps == n+1}
		})
		err := b.clockworkOn(dying, time.UTC, func(at func(string) []string) { at("2026-11-21 07:01:00") })
		require.Equal(t, fired, err != nil, "step %d", n)
		b.clockwork(time.UTC, func(at func(string) []string) {
			require.Len(t, at("2026-11-21 07:01:30"), 1, "step %d", n)
		})
		require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/inbox", b.inbox()[0])))
		b.clockwork(time.UTC, func(at func(string) []string) {
			require.Empty(t, at("2026-11-21 07:01:50"), "step %d: it was there, and may be anywhere since", n)
		})
	}
}

// TestCronCannotWrite: what cannot be written for a while is written by the first look of the same
// daemon that can, once, and the firings after it come too.
func TestCronCannotWrite(t *testing.T) {
	message := func(st disktest.Step) bool { return st.Write && strings.Contains(st.Path, "inbox/") }
	inbox := func(st disktest.Step) bool { return strings.HasSuffix(st.Path, ".decree/inbox") }
	state := func(st disktest.Step) bool { return st.Write && strings.Contains(filepath.Base(st.Path), cronFile) }
	every := func(st disktest.Step) bool { return st.Write }
	for _, c := range []struct {
		name   string
		more   string
		refuse func(disktest.Step) bool
		late   []string // what comes with the first look that can
	}{
		{"message", "", message, []string{"2026112102300000-0.md"}},
		{"message, caught up", "catch_up: true\n", message, []string{"2026112102300000-0.md"}},
		{"inbox", "", inbox, []string{"2026112102330000-0.md"}},
		{"inbox, caught up", "catch_up: true\n", inbox, []string{"2026112102330000-0.md"}},
		{"state", "", state, []string{"2026112102330000-0.md"}},
		{"every step that writes", "", every, []string{"2026112102330000-0.md"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			b.job("night.md", "30 2 * * *", c.more)
			full, refused := false, 0
			err := b.clockworkOn(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if !full || !c.refuse(st) {
					return disktest.Action{}
				}
				refused++
				return disktest.Action{Err: syscall.ENOSPC}
			}), time.UTC, func(at func(string) []string) {
				require.Empty(t, at("2026-11-21 02:20:00"))
				full = true
				require.Empty(t, at("2026-11-21 02:30:05"))
				require.NotZero(t, refused)
				require.Empty(t, at("2026-11-21 02:30:07"))
				require.Empty(t, at("2026-11-21 02:31:00"))
				full = false
				require.Equal(t, c.late, at("2026-11-21 02:33:00"))
				require.Len(t, at("2026-11-21 02:33:02"), 1)
				require.Len(t, at("2026-11-21 12:00:00"), 1)
				full = true
				require.Len(t, at("2026-11-22 02:30:00"), 1)
				full = false
				require.Len(t, at("2026-11-22 02:30:02"), 2)
			})
			require.NoError(t, err)
			b.clockwork(time.UTC, func(at func(string) []string) { require.Len(t, at("2026-11-22 02:40:00"), 2) })
		})
	}
}

// TestCronKeepsWhatWaits: a firing that waits to be written is not lost to the next ones of its job,
// nor does it keep another job's.
func TestCronKeepsWhatWaits(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "*/2 * * * *", "")
	b.job("b.md", "* * * * *", "")
	first := ""
	require.NoError(t, b.clockworkOn(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if first != "" && strings.HasSuffix(st.To, first) {
			return disktest.Action{Err: syscall.EACCES}
		}
		return disktest.Action{}
	}), time.UTC, func(at func(string) []string) {
		first = "2026112107020000-0.md"
		require.Len(t, at("2026-11-21 07:02:00"), 1)
		require.Len(t, at("2026-11-21 07:03:00"), 2)
		require.Len(t, at("2026-11-21 07:04:00"), 3)
		first = ""
		require.Len(t, at("2026-11-21 07:06:00"), 6)
	}))
	require.Contains(t, b.read(".decree/inbox/2026112107020000-0.md"), "cron_job: a\n")
	jobs := ""
	for _, name := range b.inbox() {
		jobs += b.read(".decree/inbox/" + name)
	}
	require.Equal(t, 2, strings.Count(jobs, "cron_job: a\n"))
}

// TestCronDoneBeforeItWasNoted: its daemon died when the message was in the inbox,
// it was done, and done was emptied.
func TestCronDoneBeforeItWasNoted(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine})
	b.job("a.md", "* * * * *", "")
	saves := 0
	require.Error(t, b.clockworkOn(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Rename" && filepath.Base(st.Path) == cronFile+".new" {
			saves++
		}
		return disktest.Action{Die: saves == 2}
	}), time.UTC, func(at func(string) []string) { at("2026-11-21 07:01:00") }))
	require.Equal(t, []string{"2026112107010000-0.md done"}, names2(b.process()))
	require.NoError(t, os.RemoveAll(filepath.Join(b.root, ".decree/inbox/done")))
	b.clockwork(time.UTC, func(at func(string) []string) { require.Empty(t, at("2026-11-21 07:01:50")) })
}

// TestCronOddNames: a name that is not UTF-8 is the same job after a restart.
func TestCronOddNames(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"caf\xe9.md", "caf\xe8.md", "\"q\".md"} {
		b.job(name, "* * * * *", "")
	}
	for range 2 {
		b.clockwork(time.UTC, func(at func(string) []string) { require.Len(t, at("2026-11-21 07:01:30"), 3) })
	}
}

func TestCronMistakesAreToldOnce(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "61 * * * *", "")
	b.put(map[string]string{".decree/cron/b.md": "no cron\n"})
	b.job("c.md", "* * * * *", "routine: nosuch\n")
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Empty(t, at("2026-11-21 07:01:00"))
		require.Empty(t, at("2026-11-21 07:02:00"))
	})
	require.Equal(t, []string{
		`cron: a.md: cron "61 * * * *": minute: "61" is not a number from 0 to 59; it does not fire`,
		"cron: b.md: no `cron:` field; it does not fire",
		"cron: c.md: there is no routine nosuch; it does not fire",
	}, b.said)
	b.put(map[string]string{".decree/routines/nosuch.sh": "true\n"})
	b.clockwork(time.UTC, func(at func(string) []string) { require.Len(t, at("2026-11-21 07:03:00"), 1) })
}

// TestCronClockJumps: however the clock jumps, each jump costs one firing at most, and a
// job fires again as soon as the clock stands still: neither a storm nor a year of silence.
func TestCronClockJumps(t *testing.T) {
	for _, more := range []string{"", "catch_up: true\n"} {
		for _, to := range []string{"2027-11-21 07:05:00", "2036-11-21 07:05:00", "2025-11-21 07:05:00", "1970-01-01 00:05:00"} {
			b := newBench(t, nil)
			b.job("a.md", "*/5 * * * *", more)
			b.job("yearly.md", "0 7 1 1 *", more)
			fired := 0
			// atMost looks again and again, also from a daemon that was started again.
			atMost := func(now string, firings int) {
				t.Helper()
				for range 2 {
					b.clockwork(time.UTC, func(at func(string) []string) { at(now); at(now); at(now) })
				}
				n := len(b.inbox())
				require.LessOrEqual(t, n, fired+firings, now)
				fired = n
			}
			atMost("2026-11-21 07:05:00", 1)
			for range 3 {
				atMost(to, 2) // of each job one
				atMost("2026-11-21 07:06:00", 2)
			}
			before := fired
			atMost("2026-11-21 07:06:10", 0)
			atMost("2026-11-21 07:10:00", 1)
			require.Equal(t, before+1, fired, "it fires when the clock is right: %s %s", to, more)
		}
	}
}

// TestCronHourlyOverDaylightSaving: a job of every hour fires in each hour that there is, 25
// on one day and 23 on another.
func TestCronHourlyOverDaylightSaving(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones here")
	}
	for day, want := range map[string]int{"2026-10-25": 25, "2026-03-29": 23, "2026-06-01": 24} {
		for _, more := range []string{"", "catch_up: true\n"} {
			b := newBench(t, nil)
			b.job("a.md", "0 * * * *", more)
			b.clockwork(loc, func(at func(string) []string) {
				now, err := time.ParseInLocation(time.DateOnly, day, loc)
				require.NoError(t, err)
				for until := now.AddDate(0, 0, 1); now.Before(until); now = now.Add(10 * time.Minute) {
					at(now.UTC().Format(time.RFC3339))
				}
			})
			require.Len(t, b.inbox(), want, "%s %s", day, more)
		}
	}
}

// TestManyJobsOfOneMinute: each of them has a message of its own, and the chains that they
// were given are forgotten like others.
func TestManyJobsOfOneMinute(t *testing.T) {
	const jobs = 130
	b := newBench(t, nil)
	for i := range jobs {
		b.job(fmt.Sprintf("j%d.md", i), "* * * * *", "")
	}
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Len(t, at("2026-11-21 07:05:00"), jobs)
		require.Len(t, at("2026-11-21 07:05:30"), jobs)
		require.Len(t, at("2026-11-21 07:06:00"), 2*jobs)
	})
	stores, err := filepath.Glob(filepath.Join(b.base, "*", "*", chainsDir, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, stores)
	require.LessOrEqual(t, len(stores), keptChains+1)
}

// TestCronJobThatCannotBeRead: a firing that waits to be written is written once its job can be read again, whether the file may
// not be read or is just being saved; that of a job which was deleted is not.
func TestCronJobThatCannotBeRead(t *testing.T) {
	for name, job := range map[string]string{"unreadable": "", "half saved": "---\ncron: \"30 2 * * *\"\nroutine: [", "deleted": "gone"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.job("night.md", "30 2 * * *", "")
			full, barred := false, false
			err := b.clockworkOn(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				switch {
				case full && st.Write && strings.Contains(st.Path, "inbox/"):
					return disktest.Action{Err: syscall.ENOSPC}
				case barred && strings.HasSuffix(st.Path, "cron/night.md"):
					return disktest.Action{Err: syscall.EACCES}
				}
				return disktest.Action{}
			}), time.UTC, func(at func(string) []string) {
				require.Empty(t, at("2026-11-21 02:20:00"))
				full = true
				require.Empty(t, at("2026-11-21 02:30:00"))
				full = false
				switch job {
				case "":
					barred = true
				case "gone":
					require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/cron/night.md")))
				default:
					b.put(map[string]string{".decree/cron/night.md": job})
				}
				require.Empty(t, at("2026-11-21 02:30:10"))
				barred = false
				b.job("night.md", "30 2 * * *", "")
				want := []string{"2026112102300000-0.md"}
				if job == "gone" {
					want = nil
				}
				require.Equal(t, want, at("2026-11-21 02:30:20"))
			})
			require.NoError(t, err)
		})
	}
}

// TestCronOneJobThatFails: what another job missed while only one's looks failed is missed, as it wants; that one's own comes.
func TestCronOneJobThatFails(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "30 * * * *", "")
	b.job("b.md", "40 * * * *", "")
	failing := false
	require.NoError(t, b.clockworkOn(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if failing && st.Op == "Open" && strings.HasSuffix(st.Path, "cron/a.md") {
			return disktest.Action{Err: syscall.EIO}
		}
		return disktest.Action{}
	}), time.UTC, func(at func(string) []string) {
		require.Empty(t, at("2026-11-21 02:20:00"))
		failing = true
		require.Empty(t, at("2026-11-21 02:21:00"))
		require.Empty(t, at("2026-11-21 02:30:00"))
		require.Empty(t, at("2026-11-21 02:45:00"), "the machine slept")
		failing = false
		require.Equal(t, []string{"2026112102460000-0.md"}, at("2026-11-21 02:46:00"))
	}))
	require.Contains(t, b.read(".decree/inbox/2026112102460000-0.md"), "cron_job: a\n")
}

// TestCronMadeAgain: a job that is deleted, and made again, is a new one: it owes nothing of what it could not fire, or missed, before.
func TestCronMadeAgain(t *testing.T) {
	for _, catchUp := range []string{"", "catch_up: true\n"} {
		b := newBench(t, nil)
		path := filepath.Join(b.root, ".decree/cron/a.md")
		b.job("a.md", "0 * * * *", catchUp)
		broken := false
		d := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if broken && st.Op == "Open" && strings.HasSuffix(st.Path, "cron/a.md") {
				return disktest.Action{Err: syscall.EIO}
			}
			return disktest.Action{}
		})
		require.NoError(t, b.clockworkOn(d, time.UTC, func(at func(string) []string) {
			require.Empty(t, at("2026-11-21 06:30:00"))
			broken = true
			require.Empty(t, at("2026-11-21 06:59:30"))
			require.Empty(t, at("2026-11-21 07:00:00"))
			broken = false
			require.NoError(t, os.Remove(path))
			require.Empty(t, at("2026-11-21 07:01:00"))
			b.job("a.md", "0 * * * *", catchUp)
			require.Empty(t, at("2026-11-21 09:30:00"), "made again at that time")
			require.Len(t, at("2026-11-21 10:00:00"), 1)
			require.NoError(t, os.Remove(path))
			require.Len(t, at("2026-11-21 10:00:20"), 1)
			b.job("a.md", "0 * * * *", catchUp)
			require.Len(t, at("2026-11-21 10:00:40"), 1, "once a minute")
		}))
	}
}

// TestCronCopiedFromAMessage: each firing of a job that was copied from a message has an id and a chain of its own.
func TestCronCopiedFromAMessage(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "0 9 * * *", "id: 2020010101010100-3\nchain: 2020010101010100\nseq: 3\ndepth: 1\n")
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Equal(t, []string{"2026112309000000-0.md"}, at("2026-11-23 09:00:05"))
	})
	text := b.read(".decree/inbox/2026112309000000-0.md")
	require.Contains(t, text, "id: 2026112309000000-0\nchain: 2026112309000000\nseq: 0\n")
	require.Contains(t, text, "depth: 0\n")
	require.NotContains(t, text, "2020010101010100")
}

// TestCronAwayInARun: what a run in place has away, as by 'git stash -u', is written again at its end, and so fires then what it has missed.
func TestCronAwayInARun(t *testing.T) {
	for _, away := range []string{".decree/cron/a.md", ".decree/cron", ".decree/routines"} {
		b := newBench(t, nil)
		b.job("a.md", "0 9 * * *", "routine: develop\n")
		b.put(map[string]string{".decree/routines/develop.sh": "true\n"})
		b.job("keep.md", "0 0 1 1 *", "")
		require.NoError(t, b.with(disk.OS, func(q *Queue) error {
			require.NoError(t, q.prepare(t.Context()))
			c := newCron(q, b.say)
			at := func(minute string) []string {
				now, err := time.Parse(time.DateTime, "2026-11-23 "+minute)
				require.NoError(t, err)
				c.clock = func() time.Time { return now }
				require.NoError(t, c.tick())
				return b.inbox()
			}
			require.Empty(t, at("08:58:00"))
			run := &history.Record{ID: "2026112308580000-0", Chain: "2026112308580000", Reason: history.Run, Status: history.StatusOpen, Command: []string{"true"}, Cwd: ".", Started: b.clock(), Attempts: 1}
			require.NoError(t, q.o.Recorder.History().Begin(&history.Opened{Record: run}))
			aside := filepath.Join(t.TempDir(), "aside")
			jobs := ".decree/cron"
			require.NoError(t, os.Rename(filepath.Join(b.root, away), aside))
			if away == ".decree/routines" { // with the jobs, which come back before
				require.NoError(t, os.Rename(filepath.Join(b.root, jobs), aside+"-jobs"))
			}
			require.Empty(t, at("08:59:00"))
			require.Empty(t, at("09:00:30"))
			if away == ".decree/routines" {
				require.NoError(t, os.Rename(aside+"-jobs", filepath.Join(b.root, jobs)))
				require.Empty(t, at("09:01:00"))
			}
			require.NoError(t, os.Rename(aside, filepath.Join(b.root, away)))
			require.NoError(t, q.o.Recorder.History().Abandon(run.ID))
			require.Len(t, at("09:02:00"), 1, away)
			require.Len(t, at("09:03:00"), 1, away)
			return nil
		}))
	}
}

// TestCronPendingWhileItsJobIsAway: a firing that could not be written yet is written once the run that has its job away has ended.
func TestCronPendingWhileItsJobIsAway(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "0 9 * * *", "routine: develop\n")
	b.put(map[string]string{".decree/routines/develop.sh": "true\n"})
	b.job("keep.md", "0 0 1 1 *", "")
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		require.NoError(t, q.prepare(t.Context()))
		c := newCron(q, b.say)
		now, err := time.Parse(time.DateTime, "2026-11-23 08:58:00")
		require.NoError(t, err)
		c.clock = func() time.Time { return now }
		require.NoError(t, c.tick())
		c.s.Jobs["a.md"].Pending = "2026112308570000-0.md"
		run := &history.Record{ID: "2026112308580000-0", Chain: "2026112308580000", Reason: history.Run, Status: history.StatusOpen, Command: []string{"true"}, Cwd: ".", Started: b.clock(), Attempts: 1}
		require.NoError(t, q.o.Recorder.History().Begin(&history.Opened{Record: run}))
		job, aside := filepath.Join(b.root, ".decree/cron/a.md"), filepath.Join(t.TempDir(), "aside")
		require.NoError(t, os.Rename(job, aside))
		require.ErrorIs(t, c.tick(), errAway)
		require.Empty(t, b.inbox())
		require.NoError(t, os.Rename(aside, job))
		require.NoError(t, q.o.Recorder.History().Abandon(run.ID))
		require.NoError(t, c.tick())
		require.Len(t, b.inbox(), 1)
		return nil
	}))
}

// TestCronEdited: a new schedule holds at once, and does not fire in the minute in which the old one has fired.
func TestCronEdited(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "0 9 * * *", "")
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Len(t, at("2026-11-23 09:00:05"), 1)
		b.job("a.md", "0 9 * * 1-5", "")
		require.Len(t, at("2026-11-23 09:00:25"), 1, "once a minute")
		require.Len(t, at("2026-11-24 09:00:05"), 2)
		b.job("a.md", "30 9 * * *", "")
		require.Len(t, at("2026-11-24 09:31:05"), 2)
		b.job("a.md", "31 9 * * *", "")
		require.Len(t, at("2026-11-24 09:31:25"), 3, "seen in this minute, but not fired")
	})
}

// TestCronBesideANewRoot: a look at the jobs goes by the root that it has opened, whichever the project is just taking for its own.
func TestCronBesideANewRoot(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/nightly.sh": "true\n"})
	b.job("a.md", "* * * * *", "routine: nightly\n")
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		require.NoError(t, q.prepare(t.Context()))
		c := newCron(q, b.say)
		other, err := disk.OS.OpenRoot(t.TempDir())
		require.NoError(t, err)
		defer other.Close()
		was := q.project().Dir
		defer func() { q.project().Dir = was }()
		q.project().Dir = other
		return c.tick()
	}))
	require.Len(t, b.inbox(), 1, strings.Join(b.said, "\n"))
}

// TestDaemonMakesTheInboxAgain: an inbox that is deleted while a daemon waits is made again, so that cron's messages lie somewhere.
func TestDaemonMakesTheInboxAgain(t *testing.T) {
	b := newBench(t, nil)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	inbox := filepath.Join(b.root, ".decree/inbox")
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		ready, done := make(chan int, 1), make(chan error, 1)
		go func() { done <- q.Serve(ctx, ServeOptions{Interval: 1e7, Ready: func(n int) { ready <- n }}) }()
		<-ready
		require.NoError(t, os.RemoveAll(inbox))
		for _, err := os.Stat(inbox + "/dead"); err != nil && ctx.Err() == nil; _, err = os.Stat(inbox + "/dead") {
		}
		end()
		return <-done
	}))
}

// hold is what a restore of a foreign generation leaves in the store.
func (b *bench) hold(q *Queue) {
	b.t.Helper()
	require.NoError(b.t, project.ReplaceFile(q.project().Store, project.HeldFile, []byte(`{"version":1,"host":"there","root":"/its/tree"}`), 0o600, false))
}

// TestCronOfAForeignGeneration: what a restore has brought from elsewhere fires nothing until a person lets it go.
func TestCronOfAForeignGeneration(t *testing.T) {
	b := newBench(t, nil)
	b.clockwork(time.UTC, func(at func(string) []string) {
		require.Empty(t, at("2026-11-21 07:01:00"))
		b.job("theirs.md", "* * * * *", "")
		require.NoError(t, b.with(disk.OS, func(q *Queue) error { b.hold(q); return nil }))
		require.Empty(t, at("2026-11-21 07:02:00"))
		require.NoError(t, b.with(disk.OS, func(q *Queue) error { return q.project().Resume() }))
		require.Equal(t, []string{"2026112107030000-0.md"}, at("2026-11-21 07:03:00"), "and not what was due meanwhile")
	})
	require.Empty(t, b.said)
}

// TestDaemonBesideARestore: a daemon whose project now has what came from elsewhere ends, and says why.
func TestDaemonBesideARestore(t *testing.T) {
	b := newBench(t, nil)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	err := b.with(disk.OS, func(q *Queue) error {
		ready, done := make(chan int, 1), make(chan error, 1)
		go func() { done <- q.Serve(ctx, ServeOptions{Interval: 1e7, Ready: func(n int) { ready <- n }}) }()
		<-ready
		b.hold(q)
		return <-done
	})
	require.Equal(t, project.Refused, project.KindOf(err))
	require.ErrorContains(t, err, "came with a backup of there:/its/tree")
}
