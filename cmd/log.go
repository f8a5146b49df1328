package cmd

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"decree/history"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// logOptions are log's flags.
type logOptions struct {
	limit        int
	reason       string
	since, until string
	follow       bool
	grep, search string
	patch        bool
}

func (s *session) logVerb() verb {
	var o logOptions
	return verb{
		name: "log", aliases: []string{"history"}, category: lookCategory, args: "[PATH...]", words: pathWords, most: anyWords,
		usage: "list the records, newest first",
		about: `Lists the records: id, time, reason, status, description or command, and what changed. On a terminal it goes through a pager.

With PATHs, only records that changed something at or below them, including creations, deletions and modes. What changed between two records, outside any run, is a line of its own: "outside", with the record that found it. --follow goes on under a file's earlier name where a rename left its content as it was. -S and -p without PATHs mean the whole tree.

--json prints the whole records, as .decree/runs/<id>/run.json has them, with their labels; with PATHs also "paths", what happened to each. An outside change is an object with reason "outside", an empty id and "found_by".`,
		examples: []example{
			{"decree log", "everything"},
			{"decree log -n 5 --reason run", "the five newest runs"},
			{"decree log --since '2h ago' src/", "what touched src/ in the last two hours"},
			{"decree log --since yesterday --until 12:00", "from midnight yesterday to noon today"},
			{"decree log --follow main.go", "a file's whole life"},
			{"decree log --reason outside .", "what changed outside any record"},
			{"decree log -S 'func main'", "what brought this text, or took it away"},
			{"decree log -p --grep make src/", "what the runs of make did to src/"},
		},
		exits: []exit{{"0", "listed, even if there was nothing to list"}, {"2", "TIME or REASON is not understood"}},
		flags: s.reading(
			intFlag(&o.limit, "at most the `N` newest", "limit", "n"),
			stringFlag(&o.reason, "only records that exist for `REASON`: run, turn, manual, auto, publish, restore, revert, apply; with PATHs also outside", "reason"),
			stringFlag(&o.since, "only records begun at `TIME` or later: 2026-11-20, '2026-11-20 14:30', 14:30, '2h ago', yesterday", "since"),
			stringFlag(&o.until, "only records begun at `TIME` or earlier", "until"),
			boolFlag(&o.follow, "with one PATH: follow a file through renames", "follow"),
			stringFlag(&o.grep, "only records whose description, prompt, command or label matches `REGEXP`", "grep"),
			stringFlag(&o.search, "only what changed how often `TEXT` occurs in a file", "search", "S"),
			boolFlag(&o.patch, "show each one's diff below it", "patch", "p"),
		),
		action: func(ctx context.Context) error { return s.log(ctx, o) },
	}
}

func (s *session) log(ctx context.Context, o logOptions) error {
	keep, err := s.logFilter(o)
	if err != nil {
		return err
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, s.words())
	if err != nil {
		return err
	}
	if len(paths) == 0 && (o.patch || o.search != "") {
		paths = []tree.Path{""}
	}
	if keep, err = s.withoutCut(rec, keep); err != nil {
		return err
	}
	switch {
	case o.follow && len(paths) != 1:
		return usagef("--follow takes one PATH").Hintf("for example 'decree log --follow main.go'")
	case len(paths) > 0:
		return s.logPaths(rec, o, paths, keep)
	}
	listing, err := s.list(rec, o.limit, keep)
	if err != nil {
		return err
	}
	if o != (logOptions{}) {
		listing.Foreign = nil // they are no part of what a filter is about
	}
	if s.global.json {
		if n := len(listing.Foreign); n > 0 {
			s.note(fmt.Sprintf("left out, foreign: %s in .decree/runs that this store has never seen; 'decree log' lists them separately", count(n, "record")))
		}
		return s.printRecords(listing.Records)
	}
	if len(listing.Records) == 0 {
		s.say("no records")
	}
	return s.page(func(w io.Writer) error {
		if len(listing.Records) > 0 {
			if err := s.writeLog(w, listing.Records); err != nil {
				return err
			}
		}
		return s.writeForeign(w, rec.History(), listing.Foreign)
	})
}

// mostForeign is how many foreign records a list shows.
const mostForeign = 20

// writeForeign lists the records that lie in .decree/runs and that this store has
// never seen, as in a copied tree: apart, since they have no place in the order.
func (s *session) writeForeign(w io.Writer, h history.Reader, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	more := max(0, len(ids)-mostForeign)
	var records []*history.Record
	for _, id := range ids[more:] {
		if r, err := h.ReadRun(id); err == nil {
			records = append(records, r)
		} else {
			s.note(fmt.Sprintf("foreign, and cannot be read: %s (%v)", id, err))
		}
	}
	if len(records) == 0 {
		return nil
	}
	slices.Reverse(records)
	fmt.Fprintln(w, "\nforeign, not in this store: they are named by their whole id")
	if err := s.writeLog(w, records); err != nil || more == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "and %d more\n", more)
	return err
}

// logFilter turns flags into a filter; it echoes the time that it understood.
func (s *session) logFilter(o logOptions) (func(*history.Record) bool, error) {
	if o.limit < 0 {
		return nil, usagef("--limit %d: not a number of records", o.limit).Hintf("leave it out to see all")
	}
	since, err := s.logTime("since", o.since)
	if err != nil {
		return nil, err
	}
	until, err := s.logTime("until", o.until)
	if err != nil {
		return nil, err
	}
	if o.patch && s.global.json {
		return nil, usagef("--patch and --json cannot be used together").Hintf("'decree diff --raw REF' prints a record's diff")
	}
	text, err := regexp.Compile(o.grep)
	if err != nil {
		return nil, usagef("--grep %s: not a regular expression", quoteWord(o.grep)).Hintf("put a backslash before each character that is meant literally")
	}
	reason := history.Reason(o.reason)
	switch reason {
	case "", history.Run, history.Turn, history.Manual, history.Auto, history.Publish, history.Restore, history.Revert, history.Apply:
	case view.OutsideReason:
		if len(s.words()) == 0 {
			return nil, usagef("--reason outside needs a PATH").Hintf("'decree log --reason outside .' is all of the directory you are in")
		}
		reason = "" // logPaths tells them apart
	default:
		return nil, usagef("--reason %s: no record has this reason", quoteWord(o.reason)).
			Hintf("it is run, turn, manual, auto, publish, restore, revert or apply")
	}
	return func(r *history.Record) bool {
		return (reason == "" || r.Reason == reason) && (o.grep == "" || s.speaksOf(r, text)) &&
			(since.IsZero() || !r.Started.Before(since)) && (until.IsZero() || !r.Started.After(until))
	}, nil
}

// speaksOf says whether a record's description, prompt, command or labels fit text.
func (s *session) speaksOf(r *history.Record, text *regexp.Regexp) bool {
	labels, err := s.labelsOf(r.ID)
	return text.MatchString(r.Description) || r.Turn != nil && text.MatchString(r.Turn.Prompt) || text.MatchString(strings.Join(r.Command, " ")) || err == nil && slices.ContainsFunc(labels, text.MatchString)
}

// withoutCut leaves out the records whose manifest.json is cut off, and names them.
func (s *session) withoutCut(rec *recorder.Reader, keep func(*history.Record) bool) (func(*history.Record) bool, error) {
	cut, err := rec.History().CutManifests()
	if err != nil || len(cut) == 0 {
		return keep, err
	}
	ids := map[string]bool{}
	for _, d := range cut {
		ids[d.ID] = true
	}
	for _, w := range (&history.Listing{Damaged: cut}).Warnings() {
		s.note(w)
	}
	return func(r *history.Record) bool { return !ids[r.ID] && keep(r) }, nil
}

// logTime understands a flag's TIME and echoes it; "" is the zero time.
func (s *session) logTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := history.ParseTime(text, s.env.Now(), s.env.Location)
	if err == nil {
		s.say("decree: %s %s", flag, s.clock(t))
	}
	return t, err
}

// list returns the records that log shows, and says what is wrong with others.
func (s *session) list(rec *recorder.Reader, limit int, keep func(*history.Record) bool) (*history.Listing, error) {
	listing, err := rec.History().List(history.ListOptions{Limit: limit, Keep: keep})
	if err != nil {
		return nil, err
	}
	for _, w := range listing.Warnings() {
		s.note(w)
	}
	return listing, nil
}

func (s *session) writeLog(w io.Writer, records []*history.Record) error {
	rows := make([]logRow, len(records))
	for i, r := range records {
		rows[i] = logRow{record: r, changes: changesOf(r)}
	}
	return s.writeRows(w, rows)
}

// logRow is a line of the table: a record, or what it found done by none.
type logRow struct {
	record  *history.Record
	outside bool
	changes string
}

// The columns of log's table.
const (
	colID = iota
	colWhen
	colReason
	colStatus
	colWhat
	colChanges
	colCount
)

func (s *session) writeRows(w io.Writer, rows []logRow) error {
	p := s.paint(s.env.Stdout)
	lines, labelled := [][]string{{"ID", "WHEN", "REASON", p.in(plain, "STATUS"), "WHAT", "CHANGES"}}, []string{""}
	for _, row := range rows {
		r := row.record
		if row.outside {
			labelled = append(labelled, "")
			lines = append(lines, []string{"outside", s.ago(r.Started), "", p.in(plain, ""), "found by " + s.shortID(r.ID), row.changes})
			continue
		}
		labels, err := s.labelsOf(r.ID)
		if err != nil {
			return err
		}
		text := ""
		if len(labels) > 0 {
			text = "[" + list(labels) + "] "
		}
		labelled = append(labelled, text)
		lines = append(lines, []string{s.shortID(r.ID), s.ago(r.Started), string(r.Reason), p.in(toneColours[timeline.ToneOf(r)], statusWords(r)), view.What(r), row.changes})
	}
	shown, what := s.logColumns(lines)
	var t table
	for i, cells := range lines {
		cells[colWhat] = labelled[i] + clip(cells[colWhat], what)
		if isTerminal(s.env.Stdout) {
			cells[colWhat] = clip(cells[colWhat], what)
		}
		var kept []string
		for col, c := range cells {
			if shown[col] {
				kept = append(kept, c)
			}
		}
		t.add(kept...)
	}
	return t.write(w)
}

// logColumns says which columns a terminal has room for, and how much of a description
// or command: where it is narrow, what changed and the reason are left out.
func (s *session) logColumns(lines [][]string) (shown [colCount]bool, what int) {
	for i := range shown {
		shown[i] = true
	}
	if !isTerminal(s.env.Stdout) {
		return shown, 48
	}
	const enough = 20
	what = s.columns(s.env.Stdout)
	var widths [colCount]int
	for i := range widths {
		for _, cells := range lines {
			widths[i] = max(widths[i], width(cells[i])+2)
		}
		if i != colWhat {
			what -= widths[i]
		}
	}
	for _, i := range []int{colChanges, colReason} {
		if what < enough {
			shown[i] = false
			what += widths[i]
		}
	}
	return shown, max(what, enough/2)
}
