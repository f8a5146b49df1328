// Package planner plans what moves files, shows it, and performs what was shown.
//
// A plan says what an undo, redo, revert, apply, restore, publish or discard would do to each
// path, and changes nothing. It is remembered under an id, as what was asked and a hash of what the plan
// saw: the state of each path, what it comes to, and which record is the newest. Perform plans
// again under the lock, and does it only if that hash is the same; else it says so with a [StaleError],
// which has the new plan.
//
// Marks choose files and hunks. They answer the questions of 'revert -p', 'apply -p' and 'publish
// -p' ([decree/plan.Plan.Choose]), so that marks and typed answers give the same bytes. Hunks are
// counted in the plan's own diff, as [Planner.Diff] writes it, not in that of the record: the
// two may part the same change in other places.
package planner

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// What a planner remembers is bounded: the oldest plans go.
const (
	maxPlans    = 100
	maxRemember = 8 << 20 // bytes of requests
)

// Options are what a planner works on.
type Options struct {
	// Change opens the project to change it; with create one is made where there is none.
	// The planner closes what it gets.
	Change func(ctx context.Context, create bool) (*recorder.Recorder, error)
	// Barred says which operations cannot be performed now, and why, as timeline's does; nil: what
	// the recorder allows is allowed.
	Barred func(*recorder.Reader) (map[string]string, error)
}

// Planner is safe for concurrent use.
type Planner struct {
	opt Options

	// changing is held by the call that changes something.
	changing sync.Mutex

	mu    sync.Mutex
	plans map[string]*list.Element // of remembered
	order *list.List               // the oldest first
	size  int                      // bytes of the requests
}

// remembered is a plan that was shown.
type remembered struct {
	id      string
	request Request
	seen    string
	size    int
	// done is what was performed, without its paths, nil as long as nothing was, and last the newest record then;
	// changing guards both.
	done *Done
	last string
}

// New returns a planner that remembers nothing yet.
func New(o Options) *Planner {
	return &Planner{opt: o, plans: map[string]*list.Element{}, order: list.New()}
}

// Planned is a plan that is remembered. Of an undo or redo Records are those that it is of.
type Planned struct {
	ID string `json:"plan"`
	view.Walk
	// Drafts are those that a discard gives up.
	Drafts   []json.RawMessage `json:"drafts,omitempty"`
	Question string            `json:"question"` // says in words what will happen
	Command  string            `json:"command"`  // the line that does the same, typed in the root of the tree
	// Barred is why it cannot be performed now; "" where it can.
	Barred string `json:"barred,omitempty"`
	// Request is what the plan is of.
	Request Request `json:"-"`
}

// Done is what was performed. Record is null where nothing had to be done.
type Done struct {
	view.Walk
	Drafts []json.RawMessage `json:"drafts,omitempty"`
	Proof  string            `json:"proof,omitempty"` // "212 files, verified by hash 14:02"
	// Moved and Marked are how many of the paths are as was wanted now, and how many have conflicts marked in them.
	Moved  int `json:"-"`
	Marked int `json:"-"`
}

// withoutPaths is what is remembered of it: the paths of a large tree take megabytes.
func (d *Done) withoutPaths() *Done {
	out := *d
	out.Paths = nil
	return &out
}

// StaleError refuses what is no longer what its plan saw; nothing was changed.
type StaleError struct {
	New *Planned // what the same request would do now
}

func (e *StaleError) Error() string {
	return "one of the plan's paths, or the newest record, is no longer what the plan saw; " + project.Unchanged
}

// Category is Refused.
func (e *StaleError) Category() project.Kind { return project.Refused }

// LeftIn is [project.Unchanged].
func (e *StaleError) LeftIn() string { return project.Unchanged }

// Hint is the next step to take.
func (e *StaleError) Hint() string { return "call plan again, and look at what it says now" }

// ConflictError is a conflict, with the plan that merges, where one can be made.
type ConflictError struct {
	*recorder.ConflictError
	Merge   *Planned // nil: edits and the record's change cannot both stay
	Request Request  // what was refused
}

// Way is one way out of a conflict, as both faces offer it.
type Way struct {
	Key     string   // of the keyboard
	Does    string   // on a button: "overwrite the edits"
	Words   string   // what it does, after its key or its button
	Merge   *Planned // of a merge the plan that there is
	Request Request  // of another one what is to be planned
}

// Ways are what can be done about the conflict, what touches least first.
func (e *ConflictError) Ways() (out []Way) {
	if e.Merge != nil {
		w := Way{Key: "m", Does: "merge hunk by hunk", Words: "merges: what was edited since stays, and you choose hunk by hunk.", Merge: e.Merge}
		if len(e.Merge.Request.Marks) > 0 {
			w.Does, w.Words = "merge what is marked", "merges what is marked: what was edited since stays."
		}
		out = append(out, w)
	}
	if q, ok := e.Request.others(e.Items); ok {
		out = append(out, Way{Key: "o", Does: "the others alone", Words: "leaves what is in the way as it is, and goes on with the others.", Request: q})
	}
	if q, ok := e.Request.forced(); ok {
		w := Way{Key: "f", Does: "overwrite the edits", Words: "overwrites what was edited since, which is kept and can be brought back.", Request: q}
		if q.HasHunks() {
			w.Words = "overwrites what was edited since in the hunks that are marked; it is kept and can be brought back."
		}
		out = append(out, w)
	}
	return out
}

func (e *ConflictError) Unwrap() error { return e.ConflictError }

// Use opens the project for do, while no other call of the planner changes anything.
func (p *Planner) Use(ctx context.Context, create bool, do func(*recorder.Recorder) error) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	return p.open(ctx, create, do)
}

func (p *Planner) open(ctx context.Context, create bool, do func(*recorder.Recorder) error) (err error) {
	rec, err := p.opt.Change(ctx, create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	return do(rec)
}

// Plan says what the request would do. A conflict is a *[ConflictError], and so a
// *[recorder.ConflictError] too. Where the request has marks of a plan (Of) and that is no longer what
// would be done, it is a *[StaleError], whose new plan has no marks.
func (p *Planner) Plan(ctx context.Context, q Request) (out *Planned, err error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.OfRecord && q.HasHunks() {
		return p.ofRecord(ctx, q)
	}
	if q.Of != "" {
		of, err := p.recall(q.Of)
		if err != nil {
			return nil, err
		}
		q.Paths, q.Exclude, q.Force = of.request.Paths, of.request.Exclude, of.request.Force
		q.Merge, q.Markers = of.request.Merge, of.request.Markers
	}
	err = p.open(ctx, false, func(rec *recorder.Recorder) (err error) {
		if err := p.ofPlan(ctx, rec, q); err != nil {
			return err
		}
		q.Of = ""
		out, err = p.planWith(ctx, rec, q)
		return err
	})
	return out, err
}

// ofPlan refuses marks whose numbers were read from a plan that is stale.
func (p *Planner) ofPlan(ctx context.Context, rec *recorder.Recorder, q Request) error {
	if q.Of == "" {
		return nil
	}
	of, err := p.recall(q.Of)
	if err != nil {
		return err
	}
	whole := q.whole()
	now, err := look(ctx, rec, whole, nil)
	if err != nil {
		return err
	}
	if now.seen == of.seen {
		return nil
	}
	fresh, err := p.planned(rec, whole, now)
	if err != nil {
		return err
	}
	return &StaleError{New: fresh}
}

func (p *Planner) planWith(ctx context.Context, rec *recorder.Recorder, q Request) (*Planned, error) {
	s, err := look(ctx, rec, q, nil)
	if conflict, ok := errors.AsType[*recorder.ConflictError](err); ok {
		return nil, p.conflict(ctx, rec, q, conflict)
	}
	if err != nil {
		return nil, err
	}
	return p.planned(rec, q, s)
}

// conflict is the error of a request that is refused, with the plan that merges.
func (p *Planner) conflict(ctx context.Context, rec *recorder.Recorder, q Request, refusal *recorder.ConflictError) error {
	out := &ConflictError{ConflictError: refusal, Request: q}
	for _, q := range q.merges() {
		s, err := look(ctx, rec, q, nil)
		if err != nil {
			continue // the refusal is what is to be said
		}
		if out.Merge, err = p.planned(rec, q, s); err != nil {
			return err
		}
		break
	}
	return out
}

// planned remembers a plan, and returns it as it is shown.
func (p *Planner) planned(rec *recorder.Recorder, q Request, s *sight) (*Planned, error) {
	names, err := labelsOf(rec)
	if err != nil {
		return nil, err
	}
	why, err := p.barred(rec, q)
	if err != nil {
		return nil, err
	}
	w := words{rec: rec, now: rec.Now(), request: q, sight: s}
	return &Planned{
		ID: p.remember(q, s.seen), Walk: walkOf(s.result, true, names), Drafts: draftsOf(s.drafts, names),
		Question: w.question(), Command: w.command(), Barred: why, Request: q,
	}, nil
}

// Again is a plan that was made, as long as it still holds: what [Planner.Plan] returned, for who looks at it in parts.
// It is a *[StaleError] where the plan is another one by now.
func (p *Planner) Again(ctx context.Context, id string) (out *Planned, err error) {
	of, err := p.recall(id)
	if err != nil {
		return nil, err
	}
	err = p.open(ctx, false, func(rec *recorder.Recorder) error {
		s, err := p.still(ctx, rec, of, nil)
		if err == nil {
			out, err = p.planned(rec, of.request, s)
		}
		return err
	})
	return out, err
}

// Perform does what the plan said, if it still holds. Its record can be taken back, but for a discard.
func (p *Planner) Perform(ctx context.Context, id string) (*Done, error) {
	return p.perform(ctx, id, false)
}

// PerformOnce is Perform for who may click twice: of what was performed already, and not followed by another record, the
// answer is the same, but has no paths.
func (p *Planner) PerformOnce(ctx context.Context, id string) (*Done, error) {
	return p.perform(ctx, id, true)
}

func (p *Planner) perform(ctx context.Context, id string, once bool) (*Done, error) {
	of, err := p.recall(id)
	if err != nil {
		return nil, err
	}
	var done *Done
	err = p.Use(ctx, false, func(rec *recorder.Recorder) error {
		if once && of.done != nil {
			if last, err := newest(rec); err != nil || last == of.last {
				done = of.done
				return err
			}
		}
		why, err := p.barred(rec, of.request)
		if err == nil && why != "" {
			err = (&project.Error{Kind: project.Refused, Msg: why}).Unchanged()
		}
		if err != nil {
			return err
		}
		var s *sight
		err = rec.Hold(ctx, rec.Wait(), of.request.Operation != discard, func() (err error) {
			s, err = performHeld(ctx, rec, of)
			return err
		})
		if err != nil {
			return err
		}
		if done, err = doneOf(rec, s); err == nil && (s.result.Record != nil || len(s.drafts) > 0) {
			of.done = done.withoutPaths()
			of.last, err = newest(rec)
		}
		return err
	})
	if errors.Is(err, errStale) {
		fresh, perr := p.Plan(ctx, of.request)
		if perr != nil {
			return nil, perr
		}
		return nil, &StaleError{New: fresh}
	}
	return done, err
}

// barred is why a request cannot be performed now, or "".
func (p *Planner) barred(rec *recorder.Recorder, q Request) (string, error) {
	if p.opt.Barred == nil {
		return "", nil
	}
	all, err := p.opt.Barred(rec.Reader)
	return all[q.Operation], err
}

func doneOf(rec *recorder.Recorder, s *sight) (*Done, error) {
	names, err := labelsOf(rec)
	if err != nil {
		return nil, err
	}
	out := &Done{Walk: walkOf(s.result, false, names), Drafts: draftsOf(s.drafts, names)}
	for _, step := range out.Paths {
		switch step.Verdict {
		case plan.Marked:
			out.Marked++
		case plan.Move, plan.Merged:
			out.Moved++
		}
	}
	if r := s.result.Record; r != nil {
		out.Proof = fmt.Sprintf("%s, verified by hash %s", view.Count(out.Created+out.Modified+out.Deleted, "file"), r.Ended.In(rec.Now().Location()).Format("15:04"))
	}
	return out, nil
}

// Diff writes what the plan would change, in the format of changes.diff, as it is made: none
// of it is held. Of a discard it is what the drafts have changed.
func (p *Planner) Diff(ctx context.Context, w io.Writer, id string) error {
	of, err := p.recall(id)
	if err != nil {
		return err
	}
	return p.open(ctx, false, func(rec *recorder.Recorder) error {
		s, err := p.still(ctx, rec, of, func(shown *plan.Plan) error { return rec.PlanDiff(ctx, w, shown) })
		if err != nil {
			return err
		}
		for _, d := range s.drafts {
			if err := copyDiff(rec, w, d.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyDiff(rec *recorder.Recorder, w io.Writer, id string) error {
	f, err := rec.History().OpenFile(id, history.ChangesFile)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// still is the plan as it would be made now, if that is what it was; show is given it then.
func (p *Planner) still(ctx context.Context, rec *recorder.Recorder, of *remembered, show func(*plan.Plan) error) (*sight, error) {
	s, err := look(ctx, rec, of.request, func(now *plan.Plan, seen string) error {
		if show == nil || seen != of.seen {
			return nil
		}
		return show(now)
	})
	if err != nil || s.seen == of.seen {
		return s, err
	}
	fresh, err := p.planned(rec, of.request, s)
	if err != nil {
		return nil, err
	}
	return nil, &StaleError{New: fresh}
}

func (p *Planner) remember(q Request, seen string) string {
	what, _ := json.Marshal(q) // texts and numbers alone
	sum := tree.Sum(append(what, seen...))
	id := sum.String()[:16]
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.plans[id]; known {
		return id
	}
	p.plans[id] = p.order.PushBack(&remembered{id: id, request: q, seen: seen, size: len(what)})
	p.size += len(what)
	for p.order.Len() > 1 && (p.order.Len() > maxPlans || p.size > maxRemember) {
		old := p.order.Remove(p.order.Front()).(*remembered)
		delete(p.plans, old.id)
		p.size -= old.size
	}
	return id
}

func (p *Planner) recall(id string) (*remembered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.plans[id]
	if !ok {
		return nil, (&project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("no plan %q is known here", id)}).Unchanged().Hintf("call plan: its answer has the id; a plan lives as long as the server")
	}
	return at.Value.(*remembered), nil
}

// walkOf shows a result as the command line does.
func walkOf(res *recorder.MoveResult, dryRun bool, names view.Labels) view.Walk {
	notes := append([]string{}, res.Notes...)
	if res.Outcome != nil {
		notes = append(notes, res.Outcome.Notes...)
	}
	return view.WalkOf(res, dryRun, notes, names)
}

func labelsOf(rec *recorder.Recorder) (view.Labels, error) {
	found, err := rec.History().LabelsOf()
	return view.Labels(found), err
}

func draftsOf(list []recorder.Discarded, names view.Labels) (out []json.RawMessage) {
	for _, d := range list {
		out = append(out, view.Record(d.Record, names))
	}
	return out
}
