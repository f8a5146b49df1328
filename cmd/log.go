package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"decree/history"
	"decree/recorder"
)

// logOptions are log's flags.
type logOptions struct {
	limit         int
	reason, since string
}

func (s *session) logVerb() verb {
	var o logOptions
	return verb{
		name: "log", aliases: []string{"history"}, category: lookCategory, args: "[PATH...]", words: pathWords,
		usage: "list the records, newest first",
		about: `Lists the records: id, when, why, how it stands, its description or command, and what it changed. With PATHs only the records that changed something at or below them. On a terminal it goes through a pager.

--json prints the whole records, as .decree/runs/<id>/run.json has them, with their labels.`,
		examples: []example{
			{"decree log", "everything"},
			{"decree log -n 5 --reason run", "the five newest runs"},
			{"decree log --since '2h ago' src/", "what touched src/ in the last two hours"},
		},
		exits: []exit{{"0", "listed, even if there was nothing to list"}, {"2", "a TIME or REASON that is none"}},
		flags: s.reading(
			intFlag(&o.limit, "at most the `N` newest", "limit", "n"),
			stringFlag(&o.reason, "only records that exist for `REASON`: run, manual, auto, publish, restore, revert, apply", "reason"),
			stringFlag(&o.since, "only records begun at `TIME` or later: 2026-11-20, '2026-11-20 14:30', 14:30, '2h ago', yesterday", "since"),
		),
		action: func(ctx context.Context) error { return s.log(ctx, o) },
	}
}

func (s *session) log(ctx context.Context, o logOptions) error {
	keep, err := s.logFilter(o)
	if err != nil {
		return err
	}
	rec, err := s.forReading(ctx)
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project(), s.words())
	if err != nil {
		return err
	}
	records, err := s.list(rec, o.limit, paths, keep)
	if err != nil {
		return err
	}
	if s.global.json {
		return s.print(func(w io.Writer) error { return s.writeRecords(w, records) })
	}
	if len(records) == 0 {
		s.say("no records")
		return nil
	}
	return s.page(func(w io.Writer) error { return s.writeLog(w, records) })
}

// logFilter turns flags into a filter; it echoes the time that it understood.
func (s *session) logFilter(o logOptions) (func(*history.Record) bool, error) {
	if o.limit < 0 {
		return nil, usagef("--limit %d: not a number of records", o.limit).hint("leave it out to see all")
	}
	var since int64
	if o.since != "" {
		t, err := history.ParseTime(o.since, s.env.Now(), s.env.Location)
		if err != nil {
			return nil, err
		}
		since = t.UnixNano()
		s.say("decree: since %s", s.clock(t))
	}
	reason := history.Reason(o.reason)
	switch reason {
	case "", history.Run, history.Manual, history.Auto, history.Publish, history.Restore, history.Revert, history.Apply:
	default:
		return nil, usagef("--reason %s: no record has this reason", quoteWord(o.reason)).
			hint("it is run, manual, auto, publish, restore, revert or apply")
	}
	return func(r *history.Record) bool {
		return (reason == "" || r.Reason == reason) && (since == 0 || r.Started.UnixNano() >= since)
	}, nil
}

// list returns the records that log shows, and says what is wrong with others.
func (s *session) list(rec *recorder.Recorder, limit int, paths []string, keep func(*history.Record) bool) ([]*history.Record, error) {
	h := rec.History()
	var unread failures
	filter := func(r *history.Record) bool {
		if !keep(r) {
			return false
		}
		for _, path := range paths {
			touched, err := h.Touches(r, path)
			if err != nil {
				unread.add(r.ID, err)
			}
			if touched {
				return true
			}
		}
		return len(paths) == 0
	}
	listing, err := h.List(history.ListOptions{Limit: limit, Keep: filter})
	if err != nil {
		return nil, err
	}
	for _, w := range append(listing.Warnings(), unread.warnings()...) {
		s.note(w)
	}
	return listing.Records, nil
}

// failures collects the records whose changes.diff could not be read; several
// goroutines filter at once.
type failures struct {
	mu   sync.Mutex
	list []string
}

func (f *failures) add(id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fmt.Sprintf("left out, its changes.diff cannot be read: %s (%v)", id, err))
}

func (f *failures) warnings() []string {
	slices.Sort(f.list)
	return f.list
}

// whatWidth is how much of a description or command the table shows: what a
// terminal has room for beside the other columns.
func (s *session) whatWidth() int {
	if !isTerminal(s.env.Stdout) {
		return 48
	}
	return max(24, columns(s.env.Stdout)-80)
}

func (s *session) writeLog(w io.Writer, records []*history.Record) error {
	p := s.paint(s.env.Stdout)
	var t table
	t.add("ID", "WHEN", "REASON", p.in(plain, "STATUS"), "WHAT", "CHANGES")
	width := s.whatWidth()
	for _, r := range records {
		what := clip(whatOf(r), width)
		labels, err := s.labelsOf(r.ID)
		if err != nil {
			return err
		}
		if len(labels) > 0 {
			what = "[" + list(labels) + "] " + what
		}
		t.add(r.ID, s.ago(r.Started), string(r.Reason), p.in(statusColour(r.Status), string(r.Status)), what, changesOf(r))
	}
	return t.write(w)
}
