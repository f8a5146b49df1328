package web

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"decree/history"
	"decree/page"
	"decree/patch"
	"decree/planner"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// Lists of the API have at most so many items, unless more are asked for, and never more than mostItems.
const (
	usualItems = 50
	mostItems  = 1000
)

// items is a part of a list, and where the next part begins.
type items struct {
	Items any    `json:"items"`
	Next  string `json:"next"` // "": there is no more
}

// api gives the routes of the API; see docs/api.md.
func (s *Server) api(look func(string, http.HandlerFunc)) {
	for pattern, do := range map[string]func(*http.Request, *recorder.Reader) (any, error){
		"records":            s.apiRecords,
		"records/{id}":       s.apiRecord,
		"records/{id}/files": s.apiFiles,
		"drafts":             s.apiDrafts,
		"sessions":           s.apiSessions,
		"inbox":              s.apiInbox,
		"health":             s.apiHealth,
	} {
		look("/api/v1/"+pattern, s.reading(func(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
			out, err := do(r, rec)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			answer(w, http.StatusOK, out)
		}))
	}
	look("/api/v1/{$}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"version": s.Version, "read_only": s.ReadOnly, "form": s.form})
	})
	look("/api/v1/records/{id}/diff", s.reading(func(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) { s.apiText(w, r, rec, diffName(r)) }))
	look("/api/v1/records/{id}/log", s.reading(func(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
		s.apiText(w, r, rec, history.RoutineLog)
	}))
	look("/api/v1/tree/{path...}", s.reading(s.apiTree))
	look("/api/v1/events", s.events)
}

func diffName(r *http.Request) string {
	if r.URL.Query().Has("outside") {
		return history.OutsideFile
	}
	return history.ChangesFile
}

// limitOf is how many items are wanted.
func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return usualItems, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, &project.Error{Kind: project.Usage, Msg: "limit: not a number of items"}
	}
	return min(n, mostItems), nil
}

// part is which part of a list is wanted, by a cursor that counts.
func part(r *http.Request) (begin, limit int, err error) {
	if limit, err = limitOf(r); err != nil {
		return 0, 0, err
	}
	text := r.URL.Query().Get("cursor")
	if text == "" {
		return 0, limit, nil
	}
	begin, err = strconv.Atoi(text)
	if err != nil || begin < 0 {
		return 0, 0, &project.Error{Kind: project.Usage, Msg: "cursor: no answer had it", Advice: "begin without one"}
	}
	return begin, limit, nil
}

// listed are the records that keep wants, behind the cursor, newest first.
func listed(r *http.Request, rec *recorder.Reader, keep func(*history.Record) bool) (any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	older := func(*history.Record) bool { return true }
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		last, err := rec.History().Get(cursor)
		if err != nil {
			return nil, err
		}
		older = func(r *history.Record) bool { return history.Compare(r, last) < 0 }
	}
	names, err := rec.History().LabelsOf()
	if err != nil {
		return nil, err
	}
	list, err := rec.History().List(history.ListOptions{Limit: limit + 1, Known: true, Keep: func(r *history.Record) bool { return older(r) && keep(r) }})
	if err != nil {
		return nil, err
	}
	out, next := []json.RawMessage{}, ""
	for i, r := range list.Records {
		if i == limit {
			next = list.Records[i-1].ID
			break
		}
		out = append(out, view.Record(r, names))
	}
	return items{out, next}, nil
}

func (s *Server) apiRecords(r *http.Request, rec *recorder.Reader) (any, error) {
	q := r.URL.Query()
	if !q.Has("path") {
		return listed(r, rec, func(r *history.Record) bool { return !q.Has("reason") || string(r.Reason) == q.Get("reason") })
	}
	path, err := pathOf(q.Get("path"))
	if err != nil {
		return nil, err
	}
	touched := map[string]bool{}
	if _, err := rec.History().Past(history.PastOptions{Paths: []tree.Path{path}}, func(m history.Moment) bool {
		touched[m.Record.ID] = touched[m.Record.ID] || !m.Outside
		return true
	}); err != nil {
		return nil, err
	}
	return listed(r, rec, func(r *history.Record) bool { return touched[r.ID] })
}

func (s *Server) apiRecord(r *http.Request, rec *recorder.Reader) (any, error) {
	at, err := s.Resolve(rec, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	names, err := rec.History().LabelsOf()
	return view.Record(at.Record, names), err
}

// changedFile is a path that a record changed.
type changedFile struct {
	Path    string   `json:"path"`
	Op      patch.Op `json:"op"`
	Change  string   `json:"change"`
	Added   int64    `json:"added_lines"`
	Removed int64    `json:"removed_lines"`
}

func (s *Server) apiFiles(r *http.Request, rec *recorder.Reader) (any, error) {
	begin, limit, err := part(r)
	if err != nil {
		return nil, err
	}
	at, err := s.Resolve(rec, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := []changedFile{}
	diff, err := rec.History().OpenFile(at.Record.ID, diffName(r))
	if errors.Is(err, fs.ErrNotExist) && at.Record.DiffSHA256.IsZero() {
		return items{out, ""}, nil
	}
	if err != nil {
		return nil, err
	}
	defer diff.Close()
	list, total, err := page.Files(diff, begin, limit)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		out = append(out, changedFile{view.Path(f.Path), f.Op, f.Word, f.Added, f.Removed})
	}
	next := ""
	if begin+len(list) < total.All() {
		next = strconv.Itoa(begin + len(list))
	}
	return items{out, next}, nil
}

// apiText streams a file of a record as it is. It is text, and never looked at as anything else.
func (s *Server) apiText(w http.ResponseWriter, r *http.Request, rec *recorder.Reader, name string) {
	at, err := s.Resolve(rec, r.PathValue("id"))
	var file io.ReadCloser
	if err == nil {
		file, err = rec.History().OpenFile(at.Record.ID, name)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := io.Copy(w, file); err != nil {
		panic(http.ErrAbortHandler) // so that half of it does not pass for the whole
	}
}

// apiTree shows what a path was: a file, with ?content its bytes, or all that is below a directory.
func (s *Server) apiTree(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	out, content, err := s.treeAt(r, rec)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case content == nil:
		answer(w, http.StatusOK, out)
	default:
		defer content.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment")
		if _, err := io.Copy(w, content); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func (s *Server) treeAt(r *http.Request, rec *recorder.Reader) (out any, content io.ReadCloser, err error) {
	q := r.URL.Query()
	ref := q.Get("at")
	if ref == "" {
		ref = "last"
	}
	at, err := s.Resolve(rec, ref)
	if err != nil {
		return nil, nil, err
	}
	at.After = at.After || q.Has("after")
	var path tree.Path
	if given := r.PathValue("path"); given != "" {
		if path, err = pathOf(given); err != nil {
			return nil, nil, err
		}
		c, entry, err := rec.Content(r.Context(), at, path)
		switch {
		case entry.Type == tree.Dir:
		case err != nil:
			return nil, nil, err
		case q.Has("content"):
			return nil, c, nil
		default:
			return view.FileAt(at, path, entry), nil, c.Close()
		}
	}
	begin, limit, err := part(r)
	if err != nil {
		return nil, nil, err
	}
	list, next, n := []view.File{}, "", 0
	err = rec.Entries(at, path, func(p tree.Path, e tree.Entry) error {
		switch n++; {
		case n <= begin:
		case len(list) == limit:
			next = strconv.Itoa(begin + limit)
			return errEnough
		default:
			list = append(list, view.FileAt(at, p, e))
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, nil, err
	}
	return items{list, next}, nil, nil
}

func (s *Server) apiDrafts(r *http.Request, rec *recorder.Reader) (any, error) {
	waiting, err := rec.WaitingDraftsNow(r.Context())
	if err != nil {
		return nil, err
	}
	names, err := rec.History().LabelsOf()
	return items{view.WaitingDrafts(waiting, names), ""}, err
}

func (s *Server) apiSessions(r *http.Request, rec *recorder.Reader) (any, error) {
	of := r.URL.Query().Get("session")
	return listed(r, rec, func(r *history.Record) bool {
		return r.Reason == history.Turn && strings.HasPrefix(r.Actor.Session, of)
	})
}

func (s *Server) apiInbox(r *http.Request, rec *recorder.Reader) (any, error) {
	where := r.URL.Query().Get("where")
	if where != "" && where != "dead" && where != "done" {
		return nil, &project.Error{Kind: project.Usage, Msg: "where: it is dead or done, or left out for what waits"}
	}
	begin, limit, err := part(r)
	if err != nil {
		return nil, err
	}
	list, err := s.Messages(rec, where)
	if err != nil {
		return nil, err
	}
	begin = min(begin, len(list))
	end := min(begin+limit, len(list))
	next := ""
	if end < len(list) {
		next = strconv.Itoa(end)
	}
	return items{append([]view.Waiting{}, list[begin:end]...), next}, nil
}

func (s *Server) apiHealth(r *http.Request, rec *recorder.Reader) (any, error) {
	usage, err := rec.Usage()
	if err != nil {
		return nil, err
	}
	checks, err := rec.Doctor(r.Context())
	if err != nil {
		return nil, err
	}
	out := map[string]any{"usage": view.UsageOf(rec.Project(), usage, nil), "doctor": view.Checks(checks), "backup": nil, "audit": nil}
	if report, err := rec.History().ReadAudit(nil); err == nil {
		said := ""
		if err := report.Err(); err != nil {
			said = err.Error()
		}
		out["audit"] = map[string]any{"lines": report.Lines, "broken": report.Broken, "reason": said}
	}
	if usage.Prune != nil {
		out["prune"] = view.PrunedOf(usage.Prune, true)
	}
	if b, err := s.Backup(r.Context()); err == nil {
		out["backup"] = b
	}
	if why, err := timeline.Barred(rec); err == nil {
		out["barred"] = why
	}
	return out, nil
}

// asked is the body of a POST of plan.
type asked struct {
	Operation string   `json:"operation"`
	Ref       string   `json:"ref"`
	Refs      []string `json:"refs"`
	Paths     []string `json:"paths"`
	Marks     []struct {
		Path  string `json:"path"`
		Hunks []int  `json:"hunks"`
	} `json:"marks"`
	Of    string `json:"of"`
	After bool   `json:"after"`
	Limit int    `json:"limit"`
	Force bool   `json:"force"`
	Merge bool   `json:"merge"`
	// Markers is a way of merging: conflicts are marked in the files.
	Markers bool `json:"markers"`
}

// unquoted is a path as JSON has it, or as it is.
func unquoted(text string) (tree.Path, error) {
	if strings.HasPrefix(text, `"`) {
		raw, err := tree.Unquote(text)
		return tree.Path(raw), err
	}
	return tree.Path(text), nil
}

func (a asked) request() (planner.Request, error) {
	q := planner.Request{Operation: a.Operation, Ref: a.Ref, Refs: a.Refs, Of: a.Of, After: a.After, Limit: a.Limit, Force: a.Force, Merge: a.Merge, Markers: a.Markers}
	for _, text := range a.Paths {
		p, err := unquoted(text)
		if err != nil {
			return q, &project.Error{Kind: project.Usage, Msg: err.Error()}
		}
		q.Paths = append(q.Paths, p)
	}
	for _, m := range a.Marks {
		p, err := unquoted(m.Path)
		if err != nil {
			return q, &project.Error{Kind: project.Usage, Msg: err.Error()}
		}
		q.Marks = append(q.Marks, planner.Mark{Path: p, Hunks: m.Hunks})
	}
	return q, nil
}

// body reads a POST's JSON, all of whose fields are known.
func (s *Server) body(w http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		s.badBody(w, r, err)
		return false
	}
	return true
}

func (s *Server) apiPlan(w http.ResponseWriter, r *http.Request) {
	var a asked
	if !s.body(w, r, &a) {
		return
	}
	q, err := a.request()
	var out *planner.Planned
	if err == nil {
		out, err = s.plans.Plan(s.ctx, q)
	}
	s.answerOr(w, r, out, err)
}

func (s *Server) apiPerform(w http.ResponseWriter, r *http.Request) {
	var a struct {
		Plan string `json:"plan"`
	}
	if !s.body(w, r, &a) {
		return
	}
	out, err := s.plans.Perform(s.ctx, a.Plan)
	s.answerOr(w, r, out, err)
}

// answerOr answers with an object, or with an error and the plan that there is in place of the one
// that was asked for.
func (s *Server) answerOr(w http.ResponseWriter, r *http.Request, out any, err error) {
	var stale *planner.StaleError
	var conflict *planner.ConflictError
	f := view.Failure{}
	if err != nil {
		f = view.FailureOf("serve", err)
	}
	switch {
	case errors.As(err, &stale):
		answer(w, http.StatusConflict, map[string]any{"error": f, "new": stale.New})
	case errors.As(err, &conflict) && conflict.Merge != nil:
		answer(w, http.StatusConflict, map[string]any{"error": f, "merge": conflict.Merge})
	case err != nil:
		s.fail(w, r, err)
	default:
		answer(w, http.StatusOK, out)
	}
}
