package web

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"decree/history"
	"decree/page"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// What one page of a record has at most; the rest is on further ones.
const (
	pageFiles   = 200
	pageLines   = 1500
	pageLog     = 64 << 10
	mostRelated = 20
)

// recordPage is what the page of a record shows of it at once.
type recordPage struct {
	Record  *history.Record
	Badge   string
	What    string
	Facts   []page.Fact
	Labels  []string
	Barred  map[string]string
	Moves   bool // it can be reverted and applied
	Waits   bool // it is a draft
	Ref     string
	Race    string
	Session string
	Proof   string
	Back    string // undo or redo, of the newest change; "" for none
}

// clock is how pages tell times.
func (s *Server) clock() page.Clock { return page.Clock{Now: s.Now(), Location: s.Location} }

// recordLink is the address of a record's page.
func (s *Server) recordLink(id string) string { return s.path + "/r/" + url.PathEscape(id) }

// fileLink is the address of a file's page.
func (s *Server) fileLink(path tree.Path) string { return s.path + "/f/" + urlPath(string(path)) }

// found is the record that an address names. What cannot be read is shown as that, not as an error of
// the server.
func (s *Server) found(w http.ResponseWriter, r *http.Request, rec *recorder.Reader, ref string) *history.Record {
	at, err := s.Resolve(rec, ref)
	switch {
	case err == nil:
		return at.Record
	case statusOf(err) == http.StatusInternalServerError:
		f := view.FailureOf("", err)
		f.Hint = cmp.Or(f.Hint, "'decree doctor --repair' brings back what the store still has")
		s.page(w, http.StatusOK, "error", s.frame(r, "This record cannot be read", "timeline"), f)
	default:
		f := view.FailureOf("", err)
		if history.IsID(ref) && statusOf(err) == http.StatusNotFound {
			f.Hint = "Old records are pruned after each new one, and this one may be among them: 'decree audit' tells what was removed, 'decree help config' how long records stay, and a label keeps one."
		}
		s.failed(w, r, statusOf(err), f)
	}
	return nil
}

// titleOf is what a page is called that is of a record: a candidate's has its name, too.
func (s *Server) titleOf(rec *recorder.Reader, r *history.Record) string {
	what := cmp.Or(view.About(r, rec.History().Get), r.ID)
	if r.Draft != nil && r.Draft.Name != "" {
		return view.Called(r) + ": " + what
	}
	return what
}

// record is the page of one record.
func (s *Server) record(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	record := s.found(w, r, rec, r.PathValue("id"))
	if record == nil {
		return
	}
	labels, err := rec.History().LabelsOf()
	out := recordPage{Record: record, Badge: timeline.Badge(record), What: s.titleOf(rec, record), Ref: record.ID, Session: record.Actor.Session}
	if err == nil {
		out.Labels = labels[record.ID]
		out.Barred, err = timeline.Barred(rec)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	shown := out.Labels
	if !s.ReadOnly { // they are in the form that changes them
		shown = nil
	}
	out.Facts = slices.DeleteFunc(page.Facts(record, page.FactOptions{Labels: shown, Clock: s.clock(), Link: s.recordLink}), func(f page.Fact) bool {
		return f.Name == "About" && f.Value == page.Text(view.What(record)) // the heading has it
	})
	out.Waits = record.Draft != nil && record.Draft.Waits()
	out.Moves = record.Isolated == "" && !view.IsCheckpoint(record) && record.Status != history.StatusOpen && record.Reason != history.Manual
	if record.Draft != nil {
		out.Race, _, _ = raceOf(record.Draft.Name)
	}
	out.Proof = s.proofOf(record)
	f := s.frame(r, out.Badge+": "+out.What, "")
	if f.Banner == nil || f.Banner.Undo == "" { // else the banner has the button
		out.Back = wayBack(rec.History(), record)
	}
	if !s.begin(w, http.StatusOK, "record-begin", f, out) {
		return
	}
	q := r.URL.Query()
	s.related(w, rec, record)
	if _, ok := record.Outside(); ok {
		s.diffPart(w, f, rec, diffPart{record: record, name: history.OutsideFile, id: "outside", title: "Changed outside, before it"}, q)
	}
	if !record.DiffSHA256.IsZero() {
		title := "What it changed"
		if out.Waits {
			title = "What it would change"
		}
		s.diffPart(w, f, rec, diffPart{record: record, name: history.ChangesFile, id: "changes", title: title, marks: out.Moves || out.Waits, draft: out.Waits, barred: out.Barred}, q)
	}
	s.logPart(w, rec, record, history.RoutineLog, "log", "What it printed", q)
	if record.Judge != nil {
		s.logPart(w, rec, record, history.JudgeLog, "judge", "What its judge printed", q)
	}
	s.end(w, "end", f, nil)
}

// proofOf says what of a record was compared or recorded by hash, and when.
func (s *Server) proofOf(r *history.Record) string {
	at := timeline.When(r.Ended, s.Now(), s.Location)
	switch n := r.Changes.Created + r.Changes.Modified + r.Changes.Deleted; {
	case r.Ended.IsZero():
		return ""
	case did[r.Reason] != "" && !view.IsCheckpoint(r):
		return view.Count(n, "file") + ", verified by hash " + at
	case r.Status == history.StatusReverted:
		return view.Count(n, "file") + " put back, verified by hash " + at
	case r.Files > 0:
		return view.Count(r.Files, "file") + ", recorded by hash " + at
	}
	return ""
}

// related lists a record's neighbours: what came before, what was made of it or inside it.
func (s *Server) related(w io.Writer, rec *recorder.Reader, record *history.Record) {
	h := rec.History()
	row := func(word string, r *history.Record) {
		fmt.Fprintf(w, "<li><span class=\"soft\">%s</span> %s <a href=\"%s\">%s</a> %s</li>\n", word, page.Badge(timeline.Badge(r)),
			attribute(s.recordLink(r.ID)), page.Text(s.titleOf(rec, r)), s.clock().Time(r.Started))
	}
	before, err := h.List(history.ListOptions{Limit: 1, Known: true, Before: record, Keep: func(o *history.Record) bool {
		return o.Isolated == "" && o.Status != history.StatusOpen
	}})
	if err != nil {
		return
	}
	children, err := h.List(history.ListOptions{Limit: mostRelated, Known: true, Of: []history.Mark{history.Naming(record.ID)}, Keep: func(o *history.Record) bool {
		return o.Parent == record.ID || o.Inside == record.ID || o.Turn != nil && o.Turn.Continues == record.ID
	}})
	if err != nil || len(before.Records)+len(children.Records) == 0 {
		return
	}
	fmt.Fprint(w, "<nav class=\"related\" aria-label=\"Related records\"><ul>\n")
	for _, o := range before.Records {
		row("before it", o)
	}
	for _, o := range children.Records {
		word := "from it"
		if o.Inside == record.ID {
			word = "inside it"
		}
		row(word, o)
	}
	fmt.Fprint(w, "</ul></nav>\n")
}

// diffPart is one of a record's diffs on its page.
type diffPart struct {
	record          *history.Record
	name, id, title string
	marks, draft    bool
	barred          map[string]string
}

// open is the diff.
func (p diffPart) open(rec *recorder.Reader) (io.ReadCloser, error) {
	return rec.History().OpenFile(p.record.ID, p.name)
}

// to is the same page with something else of this part.
func (p diffPart) to(q url.Values, key, value string) string {
	q = maps.Clone(q)
	q.Del("done")
	q.Del("said")
	q.Set(key, value)
	return "?" + q.Encode() + "#" + p.id
}

// diffPart draws a diff: its files, and its lines as far as a page goes.
func (s *Server) diffPart(w io.Writer, f Frame, rec *recorder.Reader, p diffPart, q url.Values) {
	heading(w, p.id, p.title)
	place := page.ParsePlace(q.Get(p.id + "-at"))
	total, ok := s.diffFiles(w, rec, p, q, place)
	if !ok {
		return
	}
	split := q.Get("view") == "split"
	other, word := "split", "Side by side"
	if split {
		other, word = "", "One below the other"
	}
	fmt.Fprintf(w, "<p class=\"pages\"><a href=\"%s\">%s</a></p>\n", attribute(p.to(q, "view", other)), word)
	diff, err := p.open(rec)
	if err != nil {
		s.say(w, "failure", "It cannot be shown: "+err.Error())
		return
	}
	defer diff.Close()
	marks := p.marks && !f.ReadOnly
	if marks {
		s.end(w, "marks-begin", f, p)
	}
	rows := pageLines
	if total.All() > pageFiles { // of many files the heads are most of a page
		rows = pageFiles
	}
	next, _, err := page.Diff(w, diff, page.DiffOptions{Split: split, Marks: marks, Begin: place, Rows: rows, Name: p.id + "-", Link: s.fileLink})
	if marks {
		fmt.Fprint(w, "</form>\n")
	}
	if err != nil {
		s.say(w, "failure", "It is damaged: "+err.Error())
	}
	if next != nil {
		fmt.Fprintf(w, "<nav class=\"pages\" aria-label=\"Pages of the diff\"><a rel=\"next\" href=\"%s\">More of the diff</a></nav>\n", attribute(p.to(q, p.id+"-at", next.String())))
	}
}

// diffFiles lists the files of a diff, as far as a page goes, and says how many there are, and whether there are lines to be drawn.
func (s *Server) diffFiles(w io.Writer, rec *recorder.Reader, p diffPart, q url.Values, place page.Place) (total page.Total, ok bool) {
	diff, err := p.open(rec)
	if err != nil {
		s.say(w, "failure", "It cannot be shown: "+err.Error()+". 'decree doctor --repair' brings back what the store still has.")
		return total, false
	}
	defer diff.Close()
	begin, _ := strconv.Atoi(q.Get(p.id + "-files"))
	begin = max(0, begin)
	files, total, err := page.Files(diff, begin, pageFiles)
	if total.All() == 0 && err == nil {
		s.say(w, "soft", "Nothing.")
		return total, false
	}
	fmt.Fprint(w, page.FileList(files, func(file page.File) string {
		if place == (page.Place{}) && file.Index < 40 && total.All() <= 40 {
			return "#" + page.SectionID(p.id+"-", file.Index)
		}
		return p.to(q, p.id+"-at", page.Place{Section: file.Index}.String())
	}))
	if end := begin + len(files); end < total.All() {
		fmt.Fprintf(w, "<p class=\"pages\">%d to %d of %s <a href=\"%s\">More files</a></p>\n", begin+1, end, page.Text(total.String()), attribute(p.to(q, p.id+"-files", strconv.Itoa(end))))
	}
	if err != nil {
		s.say(w, "failure", "It is damaged: "+err.Error())
	}
	return total, err == nil
}

// ID, Draft and Why are for the template of the form around a diff.
func (p diffPart) ID() string { return p.record.ID }

// Draft says whether what is marked is published, or else taken back or brought again.
func (p diffPart) Draft() bool { return p.draft }

// Why says why an operation cannot be done now.
func (p diffPart) Why(operation string) string { return p.barred[operation] }

// logPart draws what a command printed, as far as a page goes.
func (s *Server) logPart(w io.Writer, rec *recorder.Reader, record *history.Record, name, id, title string, q url.Values) {
	log, err := rec.History().OpenFile(record.ID, name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	heading(w, id, title)
	if err != nil {
		s.say(w, "failure", "It cannot be shown: "+err.Error())
		return
	}
	defer log.Close()
	from, _ := strconv.ParseInt(q.Get(id), 10, 64)
	in := bufio.NewReader(log)
	if _, err := in.Peek(1); errors.Is(err, io.EOF) {
		s.say(w, "soft", "Nothing.")
		return
	}
	fmt.Fprintf(w, "<pre class=\"log\" tabindex=\"0\" role=\"region\" aria-labelledby=\"%s\">", id)
	next, err := page.Log(w, in, page.LogOptions{Begin: max(0, from), Bytes: pageLog})
	fmt.Fprint(w, "</pre>\n")
	if err != nil {
		s.say(w, "failure", "It cannot be read further: "+err.Error())
	}
	if next > 0 {
		q := maps.Clone(q)
		q.Set(id, strconv.FormatInt(next, 10))
		fmt.Fprintf(w, "<p class=\"pages\"><a href=\"?%s#%s\">More of it</a></p>\n", attribute(q.Encode()), id)
	}
}

// Bad says that the judge of a race found it bad.
func (p recordPage) Bad() bool { return view.Judged(p.Record) == "bad" }

// Words say what the buttons do with this record, where that is easily mistaken.
func (p recordPage) Words() string {
	switch {
	case p.Waits && p.Bad():
		return "Its judge found it bad."
	case p.Waits, p.Record.Isolated != "", p.Record.Status == history.StatusOpen:
		return ""
	case p.Record.Reason == history.Restore:
		return "Restore and Revert lead back to the state before it; Apply restores again."
	case p.Moves:
		return "Restore makes all files what they were before it; Revert takes back only what it changed, and Apply does that again."
	}
	return "Restore makes all files what they were then."
}
