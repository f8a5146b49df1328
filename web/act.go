package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"decree/history"
	"decree/page"
	"decree/planner"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// verbs are the words on the buttons, by operation.
var verbs = map[string]string{
	"undo": "Undo", "redo": "Redo", "revert": "Revert", "apply": "Apply", "restore": "Restore", "publish": "Publish", "discard": "Discard",
}

// change opens the project to change it, and tells those who listen what happens. What has begun is
// finished, or taken back where the server ends, also if whoever asked for it is gone.
func (s *Server) change(_ context.Context, create bool) (*recorder.Recorder, error) {
	if _, err := s.reader.Get(); errors.Is(err, recorder.ErrGone) { // nothing is to be made in its place
		return nil, err
	}
	return s.Change(s.ctx, create, s.happened)
}

// barred says why no checkpoint can be made now, as an error.
func (s *Server) barred() error {
	rec, err := s.reader.Get()
	if errors.Is(err, project.ErrNoProject) {
		return nil
	}
	if err != nil {
		return err
	}
	why, err := timeline.Barred(rec)
	if err == nil && why["checkpoint"] != "" {
		err = (&project.Error{Kind: project.Refused, Msg: why["checkpoint"]}).Unchanged()
	}
	return err
}

// checkpoint records the tree as it is.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	description, _, _ := strings.Cut(strings.TrimSpace(r.PostForm.Get("description")), "\n")
	made, err := s.makeCheckpoint(strings.TrimSpace(description))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.back(w, r, "/", "done", made.ID, made.ID)
}

func (s *Server) makeCheckpoint(description string) (made *history.Record, err error) {
	if err := s.barred(); err != nil {
		return nil, err
	}
	err = s.plans.Use(s.ctx, true, func(rec *recorder.Recorder) (err error) {
		made, err = rec.Checkpoint(s.ctx, recorder.CheckpointOptions{Description: description})
		return err
	})
	return made, err
}

// label gives a record a label, or takes it away.
func (s *Server) label(w http.ResponseWriter, r *http.Request) {
	name, id := strings.TrimSpace(r.PostForm.Get("name")), r.PathValue("id")
	ref := id
	if r.PostForm.Has("remove") {
		name, ref = r.PostForm.Get("remove"), ""
	}
	err := s.plans.Use(s.ctx, false, func(rec *recorder.Recorder) error {
		_, err := rec.SetLabel(s.ctx, name, ref)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.back(w, r, "/r/"+id, "", "", "labels")
}

// back leads to a page below the base, with something to say there, at an element of it.
func (s *Server) back(w http.ResponseWriter, r *http.Request, to, key, value, element string) {
	to = ownPage(to)
	u := &url.URL{Path: s.path + to}
	if at, query, ok := strings.Cut(to, "?"); ok {
		u.Path, u.RawQuery = s.path+at, query
	}
	if at, err := url.PathUnescape(u.Path); err == nil {
		u.Path, u.RawPath = at, u.Path
	}
	q := u.Query()
	q.Del("done")
	q.Del("said")
	if key != "" {
		q.Set(key, value)
	}
	u.RawQuery = q.Encode()
	if history.IsID(element) {
		element = "r-" + element
	}
	u.Fragment = element
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

// shownPlan is a plan that somebody looks at, and where he came from. Of its paths it has the first.
type shownPlan struct {
	*planner.Planned
	Counted   string // how many paths there are, in words
	More      int    // how many there are beside those that it has
	From, Row string
	Stale     bool // it took the place of one that was no longer so
	Merge     bool // it took the place of one that was in conflict
	Anew      bool // what was marked is to be marked again, in this one
	Asked     planner.Request
	Conflicts conflicts
	Ways      []wayOut // of a conflict, beside the merge that the plan is
}

// of has it show a plan, of which it keeps no more than its page has: the paths of a large tree take megabytes.
func (p *shownPlan) of(made *planner.Planned) {
	few, directories := *made, 0
	for _, step := range made.Paths {
		if step.Dir {
			directories++
		}
	}
	p.Counted = view.PathsIn(len(made.Paths)-directories, directories)
	few.Paths = slices.Clone(made.Paths[:min(len(made.Paths), planPaths)])
	p.Planned, p.More = &few, len(made.Paths)-len(few.Paths)
}

// mostShown is how many plans are remembered to be shown; a planner remembers as many.
const mostShown = 100

func (s *Server) remember(p *shownPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.shown[p.ID]; !known {
		s.order = append(s.order, p.ID)
		if len(s.order) > mostShown {
			delete(s.shown, s.order[0])
			s.order = slices.Delete(s.order, 0, 1)
		}
	}
	s.shown[p.ID] = p
}

func (s *Server) recall(id string) (*shownPlan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.shown[id]; ok {
		return p, nil
	}
	return nil, (&project.Error{Kind: project.NotFound, Msg: "this plan is no longer remembered"}).Unchanged().Hintf("go back, and ask for it again")
}

// requestOf is what a form asks to be planned.
func requestOf(form url.Values) (planner.Request, error) {
	q := planner.Request{
		Operation: form.Get("operation"), Ref: form.Get("ref"), Of: form.Get("of"),
		After: form.Get("after") != "", Force: form.Get("force") != "", Refs: form["also"],
	}
	var err error
	if q.Paths, err = pathsOf(form["path"]); err != nil {
		return q, err
	}
	if q.Exclude, err = pathsOf(form["exclude"]); err != nil {
		return q, err
	}
	if q.Marks, err = marksOf(form["mark"]); err != nil {
		return q, err
	}
	if len(q.Marks) == 0 {
		q.Of = ""
	}
	q.OfRecord = q.Of == "" && q.HasHunks()
	if form.Has("marked") && len(q.Marks) == 0 {
		return q, &project.Error{Kind: project.Usage, Msg: "nothing is marked", Advice: "mark files or hunks first"}
	}
	return q, nil
}

// pathsOf are paths of a form, which cannot hold all of their bytes.
func pathsOf(escaped []string) (paths []tree.Path, err error) {
	for _, text := range escaped {
		p, err := url.PathUnescape(text)
		if err != nil {
			return nil, &project.Error{Kind: project.Usage, Msg: err.Error()}
		}
		paths = append(paths, tree.Path(p))
	}
	return paths, nil
}

// formOf is the form from which requestOf has the request.
func formOf(q planner.Request) url.Values {
	form := url.Values{"operation": {q.Operation}}
	for name, value := range map[string]string{"ref": q.Ref, "of": q.Of} {
		if value != "" {
			form.Set(name, value)
		}
	}
	for name, on := range map[string]bool{"after": q.After, "force": q.Force} {
		if on {
			form.Set(name, "yes")
		}
	}
	form["also"] = q.Refs
	for _, p := range q.Paths {
		form.Add("path", url.PathEscape(string(p)))
	}
	for _, p := range q.Exclude {
		form.Add("exclude", url.PathEscape(string(p)))
	}
	for _, m := range q.Marks {
		for _, hunk := range m.Hunks {
			form.Add("mark", page.Mark(m.Path, hunk))
		}
		if len(m.Hunks) == 0 {
			form.Add("mark", page.Mark(m.Path, 0))
		}
	}
	return form
}

// marksOf are the values of check boxes; a file that is marked comes with all of its hunks.
func marksOf(values []string) (marks []planner.Mark, err error) {
	at := map[tree.Path]int{}
	for _, v := range values {
		path, hunk, err := page.ParseMark(v)
		if err != nil {
			return nil, &project.Error{Kind: project.Usage, Msg: err.Error()}
		}
		i, known := at[path]
		if !known {
			i, at[path] = len(marks), len(marks)
			marks = append(marks, planner.Mark{Path: path, Hunks: []int{}})
		}
		if hunk == 0 {
			marks[i].Hunks = nil
		} else if marks[i].Hunks != nil {
			marks[i].Hunks = append(marks[i].Hunks, hunk)
		}
	}
	return marks, nil
}

// plan makes a plan, and leads to the page that shows it.
func (s *Server) plan(w http.ResponseWriter, r *http.Request) {
	q, err := requestOf(r.PostForm)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	from := &shownPlan{From: r.PostForm.Get("from"), Row: r.PostForm.Get("row")}
	if from.Row == "" {
		from.Row = q.Ref
	}
	s.planned(w, r, q, from)
}

func (s *Server) planned(w http.ResponseWriter, r *http.Request, q planner.Request, p *shownPlan) {
	p.Asked = q
	made, err := s.plans.Plan(s.ctx, q)
	var refused *planner.ConflictError
	var stale *planner.StaleError
	switch {
	case errors.As(err, &refused):
		made, p.Merge, p.Conflicts, p.Ways = refused.Merge, true, s.inTheWay(q, refused), waysOf(refused)
		if made == nil {
			s.page(w, http.StatusConflict, "conflict", s.frameOf("Conflict", ""), refusal{view.FailureOf("serve", err), p})
			return
		}
		p.Anew = q.HasHunks() && len(made.Request.Marks) == 0
	case errors.As(err, &stale):
		made, p.Stale = stale.New, true
		p.Anew = len(q.Marks) > 0 && len(made.Request.Marks) == 0
	case err != nil:
		s.fail(w, r, err)
		return
	}
	p.of(made)
	s.remember(p)
	if p.Stale || p.Merge {
		s.planPage(w, r, http.StatusConflict, p)
		return
	}
	http.Redirect(w, r, s.path+"/plan/"+p.ID, http.StatusSeeOther)
}

// showPlan is the page of a plan.
func (s *Server) showPlan(w http.ResponseWriter, r *http.Request) {
	p, err := s.recall(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.planPage(w, r, http.StatusOK, p)
}

// planRows is how many lines of a plan's diff its page has, planPaths how many of its paths.
const (
	planRows  = 400
	planPaths = 100
)

// planView is what the page of a plan shows.
type planView struct {
	*shownPlan
	Verb    string
	Nothing bool
	Marks   bool // files and hunks can be marked in it
}

func (s *Server) planPage(w http.ResponseWriter, r *http.Request, status int, p *shownPlan) {
	v := planView{shownPlan: p, Verb: verbs[p.Request.Operation], Nothing: len(p.Paths) == 0 && len(p.Drafts) == 0}
	v.Marks = len(p.Request.Marks) == 0 && !v.Nothing && slices.Contains([]string{"revert", "apply", "publish"}, p.Request.Operation)
	f := s.frame(r, v.Verb, "")
	if !s.begin(w, status, "plan-begin", f, v) {
		return
	}
	if !v.Nothing {
		s.planDiff(w, p.ID, v.Marks)
	}
	s.end(w, "plan-end", f, v)
}

// planDiff draws what a plan would change, as far as one looks through before one confirms it.
func (s *Server) planDiff(w io.Writer, id string, marks bool) {
	diff := piped(func(to io.Writer) error { return s.plans.Diff(s.ctx, to, id) })
	defer func() { _ = diff.Close() }()
	next, _, err := page.Diff(w, diff, page.DiffOptions{Marks: marks, Rows: planRows})
	switch {
	case err != nil:
		s.say(w, "failure", "What it changes cannot be shown: "+err.Error())
	case next != nil:
		s.say(w, "faint", "There is more, which is not shown here: the list of paths above, or the command with --dry-run, has all of it.")
	}
}

// perform does what a plan said, if it still holds. What is marked on its page is planned first.
func (s *Server) perform(w http.ResponseWriter, r *http.Request) {
	if r.PostForm.Has("mark") {
		s.plan(w, r)
		return
	}
	p, err := s.recall(r.PostForm.Get("plan"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	done, err := s.plans.PerformOnce(s.ctx, p.ID)
	var stale *planner.StaleError
	switch fresh := (&shownPlan{From: p.From, Row: p.Row, Asked: p.Asked}); {
	case errors.As(err, &stale):
		fresh.of(stale.New)
		fresh.Stale = true
		s.remember(fresh)
		s.planPage(w, r, http.StatusConflict, fresh)
		return
	case errors.As(err, new(*recorder.ConflictError)): // what was edited since the plan may be merged
		again := p.Asked
		if again.Of != "" { // which holds no longer
			again = p.Request
		}
		s.planned(w, r, again, fresh)
		return
	case err != nil:
		s.fail(w, r, err)
		return
	}
	key, value := "said", "nothing"
	if id := recordOf(done); id != "" {
		key, value = "done", id
		s.proven(id, done)
	} else if len(done.Drafts) > 0 {
		value = "discarded"
	}
	s.back(w, r, p.From, key, value, p.Row)
}

// recordOf is the id of the record that was made; "" where nothing had to be done.
func recordOf(d *planner.Done) string {
	r, err := history.ParseRecord(d.Record)
	if err != nil || r == nil {
		return ""
	}
	return r.ID
}

// proof is what was compared when a record was made, and in how many files conflicts were marked or not.
type proof struct {
	words         string
	marked, moved int
}

// proven remembers it for the record's banner.
func (s *Server) proven(id string, done *planner.Done) {
	p := proof{done.Proof, done.Marked, done.Moved}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.proofs) > mostShown {
		clear(s.proofs)
	}
	s.proofs[id] = p
}

// retry has a dead message wait again.
func (s *Server) retry(w http.ResponseWriter, r *http.Request) {
	err := s.plans.Use(s.ctx, false, func(rec *recorder.Recorder) error {
		return s.Retry(s.ctx, rec, r.PostForm.Get("name"))
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.back(w, r, "/inbox", "said", "waits", "waiting")
}

// Back is where a plan that is not performed leads.
func (p *shownPlan) Back() string { return ownPage(p.From) }

// ownPage is an address below the base that a form has given, or the first page where it leads to another server.
func ownPage(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
		return "/"
	}
	return to
}
