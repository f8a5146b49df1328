package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"

	"decree/history"
	"decree/project"
	"decree/timeline"
	"decree/view"
)

// pageRows is how many rows a page of a list has.
const pageRows = 50

// timelinePage is what the page of all records shows.
type timelinePage struct {
	*timeline.Page
	Query, Wrong string // the filter, and what is wrong with it
	Help         string
	Cursor       string
	Older        string // the address of what is older
	Barred       map[string]string
	Newest       string // the id of the newest record, for who waits for newer ones
	Waiting      int    // drafts
	Folded       int    // how many rows a session or race shows of what is inside it
}

// timeline is the page of all records, newest first.
func (s *Server) timeline(w http.ResponseWriter, r *http.Request) {
	rec, err := s.reader.Get()
	if errors.Is(err, project.ErrNoProject) {
		s.page(w, http.StatusOK, "nothing", s.frameOf("Timeline", "timeline"), nil)
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	q := r.URL.Query()
	out := timelinePage{Query: q.Get("q"), Cursor: q.Get("before"), Help: timeline.FilterHelp}
	filter, err := timeline.ParseFilter(out.Query, s.Location, s.Now())
	if err != nil { // it is shown beside the filter, with all records
		out.Wrong = err.Error()
		if hint := project.HintOf(err); hint != "" {
			out.Wrong += ": " + hint
		}
		filter, _ = timeline.ParseFilter("", s.Location, s.Now())
	}
	if out.Page, err = timeline.List(r.Context(), rec, filter, out.Cursor, pageRows); err == nil {
		out.Barred, err = timeline.Barred(rec)
	}
	if err == nil {
		out.Newest, err = newest(rec.History())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out.Folded = folded(out.Rows)
	if out.Next != "" {
		older := url.Values{"before": {out.Next}}
		if out.Query != "" {
			older.Set("q", out.Query)
		}
		out.Older = s.path + "/?" + older.Encode()
	}
	s.page(w, http.StatusOK, "timeline", s.frame(r, "Timeline", "timeline"), out)
}

// foldedRows is about how many rows a page of the timeline has inside its sessions and races.
const foldedRows = 80

// folded is how many rows each session and race shows of what is inside it: their own pages have all of it.
func folded(rows []timeline.Row) int {
	folds := 0
	for _, r := range rows {
		folds += min(1, len(r.Inner))
	}
	return max(1, foldedRows/max(1, folds))
}

// newest is the newest record's id; "" if there is none.
func newest(h history.Reader) (string, error) {
	list, err := h.List(history.ListOptions{Limit: 1, Known: true})
	if err != nil || len(list.Records) == 0 {
		return "", err
	}
	return list.Records[0].ID, nil
}

// banner says what was done.
type banner struct {
	Did  string // "Restored"
	What string
	ID   string // of its record; "": there is none
	// Proof says what was compared.
	Proof string
	Rest  string // what is left to do
	// Undo and Ref are the operation that takes it back; "" where nothing was changed.
	Undo, Ref string
}

// Word is the word on its button.
func (b *banner) Word() string { return map[bool]string{true: "Redo", false: "Undo"}[b.Undo == "redo"] }

// Key is the key of its button.
func (b *banner) Key() string { return map[bool]string{true: "U", false: "u"}[b.Undo == "redo"] }

// wayBack is the operation that takes a record back in the chain of changes, of which it is the newest: an undo, and of
// an undo a redo; "" where it is none.
func wayBack(h history.Reader, r *history.Record) string {
	if r.Isolated != "" || r.Inside != "" || r.Status == history.StatusOpen || r.Status == history.StatusUndone || view.IsCheckpoint(r) || r.DiffSHA256.IsZero() {
		return ""
	}
	if last, err := newest(h); err != nil || last != r.ID {
		return ""
	}
	if r.Walked.Undoes != nil {
		return "redo"
	}
	return "undo"
}

// did are the words for what records have done, by their reason.
var did = map[history.Reason]string{
	history.Restore: "Restored", history.Revert: "Reverted", history.Apply: "Applied", history.Publish: "Published",
	history.Manual: "Checkpoint created", history.Auto: "Checkpoint created",
}

// bannerOf is the banner of a record that was just made; nil for what is none.
func (s *Server) bannerOf(h history.Reader, id string) *banner {
	if id == "" {
		return nil
	}
	r, err := h.Get(id)
	if err != nil || did[r.Reason] == "" {
		return nil
	}
	b := &banner{Did: did[r.Reason], What: view.About(r, h.Get), ID: r.ID}
	s.mu.Lock()
	was := s.proofs[id]
	s.mu.Unlock()
	b.Proof = was.words
	if was.marked > 0 {
		b.Did, b.Rest = "Conflicts written", "Both sides are in "+view.Count(was.marked, "file")+", between <<<<<<< and >>>>>>>, for you to choose from."
		if was.moved > 0 {
			b.Did = did[r.Reason] + ", with conflicts"
		}
	}
	if r.Walked.Undoes != nil && was.marked == 0 {
		b.Did = "Undone"
	}
	if view.IsCheckpoint(r) || r.Status == history.StatusUndone {
		return b
	}
	if b.Undo = wayBack(h, r); b.Undo == "" {
		b.Undo, b.Ref = "revert", r.ID
	}
	b.What = cmp.Or(b.What, r.ID)
	return b
}
