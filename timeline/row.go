package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"decree/history"
	"decree/tree"
	"decree/view"
)

// Kind says what a row is.
type Kind string

// The kinds of rows.
const (
	Record  Kind = "record"
	Session Kind = "session" // turns of a coding agent, which are inside it
	Race    Kind = "race"    // candidates, which are inside it
	Outside Kind = "outside" // what the record of the row's ID found changed
	Damaged Kind = "damaged" // a record that cannot be read; What says why
)

// Tone says how a status is to be taken, for who paints it.
type Tone string

// The tones. Every status is also said in words.
const (
	Neutral Tone = ""
	Good    Tone = "good"
	Bad     Tone = "bad"
	Waiting Tone = "waiting" // it goes on, was taken back, or waits for somebody
)

// Row is one line of the history. All texts are safe to print on a line.
type Row struct {
	ID     string // of the record; of several the newest one's
	Kind   Kind
	Badge  string    // Auto, Manual, Run, Turn, Publish, Restore, Revert, Apply, Session, Race, Outside, Damaged
	Time   time.Time // when it began; of several when the newest did
	When   string    // that in words: "today 14:02"
	What   string
	Status string // "succeeded", "failed, put back"; "" where there is none to tell
	Tone   Tone   // of the status
	Judged string // of a candidate: "good" or "bad", "" where nobody judged it

	Created, Modified, Deleted int    // paths
	Added, Removed             int    // lines
	Changed                    string // these in words: "12 files", "" for what changes nothing by itself

	Labels []string
	Name   string // of a race or of a draft, or of the agent of a session
	Label  string // for ears: "Run, make generate, today 14:02, 12 files"
	Inner  []Row  // of a session newest first, of a race by their names

	Record *history.Record // nil for Damaged; of several the newest
}

// Files is how many paths the row changed.
func (r *Row) Files() int { return r.Created + r.Modified + r.Deleted }

// Notable says whether the status tells more than that all went well: of a draft or a race it says what has become of it.
func (r *Row) Notable() bool {
	return r.Status != "" && (r.Tone != Good || r.Name != "" && r.Kind != Session)
}

// Badge is the word for the reason of a record.
func Badge(r *history.Record) string {
	if r.Reason == "" {
		return "Record"
	}
	return strings.ToUpper(string(r.Reason[:1])) + view.OneLine(string(r.Reason[1:]))
}

// ToneOf says how the status of a record is to be taken.
func ToneOf(r *history.Record) Tone {
	switch r.Status {
	case history.StatusSucceeded:
		if r.Draft != nil && r.Draft.Waits() {
			return Waiting
		}
		return Good
	case history.StatusFailed, history.StatusInterrupted:
		return Bad
	case history.StatusReverted, history.StatusUndone, history.StatusOpen:
		return Waiting
	}
	return Neutral
}

// When says in words when something was: "today 14:02", "yesterday 9:10", "20 Nov 14:02",
// "20 Nov 2025 14:02".
func When(t, now time.Time, loc *time.Location) string {
	t, now = t.In(loc), now.In(loc)
	day := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, loc) }
	clock := t.Format("15:04")
	switch {
	case t.IsZero():
		return ""
	case day(t).Equal(day(now)):
		return "today " + clock
	case day(t).Equal(day(now).AddDate(0, 0, -1)):
		return "yesterday " + clock
	case t.Year() == now.Year():
		return t.Format("2 Jan ") + clock
	}
	return t.Format("2 Jan 2006 ") + clock
}

// maker makes rows, all seen from one moment.
type maker struct {
	now    time.Time
	loc    *time.Location
	labels map[string][]string // by record
	get    func(id string) (*history.Record, error)
}

func (m *maker) record(r *history.Record) Row {
	row := Row{
		ID: r.ID, Kind: Record, Badge: Badge(r), Time: r.Started, Record: r, What: view.About(r, m.get),
		Status: view.OneLine(view.StatusWords(r)), Tone: ToneOf(r), Labels: m.labels[r.ID],
	}
	if view.IsCheckpoint(r) {
		row.Status, row.Tone = "", Neutral // it is there, which is all that can be said of it
	}
	if r.Draft != nil {
		row.Name = view.OneLine(r.Draft.Name)
	}
	if !view.IsCheckpoint(r) && r.Status != history.StatusOpen {
		row.count(r.Changes)
		if row.Changed == "" && r.DiffSHA256 != tree.EmptySum {
			row.Changed = "directories only"
		}
		row.Changed = cmp.Or(row.Changed, "nothing")
	}
	if r.Status == history.StatusOpen && r.Reason == history.Run {
		row.Status = "works"
	}
	return m.told(row)
}

// outside is the row of what a record found changed.
func (m *maker) outside(r *history.Record, o history.Outside) Row {
	row := Row{ID: r.ID, Kind: Outside, Badge: "Outside", Time: r.Started, Record: r, What: "changed outside of any record"}
	row.count(o.Changes)
	row.Changed = cmp.Or(row.Changed, "directories only")
	return m.told(row)
}

func (m *maker) damaged(d history.Damage) Row {
	row := Row{ID: d.ID, Kind: Damaged, Badge: "Damaged", Status: "cannot be read", Tone: Bad, What: view.OneLine(d.Err.Error())}
	if chain, _, ok := history.ParseID(d.ID); ok && len(chain) >= len(idSecond) {
		row.Time, _ = time.ParseInLocation(idSecond, chain[:len(idSecond)], time.UTC)
	}
	return m.told(row)
}

// idSecond is how an id begins.
const idSecond = "20060102150405"

// session is the row of turns, newest first, and of what else was recorded in their course.
func (m *maker) session(inner []Row) Row {
	newest := inner[0]
	row := Row{ID: newest.ID, Kind: Session, Badge: "Session", Time: newest.Time, Record: newest.Record, Inner: inner, Name: view.OneLine(newest.Record.Actor.Agent)}
	turns, about := 0, ""
	for _, r := range inner {
		row.add(r)
		if r.Kind == Record && r.Record.Reason == history.Turn {
			turns++
			about = cmp.Or(r.What, about) // what the first prompt asked for
		}
		if r.Kind == Record && r.Record.Status == history.StatusOpen {
			row.Status, row.Tone = "goes on", Waiting
		}
	}
	row.What = cmp.Or(row.Name, "an agent") + ", " + view.Count(turns, "turn")
	if about != "" {
		row.What += ": " + about
	}
	row.Changed = cmp.Or(row.Changed, "nothing")
	return m.told(row)
}

// race is the row of candidates; inside it they stand by their names.
func (m *maker) race(name string, inner []Row) Row {
	newest := inner[0]
	slices.SortStableFunc(inner, func(a, b Row) int { return cmp.Compare(number(a.Name), number(b.Name)) })
	row := Row{ID: newest.ID, Kind: Race, Badge: "Race", Time: newest.Time, Record: newest.Record, Inner: inner, Name: view.OneLine(name)}
	for _, r := range inner {
		row.Labels = append(row.Labels, r.Labels...)
	}
	row.Status, row.Tone = raceStatus(inner)
	row.What = fmt.Sprintf("%s: %s", row.Name, view.Count(len(inner), "candidate"))
	if what := newest.What; what != "" {
		row.What += " of " + what
	}
	return m.told(row)
}

// raceStatus says what has become of candidates.
func raceStatus(inner []Row) (string, Tone) {
	var parts, waiting []string
	works := 0
	for _, r := range inner {
		switch d := r.Record.Draft; {
		case r.Record.Status == history.StatusOpen:
			works++
		case d == nil:
		case d.State == history.DraftPublished:
			parts = append(parts, r.Name+" published")
		case d.State == history.DraftPartly:
			parts = append(parts, r.Name+" published in part")
		case d.Waits():
			waiting = append(waiting, r.Name)
		}
	}
	switch {
	case works > 0:
		return fmt.Sprintf("%d of %d work", works, len(inner)), Waiting
	case len(parts) == 0 && len(waiting) > 0:
		return "waits for a choice", Waiting
	case len(parts) == 0:
		return "discarded", Neutral
	case len(waiting) > 2:
		parts = append(parts, fmt.Sprintf("%d wait", len(waiting)))
	case len(waiting) > 0:
		parts = append(parts, view.List(waiting)+" "+map[bool]string{true: "waits", false: "wait"}[len(waiting) == 1])
	}
	return strings.Join(parts, ", "), Good
}

// number is that of a candidate; one without a name comes last.
func number(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
	if err != nil {
		return 1 << 30
	}
	return n
}

func (r *Row) count(c history.Changes) {
	r.Created, r.Modified, r.Deleted, r.Added, r.Removed = c.Created, c.Modified, c.Deleted, c.AddedLines, c.RemovedLines
	if n := r.Files(); n > 0 {
		r.Changed = view.Count(n, "file")
	}
}

func (r *Row) add(inner Row) {
	if inner.Kind == Outside {
		return
	}
	r.Labels = append(r.Labels, inner.Labels...)
	r.count(history.Changes{Created: r.Created + inner.Created, Modified: r.Modified + inner.Modified, Deleted: r.Deleted + inner.Deleted,
		AddedLines: r.Added + inner.Added, RemovedLines: r.Removed + inner.Removed})
}

// told fills what a row says of itself in words.
func (m *maker) told(r Row) Row {
	r.When = When(r.Time, m.now, m.loc)
	what := r.What
	if r.Kind == Record && r.Name != "" { // candidates of a race are about the same
		what = r.Name + ": " + what
	}
	parts := []string{r.Badge, what, r.When, r.Changed}
	if r.Notable() {
		parts = append(parts, r.Status)
	}
	if r.Kind == Record {
		r.Judged = view.Judged(r.Record)
	}
	if r.Judged != "" {
		parts = append(parts, "judged "+r.Judged)
	}
	r.Label = strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
	return r
}
