package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/tree"
)

const (
	cronName = "cron"
	cronFile = "cron.json"
)

// fired is what cron.json in the store keeps of one job.
type fired struct {
	Expression string    `json:"expression"`
	Last       time.Time `json:"last"` // the minute it fired in last, or was seen first
	// Pending is the file that the last firing writes into the inbox. It stands
	// here first: after a death in between, or where it could not be written, the next look writes it.
	Pending string `json:"pending,omitempty"`
}

type cronState struct {
	Version int               `json:"version"`
	Jobs    map[string]*fired `json:"jobs"`
}

// cron fires the jobs of .decree/cron, beside whatever message is being done: it
// takes no lock, has handles of its own, and only makes new files.
type cron struct {
	p             *project.Project // its store; the handle of the root may change
	site          project.Site     // as it was at the beginning, with a handle of the look's own
	clock         func() time.Time
	loc           *time.Location
	note          func(string)
	history       *history.History
	s             *cronState
	notedMistakes map[string]string // job -> the mistake that was noted
	// failing is the minute since which each look at a job has failed; of "" the looks at all of them.
	failing map[string]time.Time
}

func newCron(q *Queue, note func(string)) *cron {
	p := q.project()
	return &cron{p: p, site: p.Site, clock: q.o.Clock, loc: q.o.Location, note: note,
		history: q.o.Recorder.History(), notedMistakes: map[string]string{}, failing: map[string]time.Time{}}
}

// serve looks every interval until ctx ends. Every error but the first of its
// kind is told; none ends it.
func (c *cron) serve(ctx context.Context, interval time.Duration) {
	last := ""
	for {
		text := ""
		if err := c.tick(); err != nil {
			text = err.Error()
		}
		if text != "" && text != last {
			c.note("cron: " + text)
		}
		last = text
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(interval, 20*time.Second)):
		}
	}
}

// tick fires what is due in the present minute, and what was missed where the job wants that, or
// since looks before this one have failed.
func (c *cron) tick() error {
	now := c.clock().In(c.loc)
	each, err := c.look(now)
	c.noteOutcome("", err, now)
	return errors.Join(append(each, err)...)
}

// noteOutcome notes the outcome of a check of a job, or of all of them.
func (c *cron) noteOutcome(job string, err error, now time.Time) {
	if err == nil {
		delete(c.failing, job)
	} else if c.failing[job].IsZero() {
		c.failing[job] = cmp.Or(c.failing[""], now.Truncate(time.Minute))
	}
}

// dueWhileFailing says whether checks have failed since a minute in which a job was due.
func (c *cron) dueWhileFailing(job string, minute time.Time) bool {
	for _, since := range []time.Time{c.failing[""], c.failing[job]} {
		if !since.IsZero() && !minute.Before(since) {
			return true
		}
	}
	return false
}

// look is one look at the jobs. each are the errors of some of them, err is one that is about all.
func (c *cron) look(now time.Time) (each []error, err error) {
	root, err := c.site.Disk.OpenRoot(c.site.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	c.site.Dir = root
	jobs, err := disk.OpenPath(root, ".decree/"+cronName)
	if isMissing(err) && c.s != nil {
		return nil, c.forgetGone(root, nil, now)
	}
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer jobs.Close()
	if c.site.HeldBack() != nil { // after the directory was opened: a restore that replaces it has said so before
		return nil, nil //nolint:nilerr // Serve says it, once
	}
	inbox, err := openInbox(root, "")
	if err != nil {
		return nil, err
	}
	defer inbox.Close()
	if c.s == nil {
		if err := c.load(inbox); err != nil {
			return nil, err
		}
	}
	each = c.deliver(inbox, jobs, now)
	list, err := files(jobs)
	if err != nil {
		return each, err
	}
	if err := c.forgetGone(root, list, now); err != nil {
		return each, err
	}
	slices.SortFunc(list, func(a, b Pending) int { return compareNames(a.Name, b.Name) })
	for _, f := range list {
		if known := c.s.Jobs[f.Name]; known != nil && known.Pending != "" {
			continue // deliver has told why
		}
		err := c.job(inbox, jobs, f.Name, now)
		if c.notedMistakes[f.Name] == "" { // else its routine may still be away
			c.noteOutcome(f.Name, err, now)
		}
		if err != nil {
			each = append(each, err)
		}
	}
	return each, nil
}

// errAway has a check of a job fail that a run in place has away.
var errAway = errors.New("a run has it away")

// forgetGone forgets the jobs that are not in the list any more: one of such a name that is made later is a new one, and owes nothing. What
// fired in this minute stays known, so that it does not fire twice; and what a run in place has away, as by 'git stash', is written again
// at its end, and then fires for the minutes that it was away in.
func (c *cron) forgetGone(root disk.Dir, list []Pending, now time.Time) error {
	gone := func(job string) bool {
		return !slices.ContainsFunc(list, func(p Pending) bool { return p.Name == job })
	}
	away := slices.DeleteFunc(slices.Collect(maps.Keys(c.s.Jobs)), func(job string) bool { return !gone(job) })
	if len(away) == 0 {
		return nil
	}
	inPlace, err := c.inPlace()
	if err != nil {
		return err
	}
	if inPlace {
		for _, job := range away {
			c.noteOutcome(job, errAway, now)
		}
		return nil
	}
	jobs, err := disk.OpenPath(root, ".decree/"+cronName) // again: one may have ended since
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer jobs.Close()
	if list, err = files(jobs); err != nil {
		return err
	}
	maps.DeleteFunc(c.failing, func(job string, _ time.Time) bool { return job != "" && gone(job) })
	known, minute := len(c.s.Jobs), now.Truncate(time.Minute)
	maps.DeleteFunc(c.s.Jobs, func(job string, f *fired) bool { return f.Pending == "" && f.Last.Before(minute) && gone(job) })
	if len(c.s.Jobs) == known {
		return nil
	}
	return c.save()
}

// load reads cron.json.
func (c *cron) load(inbox disk.Dir) error {
	s := &cronState{Version: 1}
	data, err := project.ReadFile(c.p.Store, cronFile, maxState)
	if err != nil && !isMissing(err) {
		return err
	}
	if err == nil {
		if err := json.Unmarshal(data, s); err != nil {
			return fmt.Errorf("%s: %w", cronFile, err)
		}
	}
	if err := clean(inbox, begins(cronDraft), c.p.PutAside); err != nil {
		return err
	}
	s.Jobs = renamed(s.Jobs, tree.Unquoted)
	c.s = s
	return nil
}

// deliver writes the messages of firings that were cut short, by a death, or since they could not be
// written. The others of a job wait for that: it has one Pending.
func (c *cron) deliver(inbox, jobs disk.Dir, now time.Time) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(c.s.Jobs)) {
		f := c.s.Jobs[name]
		if f.Pending == "" {
			continue
		}
		err := c.resume(inbox, jobs, name, f.Pending)
		if err == nil {
			err = c.delivered(f)
		}
		if err != nil {
			c.noteOutcome(name, err, now)
			errs = append(errs, fmt.Errorf("%s: %w", tree.Quote(name), err))
		}
	}
	return errs
}

// renamed is jobs with each name put through f.
func renamed(jobs map[string]*fired, f func(string) string) map[string]*fired {
	out := make(map[string]*fired, len(jobs))
	for name, job := range jobs {
		out[f(name)] = job
	}
	return out
}

// inPlace says whether a run in place is under way: a job that it has away is written again at its end.
func (c *cron) inPlace() (bool, error) {
	open, _, err := c.history.ListOpen()
	return slices.ContainsFunc(open, func(o *history.Opened) bool { return o.Record.Reason == history.Run && o.Record.Isolated == "" }), err
}

// resume writes the message of a firing that was cut short, unless it was written:
// then it is in the inbox, or was done, and its record stands even where a person has
// emptied done. Of a job that is gone nothing is written; one that cannot be read, or that
// somebody is just writing, is waited for.
func (c *cron) resume(inbox, jobs disk.Dir, job, file string) error {
	there, err := c.exists(inbox, file)
	if err != nil || there {
		return err
	}
	if there, err = c.history.Recorded(strings.TrimSuffix(file, suffix)); err != nil || there {
		return err
	}
	m, err := parseFile(jobs, job)
	if isMissing(err) {
		inPlace, err := c.inPlace()
		if err == nil && inPlace {
			err = errAway
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; what it fired is written when the job can be read", err)
	}
	return c.drop(inbox, job, m, file)
}

// delivered notes durably that a firing's message is in the inbox: from there it
// may go anywhere, and must not be written again.
func (c *cron) delivered(f *fired) error {
	f.Pending = ""
	return c.save()
}

// exists says whether a firing's message is, or was, anywhere.
func (c *cron) exists(inbox disk.Dir, name string) (bool, error) {
	for _, below := range []string{"", doneName, deadName} {
		dir, err := inbox, error(nil)
		if below != "" {
			if dir, err = inbox.OpenDir(below); isMissing(err) {
				continue
			} else if err != nil {
				return false, err
			}
		}
		_, err = dir.Stat(name)
		if below != "" {
			dir.Close()
		}
		if err == nil || !isMissing(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// usableJob is a job that can fire.
func usableJob(p *project.Site, jobs disk.Dir, name string) (m *message.Message, when *message.Schedule, err error) {
	if m, err = parseFile(jobs, name); err != nil {
		return nil, nil, err
	}
	switch {
	case m.Cron == "":
		return nil, nil, errors.New("no `cron:` field")
	case m.Routine != "" && !OpenRoutines(p).Known(m.Routine): // else it would put a dead message beside the last in each of its minutes
		return nil, nil, fmt.Errorf("there is no routine %s", tree.Quote(m.Routine))
	}
	when, err = message.ParseCron(m.Cron)
	return m, when, err
}

// unusableJob says in words why a job does not fire.
func unusableJob(name string, err error) string {
	return fmt.Sprintf("%s: %s; it does not fire", tree.Quote(name), strings.TrimPrefix(err.Error(), name+": "))
}

// UnusableJobs are the cron jobs that cannot fire, and why, a line each.
func UnusableJobs(p *project.Site) (lines []string) {
	jobs, err := disk.OpenPath(p.Dir, ".decree/cron")
	if err != nil {
		return nil
	}
	defer jobs.Close()
	list, err := files(jobs)
	if err != nil {
		return nil
	}
	slices.SortFunc(list, func(a, b Pending) int { return compareNames(a.Name, b.Name) })
	for _, f := range list {
		if _, _, err := usableJob(p, jobs, f.Name); err != nil {
			lines = append(lines, unusableJob(f.Name, err))
		}
	}
	return lines
}

// clockSlack is how far the clock may go back without a job firing again for the same
// minutes. After a longer way back it is not held until that time comes again.
const clockSlack = time.Hour

// job fires one job if it is due.
func (c *cron) job(inbox, jobs disk.Dir, name string, now time.Time) error {
	m, when, err := usableJob(&c.site, jobs, name)
	var failed syscall.Errno
	if errors.As(err, &failed) && !ofFile(err) && !isMissing(err) { // a disk that fails, or no descriptor left: the job may be right
		return fmt.Errorf("%s: %w", tree.Quote(name), err)
	}
	if err != nil {
		if text := unusableJob(name, err); c.notedMistakes[name] != text {
			c.notedMistakes[name] = text
			c.note("cron: " + text)
		}
		return nil
	}
	delete(c.notedMistakes, name)
	minute := now.Truncate(time.Minute)
	f := c.s.Jobs[name]
	if f != nil && f.Last.Sub(minute) > clockSlack {
		c.note(fmt.Sprintf("cron: %s: it last fired at %s, which is still to come: the clock was set back; it fires again from now on", name, f.Last.In(c.loc).Format("2006-01-02 15:04")))
		f.Last = minute.Add(-time.Minute)
	}
	isNew := f == nil || f.Expression != m.Cron
	if isNew {
		last := minute.Add(-time.Minute)
		if f != nil && f.Last.After(last) && c.firedIn(f) {
			last = f.Last
		}
		f = &fired{Expression: m.Cron, Last: last}
		c.s.Jobs[name] = f
	}
	if !minute.After(f.Last) {
		return nil // it had its turn in this minute, or the clock was set back a little
	}
	due := when.Due(minute)
	missed := when.Next(f.Last.In(c.loc))
	late := !missed.IsZero() && missed.Before(minute)
	switch {
	case due, late && (m.CatchUp || c.dueWhileFailing(name, missed)):
		return c.fire(inbox, m, name, f, minute)
	case isNew, late:
		f.Last = minute
		return c.save()
	}
	return nil
}

// firedIn says whether a job was due in its last minute by the expression that it had, so that it has fired in it and was not only seen.
func (c *cron) firedIn(f *fired) bool {
	when, err := message.ParseCron(f.Expression)
	return err == nil && when.Due(f.Last.In(c.loc))
}

// fire writes the firing down and then its message.
func (c *cron) fire(inbox disk.Dir, m *message.Message, name string, f *fired, minute time.Time) error {
	chain, err := giveChain(c.p, minute.UTC().Format("20060102150405")+"00")
	if err != nil {
		return err
	}
	old := *f
	f.Last, f.Pending = minute, history.FormatID(chain, 0)+suffix
	if err := c.save(); err != nil {
		*f = old
		return err
	}
	if err := c.drop(inbox, name, m, f.Pending); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return c.delivered(f)
}

// chainOf is the chain that a firing's file is named after.
func chainOf(file string) string {
	chain, _, _ := message.NameParts(file, 1)
	return chain
}

// drop puts a job's message into the inbox, with a chain of its own.
func (c *cron) drop(inbox disk.Dir, job string, m *message.Message, file string) error {
	fields := []message.Param{{Name: "cron_job", Value: tree.Quote(strings.TrimSuffix(job, suffix))}}
	if m.ID != "" { // the job is a copy of a message, whose id and chain are that one's
		fields = append(fields, message.Param{Name: "id", Value: strings.TrimSuffix(file, suffix)}, message.Param{Name: "chain", Value: chainOf(file)}, message.Param{Name: "seq", Value: "0"})
	}
	if m.Depth > 0 { // of a follow-up
		fields = append(fields, message.Param{Name: "depth", Value: "0"})
	}
	// Without them where they cannot be said, as in a front matter of odd YAML.
	if told, _, err := message.Set(m, fields); err == nil {
		m = told
	}
	_, data, err := message.Complete(m, message.Defaults{Chain: chainOf(file), MaxDepth: 1})
	if err != nil {
		return err
	}
	err = c.p.Act(func(note noteActs) error {
		return put(inbox, cronDraft, file, bytes.NewReader(data), fileMode, noted(note, project.InboxDir, data, inbox.RenameNew))
	})
	if isExist(err) {
		err = nil
	}
	return err
}

func (c *cron) save() error {
	s := cronState{Version: c.s.Version, Jobs: renamed(c.s.Jobs, tree.Quote)}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return project.ReplaceFile(c.p.Store, cronFile, append(data, '\n'), project.PrivateFile, true)
}
