package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// maxPlans is how many plans a server remembers.
const maxPlans = 100

// planned is what a client has planned, and what the plan saw.
type planned struct {
	arguments planArguments
	seen      string
}

type planArguments struct {
	Operation string   `json:"operation" jsonschema:"one of undo, redo, revert, apply, restore, publish"`
	Ref       string   `json:"ref,omitempty" jsonschema:"the record; of a publish, the draft"`
	Refs      []string `json:"refs,omitempty" jsonschema:"several records, of a revert or apply"`
	Paths     []string `json:"paths,omitempty" jsonschema:"only these, relative to the root of the tree"`
	Limit     int      `json:"limit,omitempty" jsonschema:"of an undo or redo: how many changes; one unless given"`
}

type performArguments struct {
	Plan string `json:"plan" jsonschema:"the id that plan gave"`
}

// attempt is one try at an operation.
type attempt struct {
	planArguments
	paths  []tree.Path // below the root
	dryRun bool
	// ok is asked about a plan, where the operation asks, before anything is changed.
	ok func(*plan.Plan) (bool, error)
}

// operations are what can be planned.
var operations = map[string]func(context.Context, *recorder.Recorder, attempt) (*recorder.MoveResult, error){
	"undo": func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Undo(ctx, a.undoOptions())
	},
	"redo": func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Redo(ctx, a.undoOptions())
	},
	"revert": func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Revert(ctx, a.moveOptions())
	},
	"apply": func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Apply(ctx, a.moveOptions())
	},
	"restore": func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Restore(ctx, recorder.RestoreOptions{Ref: a.Ref, Paths: a.paths, DryRun: a.dryRun,
			Confirm: func(_ recorder.Point, p *plan.Plan) (bool, error) { return a.ok(p) }})
	},
	"publish": func(ctx context.Context, rec *recorder.Recorder, a attempt) (*recorder.MoveResult, error) {
		return rec.Publish(ctx, recorder.PublishOptions{Ref: a.Ref, Paths: a.paths, DryRun: a.dryRun, Confirm: a.ok})
	},
}

func (a attempt) moveOptions() recorder.MoveOptions {
	refs := a.Refs
	if a.Ref != "" {
		refs = append([]string{a.Ref}, refs...)
	}
	return recorder.MoveOptions{Refs: refs, Paths: a.paths, DryRun: a.dryRun,
		Confirm: func(p *plan.Plan, _ []string) (bool, error) { return a.ok(p) }}
}

func (a attempt) undoOptions() recorder.UndoOptions {
	return recorder.UndoOptions{N: a.Limit, Paths: a.paths, DryRun: a.dryRun,
		Confirm: func(p *plan.Plan, _ []string) (bool, error) { return a.ok(p) }}
}

func planAbout(allowed bool) string {
	about := `Say what an operation would do to each path, and change nothing: undo (take back the newest change that stands, again and again the one before it), redo (the other way), revert (take back what the records named changed), apply (bring it again), restore (make the tree, or paths, as a record found them), publish (bring a draft's work into the tree). It is refused where files were edited since.`
	if !allowed {
		return about + " This server may not perform plans: show the user what it says; they can do it with decree itself, or start the server with --allow-write."
	}
	return about + " The answer has a plan id for perform."
}

func (a planArguments) check() error {
	walks, named := a.Operation == "undo" || a.Operation == "redo", a.Ref != "" || len(a.Refs) > 0
	switch {
	case operations[a.Operation] == nil:
		return usagef("operation %q is not known", a.Operation).Hintf("it is one of undo, redo, revert, apply, restore and publish")
	case walks && named:
		return usagef("%s takes no ref", a.Operation).Hintf("it takes the newest change; revert is of any record")
	case a.Limit < 0 || a.Limit > 0 && !walks:
		return usagef("limit %d: only an undo or redo has one, which is positive", a.Limit)
	case a.Operation == "restore" && (a.Ref == "" || len(a.Refs) > 0), a.Operation == "publish" && len(a.Refs) > 0:
		return usagef("a %s is of one ref", a.Operation)
	case !named && !walks && a.Operation != "publish":
		return usagef("a ref is missing").Hintf(`"last" is the newest record; history lists them`)
	}
	return nil
}

func (s *server) checkpoint(ctx context.Context, a arguments) (any, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	rec, err := s.Change(ctx, true)
	if err != nil {
		return nil, err
	}
	made, err := rec.Checkpoint(ctx, recorder.CheckpointOptions{Description: a.Description})
	if err = errors.Join(err, rec.Close()); err != nil {
		return nil, err
	}
	return view.Record(made, nil), nil
}

func (s *server) plan(ctx context.Context, a planArguments) (any, error) {
	var id string
	out, err := s.with(ctx, a, func(rec *recorder.Recorder, paths []tree.Path) (*recorder.MoveResult, error) {
		res, seen, err := s.look(ctx, rec, a, paths)
		if err == nil {
			id = s.remember(a, seen)
		}
		return res, err
	}, true)
	if err != nil {
		return nil, err
	}
	out.Plan = id
	return out, nil
}

// answer is what a plan or its performance says.
type answer struct {
	Plan string `json:"plan,omitempty"`
	view.Move
	// Records are those that an undo or redo is of, Passed those that it passed over.
	Records []string          `json:"records,omitempty"`
	Passed  []view.PassedOver `json:"passed,omitempty"`
}

// with opens the project to do something planned in it, and returns it as the command line shows it.
func (s *server) with(ctx context.Context, a planArguments, do func(*recorder.Recorder, []tree.Path) (*recorder.MoveResult, error), dryRun bool) (_ *answer, err error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	rec, err := s.Change(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	paths, err := pathsOf(rec.Project().Root, a.Paths)
	if err != nil {
		return nil, err
	}
	res, err := do(rec, paths)
	if err != nil {
		return nil, err
	}
	names, err := labels(rec.Reader)
	if err != nil {
		return nil, err
	}
	notes := append([]string{}, res.Notes...)
	if res.Outcome != nil {
		notes = append(notes, res.Outcome.Notes...)
	}
	out := view.WalkOf(res, dryRun, notes, names)
	return &answer{Move: out.Move, Records: out.Records, Passed: out.Passed}, nil
}

// look makes the plan, and says in short what it saw.
func (s *server) look(ctx context.Context, rec *recorder.Recorder, a planArguments, paths []tree.Path) (*recorder.MoveResult, string, error) {
	res, err := operations[a.Operation](ctx, rec, attempt{planArguments: a, paths: paths, dryRun: true})
	if err != nil {
		return nil, "", err
	}
	last, err := newest(rec.Reader.History())
	return res, last + " " + sawOf(res.Plan), err
}

// sawOf says in short what a plan saw at its paths and makes of them.
func sawOf(p *plan.Plan) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	for _, it := range p.Items {
		fmt.Fprintf(&b, "%q %+v %+v %s\n", it.Path, it.From, it.To, it.Verdict)
	}
	return short([]byte(b.String()))
}

func (s *server) remember(a planArguments, seen string) string {
	what, _ := json.Marshal(a) // texts alone
	id := short(append(what, seen...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.plans[id]; !known {
		s.order = append(s.order, id)
		if len(s.order) > maxPlans {
			delete(s.plans, s.order[0])
			s.order = s.order[1:]
		}
	}
	s.plans[id] = planned{a, seen}
	return id
}

func (s *server) recall(id string) (planned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.plans[id]
	if !ok {
		return p, (&project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("no plan %q is known here", id)}).Unchanged().Hintf("call plan: its answer has the id; a plan lives as long as the server")
	}
	return p, nil
}

func errStale() error {
	return (&project.Error{Kind: project.Refused, Msg: "one of the plan's paths, or the newest record, is no longer what the plan saw"}).Unchanged().Hintf("call plan again, and look at what it says now")
}

func (s *server) perform(ctx context.Context, a performArguments) (any, error) {
	p, err := s.recall(a.Plan)
	if err != nil {
		return nil, err
	}
	return s.with(ctx, p.arguments, func(rec *recorder.Recorder, paths []tree.Path) (res *recorder.MoveResult, err error) {
		err = rec.Hold(ctx, rec.Wait(), true, func() error {
			res, err = s.performHeld(ctx, rec, p, paths)
			return err
		})
		return res, err
	}, false)
}

// performHeld performs a plan under the lock, if the tree and the records are what it saw.
func (s *server) performHeld(ctx context.Context, rec *recorder.Recorder, p planned, paths []tree.Path) (*recorder.MoveResult, error) {
	res, seen, err := s.look(ctx, rec, p.arguments, paths)
	if err != nil {
		return nil, err
	}
	if seen != p.seen {
		return nil, errStale()
	}
	// What is asked about must be the same plan still. Nothing is forced, so a file that is
	// edited in between is refused by the operation itself.
	want := sawOf(res.Plan)
	return operations[p.arguments.Operation](ctx, rec, attempt{planArguments: p.arguments, paths: paths, ok: func(now *plan.Plan) (bool, error) {
		if sawOf(now) != want {
			return false, errStale()
		}
		return true, nil
	}})
}
