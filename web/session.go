package web

import (
	"net/http"
	"slices"
	"strconv"

	"decree/history"
	"decree/page"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/view"
)

// sessionTurns is how many records of a session a page has; sessionFiles how many files of each.
const (
	sessionTurns = 50
	sessionFiles = 12
)

// exchange is one thing of a session's conversation: a turn, or a record that moved files meanwhile.
type exchange struct {
	Frame
	Record      *history.Record
	Badge, What string
	When, State string
	Prompt      string
	Files       []page.File
	More        int
	Turn        bool
	Why         string
}

// session is the page of a session of a coding agent, as a conversation.
func (s *Server) session(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	id := r.PathValue("id")
	// The newest of it says that there is one: the head of the page goes out, and then all records are looked at.
	newest, err := rec.History().List(history.ListOptions{Known: true, Limit: 1, Of: []history.Mark{history.Naming(id)}, Keep: func(o *history.Record) bool { return o.Actor.Session == id }})
	if err == nil && len(newest.Records) == 0 {
		err = &project.Error{Kind: project.NotFound, Msg: "there is no session " + view.OneLine(id)}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	f := s.frame(r, "Session", "timeline")
	if !s.begin(w, http.StatusOK, "session-begin", f, struct{ Agent, ID string }{newest.Records[0].Actor.Agent, id}) {
		return
	}
	defer s.end(w, "end", f, nil)
	list, err := sessionOf(rec, id, r.URL.Query().Get("before"))
	var barred map[string]string
	if err == nil {
		barred, err = timeline.Barred(rec)
	}
	if err != nil {
		s.say(w, "failure", "Its turns cannot be listed: "+err.Error())
		return
	}
	older := ""
	if len(list) > sessionTurns {
		list = list[:sessionTurns]
		older = list[sessionTurns-1].ID
	}
	var talk []exchange
	for _, o := range slices.Backward(list) {
		talk = append(talk, s.exchange(rec, f, o, barred["restore"]))
	}
	s.end(w, "session", f, struct {
		Older string
		Talk  []exchange
	}{older, talk})
}

// moves mark the records that moved files.
var moves = []history.Mark{history.Naming(string(history.Restore)), history.Naming(string(history.Revert)), history.Naming(string(history.Apply)), history.Naming(string(history.Publish))}

// sessionOf are the records of a session, newest first, with those that moved files in its course.
func sessionOf(rec *recorder.Reader, id, before string) ([]*history.Record, error) {
	var last *history.Record
	if before != "" {
		var err error
		if last, err = rec.History().Get(before); err != nil {
			return nil, err
		}
	}
	of, err := rec.History().List(history.ListOptions{Known: true, Limit: sessionTurns + 1, Of: []history.Mark{history.Naming(id)}, Before: last, Keep: func(r *history.Record) bool {
		return r.Actor.Session == id
	}})
	if err != nil || len(of.Records) == 0 {
		return nil, err
	}
	oldest, newest := of.Records[len(of.Records)-1], of.Records[0]
	moved, err := rec.History().List(history.ListOptions{Known: true, Limit: 4 * sessionTurns, Of: moves, Keep: func(r *history.Record) bool {
		return r.Actor.Session != id && did[r.Reason] != "" && !view.IsCheckpoint(r) && history.Compare(r, oldest) > 0 && (last == nil || history.Compare(r, newest) < 0)
	}})
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, r := range of.Records {
		ours[r.ID] = true
	}
	list := of.Records
	for _, r := range moved.Records {
		about := ours[r.Parent]
		for _, undone := range r.Walked.Undoes {
			about = about || ours[undone]
		}
		if about || history.Compare(r, newest) < 0 {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b *history.Record) int { return history.Compare(b, a) })
	return list, nil
}

func (s *Server) exchange(rec *recorder.Reader, f Frame, r *history.Record, why string) exchange {
	e := exchange{Frame: f, Record: r, Badge: timeline.Badge(r), What: s.titleOf(rec, r), When: timeline.When(r.Started, s.Now(), s.Location), Why: why}
	if r.Turn != nil {
		e.Turn, e.Prompt = true, r.Turn.Prompt
		e.State = map[bool]string{true: "goes on", false: ""}[r.Status == history.StatusOpen]
		if r.Turn.EndedBy == history.EndedByOther {
			e.State = "ended without a word"
		}
	}
	if r.DiffSHA256.IsZero() {
		return e
	}
	e.Files, e.More = filesOf(rec, r.ID, sessionFiles)
	return e
}

// List draws the files, each with a link to its place in the record's diff.
func (e exchange) List() any {
	return page.FileList(e.Files, func(f page.File) string {
		return e.Base + "/r/" + e.Record.ID + "?changes-at=" + page.Place{Section: f.Index}.String() + "#changes"
	})
}

// About says which of the session's things a button is for.
func (e exchange) About() string {
	if e.Turn {
		return "turn " + strconv.Itoa(e.Record.Actor.Turn)
	}
	return e.What
}
