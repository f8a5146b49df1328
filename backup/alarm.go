package backup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

// newest is the target that has the newest generation, or where the last try failed before there was one, and what is
// remembered of it; nil where nothing is.
func (m Memory) newest() (at string, out *Remembered) {
	for name, r := range m.Targets {
		if !r.used() {
			continue
		}
		if out == nil || r.Timestamp.After(out.Timestamp) || r.Timestamp.Equal(out.Timestamp) && r.Failed != nil {
			at, out = name, &r
		}
	}
	return at, out
}

// used says whether a backup was made there, or tried: else the target has what restores have replaced.
func (r Remembered) used() bool { return r.Generation != "" || r.Failed != nil }

// Alarm is what every command says, in one line, of backups that are not as they should be; "" where they
// are, or nobody wants any. It asks the store alone. The target that the config names, as OpenOptions.Place has it, comes first:
// what --to has made elsewhere, one time, does not make its backups newer. Then comes a target whose proof failed, not longer ago than a
// proof is good for: a stick that was thrown away gets no other one. Where the config's has never been used it is the one that has the
// newest generation.
func Alarm(store disk.Dir, c *project.Config, configured string, now time.Time) string {
	m := ReadMemory(store)
	own := m.Targets[configured]
	known := c.WantsBackups() && own.used()
	if known {
		if text := m.alarm(configured, configured, c, now); text != "" {
			return text
		}
	}
	for _, at := range slices.Sorted(maps.Keys(m.Targets)) {
		if r := m.Targets[at]; r.used() && r.red() && (at == configured || now.Sub(r.Proof.At) <= goodFor(c.Backup)) {
			return m.alarm(at, configured, c, now)
		}
	}
	if known {
		return ""
	}
	at, r := m.newest()
	switch {
	case r != nil:
		return m.alarm(at, configured, c, now)
	case !c.WantsBackups():
		return ""
	}
	return "there is no backup yet: 'decree backup' makes the first"
}

// alarm is that of one target, which was used.
func (m Memory) alarm(at, configured string, c *project.Config, now time.Time) string {
	r, in, to := m.Targets[at], "", ""
	if len(m.Targets) > 1 {
		in = " in " + tree.ShellWord(at)
	}
	if at != configured {
		to = " --to " + tree.ShellWord(at)
	}
	if r.Generation == "" {
		return fmt.Sprintf("there is no backup%s, and the last try %s failed: %s", in, ago(r.Failed.At, now), r.Failed.Reason)
	}
	if problems := r.problems(c.Backup, now); len(problems) > 0 {
		return fmt.Sprintf("%s; 'decree backup status%s' says more", problems[0], to)
	}
	return ""
}

// red says whether the newest proof failed.
func (r Remembered) red() bool { return r.Proof != nil && !r.Proof.OK }

// problems says what is wrong with what is remembered of a target, what matters most first.
func (r *Remembered) problems(b project.Backup, now time.Time) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.red() {
		add("the newest proof of the backup failed: %s", r.Proof)
	}
	if r.Failed != nil {
		add("the last try to make a backup, %s, failed: %s", ago(r.Failed.At, now), r.Failed.Reason)
	}
	switch {
	case r.Timestamp.IsZero():
	case now.Sub(r.Timestamp) > b.Warn:
		add("the newest backup is %s", old(r.Timestamp, now))
	case r.Timestamp.Sub(now) > time.Hour:
		add("the newest backup lies in the future: this machine's clock was set back, and nothing is removed until then")
	}
	switch {
	case r.Timestamp.IsZero():
	case r.Proof == nil:
		add("nothing of the backup was proven yet: 'decree backup drill' does it")
	case r.Proof.OK && now.Sub(r.Proof.At) > b.Drill:
		add("the newest proof is %s", old(r.Proof.At, now))
	}
	return append(out, r.Problems...)
}

func old(t, now time.Time) string { return RelativeTime(t, now, "old") }

func ago(t, now time.Time) string { return RelativeTime(t, now, "ago") }

// RelativeTime says how far a time is in the past, as in "3 days ago", or in the future. What is less than a minute ahead
// is now: records and generations of one second have times of their own.
func RelativeTime(t, now time.Time, past string) string {
	if t.After(now) && t.Sub(now) < time.Minute {
		t = now
	}
	return humanize.RelTime(t, now, past, "from now")
}

// standstill says why nothing may be pruned now; "" where it may. In an outage, or with a clock that lies,
// good generations must not be eaten by the rules.
func (p *Place) standstill(proof *Proof, warn time.Duration, now time.Time) string {
	for _, name := range p.Generations() {
		if at, ok := timeOf(name); ok && at.After(now.Add(time.Minute)) { // two backups within a second have different times
			return fmt.Sprintf("generation %s lies in the future", name)
		}
	}
	switch newest := p.Manifest.Timestamp; {
	case now.Sub(newest) > warn:
		return "the newest backup is " + old(newest, now)
	case proof == nil:
		return "nothing was proven yet"
	case !proof.OK:
		return "the newest proof failed"
	case now.Sub(proof.At) > warn:
		return "the newest proof is " + old(proof.At, now)
	case proof.At.After(now.Add(time.Hour)):
		return "the newest proof lies in the future"
	}
	return ""
}

// RememberFailure keeps that no backup could be made, until one is.
func RememberFailure(store disk.Dir, target string, now time.Time, err error) error {
	return Remember(store, target, func(r *Remembered) {
		r.Failed = &Failure{now.UTC(), strings.ReplaceAll(err.Error(), "\n", "; ")}
	})
}

// wholeDue says whether the whole is to be proven again.
func (r Remembered) wholeDue(b project.Backup, now time.Time) bool {
	return now.Sub(r.Whole) > goodFor(b) || r.red()
}

// goodFor is how old the newest proof may be.
func goodFor(b project.Backup) time.Duration { return cmp.Or(b.Drill, 30*day) }
