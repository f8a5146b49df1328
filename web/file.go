package web

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"decree/history"
	"decree/page"
	"decree/patch"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// pastMoments is how many of a file's moments a page has, blameLines how many lines of a file.
const (
	pastMoments = 50
	blameLines  = 500
)

// patientRecords is after how many records the head of a file's page goes out, whether one has changed the file or
// not: in a longer history whoever asks for a path that never was reads on the page that there is none.
var patientRecords = 100

// pathOf is the path of a tree that an address has; it cannot lead out of the tree, nor to what decree
// and git keep there.
func pathOf(given string) (tree.Path, error) {
	p := tree.Path(strings.TrimSuffix(given, "/"))
	if err := p.Check(); p == "" || string(p) != path.Clean(string(p)) || err != nil {
		return "", &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s is no path of a tree", view.OneLine(tree.Clip(given)))}
	}
	return p, nil
}

// filePage is what the page of a file shows at once.
type filePage struct {
	Path   string // raw
	Shown  string
	There  bool // it is in the tree now
	Barred map[string]string
	From   string // the states that are compared
	To     string
}

// moment is one row of a file's past.
type moment struct {
	Frame
	Record       *history.Record
	Badge, What  string
	When, Change string
	Outside      bool
	From         string // its name before
	Path         string
	Why          string
}

// Before is the moment as one says what was before it.
func (m moment) Before() string {
	if m.Outside {
		return "it was " + m.What
	}
	return m.What
}

// file is the page of a file: its past, where its lines come from, and how it was.
func (s *Server) file(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	at, err := pathOf(r.PathValue("path"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	q := r.URL.Query()
	out := filePage{Path: string(at), Shown: view.ShownPath(at), From: q.Get("a"), To: q.Get("b")}
	if out.Barred, err = timeline.Barred(rec); err != nil {
		s.fail(w, r, err)
		return
	}
	f := s.frame(r, out.Shown, "")
	out.There = rec.IsThere(at)
	begun := false
	begin := func() bool {
		begun = begun || s.begin(w, http.StatusOK, "file-begin", f, out)
		return begun
	}
	// The head of the page goes out as soon as the path is known: it is in the tree, or else a record changed it.
	if out.There && !begin() {
		return
	}
	there := begun
	moments, next, err := s.past(rec, f, at, q.Get("before"), begin)
	var never error
	if err == nil && !there && len(moments) == 0 {
		never = s.mustExist(r, rec, at)
	}
	switch {
	case (err != nil || never != nil) && !begun:
		s.fail(w, r, cmp.Or(err, never))
		return
	case never != nil:
		s.say(w, "failure", never.Error())
	case err != nil:
		s.say(w, "failure", "Its past cannot be shown: "+err.Error())
	case !begin():
		return
	}
	for i := range moments {
		moments[i].Why = out.Barred["restore"]
	}
	s.end(w, "file-past", f, struct {
		filePage
		Moments []moment
		Older   string
	}{out, moments, next})
	switch {
	case out.From != "" && out.To != "":
		s.comparison(w, r, rec, at, out.From, out.To)
	case q.Has("blame"):
		s.blame(w, r, rec, at)
	}
	s.end(w, "end", f, nil)
}

// mustExist refuses a path that no record has changed and the newest tree does not have.
func (s *Server) mustExist(r *http.Request, rec *recorder.Reader, at tree.Path) error {
	last, err := s.Resolve(rec, "last")
	if err != nil {
		return err
	}
	c, entry, err := rec.Content(r.Context(), last, at)
	switch {
	case err == nil:
		return c.Close()
	case entry.Type == tree.Dir:
		return nil
	}
	return &project.Error{Kind: project.NotFound, Msg: view.ShownPath(at) + ": no record has changed it, and there is no such file"}
}

// past are the newest moments of a path before a record, and the cursor of older ones. At each, and after the first
// records, it calls goesOn, which may end the look.
func (s *Server) past(rec *recorder.Reader, f Frame, at tree.Path, before string, goesOn func() bool) (list []moment, next string, err error) {
	var from *history.Record
	if before != "" {
		if from, err = rec.History().Get(before); err != nil {
			return nil, "", err
		}
	}
	seen := 0
	o := history.PastOptions{Paths: []tree.Path{at}, Follow: true, Keep: func(r *history.Record) bool {
		if seen++; seen == patientRecords {
			goesOn() // where it cannot, the first moment ends the look
		}
		return from == nil || history.Compare(r, from) < 0
	}}
	last := ""
	_, err = rec.History().Past(o, func(m history.Moment) bool {
		if !goesOn() {
			return false
		}
		if len(list) >= pastMoments && m.Record.ID != last {
			next = last
			return false
		}
		last = m.Record.ID
		row := moment{Frame: f, Record: m.Record, Badge: timeline.Badge(m.Record), What: s.titleOf(rec, m.Record), Outside: m.Outside, Path: string(at),
			When: timeline.When(m.Record.Started, s.Now(), s.Location), Change: view.OpWord(m.Facts[0].Op)}
		if m.Outside {
			row.Badge, row.What = "Outside", "changed outside of any record"
		}
		if len(m.Facts) > 1 {
			row.Change = view.Count(len(m.Facts), "path")
		}
		if m.From != "" {
			row.From = view.ShownPath(m.From)
		}
		list = append(list, row)
		return true
	})
	return list, next, err
}

// pointOf is the state that a REF of a comparison means.
func (s *Server) pointOf(rec *recorder.Reader, ref string) (recorder.Point, error) {
	if ref == "now" {
		return recorder.Point{Now: true}, nil
	}
	before, isBefore := strings.CutPrefix(ref, "before:")
	at, err := s.Resolve(rec, before)
	at.After = !isBefore
	return at, err
}

// comparison draws how a path differs between two states.
func (s *Server) comparison(w io.Writer, r *http.Request, rec *recorder.Reader, at tree.Path, a, b string) {
	heading(w, "compared", "Compared")
	from, err := s.pointOf(rec, a)
	var to recorder.Point
	if err == nil {
		to, err = s.pointOf(rec, b)
	}
	if err == nil && from.Now {
		from, to = to, from
	}
	if err == nil && from.Now {
		err = errors.New("both states are the present one")
	}
	if err != nil {
		s.say(w, "failure", "They cannot be compared: "+err.Error())
		return
	}
	var stat patch.Stat // read when the diff has been read to its end
	diff := piped(func(w io.Writer) (err error) {
		stat, err = rec.Diff(r.Context(), w, recorder.DiffOptions{From: from, To: to, Paths: []tree.Path{at}})
		return err
	})
	defer func() { _ = diff.Close() }()
	next, lines, err := page.Diff(w, diff, page.DiffOptions{Rows: pageLines, Begin: page.ParsePlace(r.URL.Query().Get("at"))})
	switch {
	case err != nil:
		s.say(w, "failure", "They cannot be compared: "+err.Error())
	case lines == 0 && next == nil && stat == (patch.Stat{}):
		s.say(w, "soft", "They are the same.")
	case next != nil:
		q := r.URL.Query()
		q.Set("at", next.String())
		fmt.Fprintf(w, "<p class=\"pages\"><a href=\"?%s#compared\">More of it</a></p>\n", attribute(q.Encode()))
	}
}

// piped is recorder.Piped, and a panic of write is an error of what is read: net/http ends a request alone that panics,
// and write's own goroutine would end the server.
func piped(write func(io.Writer) error) io.ReadCloser {
	return recorder.Piped(func(w io.Writer) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("decree itself failed: %v", p)
			}
		}()
		return write(w)
	})
}

var errEnough = errors.New("the page is full")

// blame draws where the lines of a file come from, as far as a page goes.
func (s *Server) blame(w io.Writer, r *http.Request, rec *recorder.Reader, at tree.Path) {
	heading(w, "blame", "Where its lines come from")
	file, err := rec.Blame(r.Context(), at)
	if err != nil {
		s.say(w, "failure", "It cannot be said: "+err.Error())
		return
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("line"))
	first = max(0, first)
	more := false
	fmt.Fprint(w, "<table class=\"blame\"><thead><tr><th scope=\"col\">By</th><th scope=\"col\">When</th><th scope=\"col\">Line</th><th scope=\"col\">Text</th></tr></thead><tbody>\n")
	last := ""
	err = file.Each(func(i int, l recorder.Blamed) error {
		if i < first {
			return nil
		}
		if i >= first+blameLines {
			more = true
			return errEnough
		}
		by, when, key := page.Text(view.WhatBrought(l.Culprit)), page.Text(""), "outside"
		if l.Record != nil {
			key = l.Record.ID
			when = s.clock().Time(l.Record.Started)
			by = template.HTML("<a href=\""+attribute(s.recordLink(l.Record.ID))+"\">") + by + "</a>"
		}
		if key == last {
			by, when = "", ""
		}
		last = key
		text := l.Text[:min(len(l.Text), page.LongestText)]
		fmt.Fprintf(w, "<tr><td>%s</td><td>%s</td><td class=\"number\">%d</td><td><code>%s</code></td></tr>\n", by, when, i+1, page.Text(string(text)))
		return nil
	})
	fmt.Fprint(w, "</tbody></table>\n")
	if err != nil && !errors.Is(err, errEnough) {
		s.say(w, "failure", "It cannot be read further: "+err.Error())
	}
	if more {
		fmt.Fprintf(w, "<p class=\"pages\"><a href=\"?%s#blame\">More lines</a></p>\n", attribute(url.Values{"blame": {"yes"}, "line": {strconv.Itoa(first + blameLines)}}.Encode()))
	}
}
