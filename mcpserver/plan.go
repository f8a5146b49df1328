package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"decree/planner"
	"decree/recorder"
	"decree/view"
)

type planArguments struct {
	Operation string   `json:"operation,omitempty" jsonschema:"one of undo, redo, revert, apply, restore, publish"`
	Ref       string   `json:"ref,omitempty" jsonschema:"the record; of a publish, the draft"`
	Refs      []string `json:"refs,omitempty" jsonschema:"several records, of a revert or apply"`
	Paths     []string `json:"paths,omitempty" jsonschema:"only these, relative to the root of the tree"`
	Limit     int      `json:"limit,omitempty" jsonschema:"of an undo or redo: how many changes; one unless given"`
	Plan      string   `json:"plan,omitempty" jsonschema:"for more paths of a plan, in place of all others: the id that it has"`
	Cursor    string   `json:"cursor,omitempty" jsonschema:"with plan: next_cursor of the answer before"`
}

// plannedPart is a plan, with some of its paths.
type plannedPart struct {
	*planner.Planned
	part
}

// donePart is what was performed, with the first of its paths.
type donePart struct {
	*planner.Done
	part
}

// part says what an answer leaves out of what it is about. How many files there are in all is in its counts.
type part struct {
	Next      string `json:"next_cursor,omitempty"`
	MorePaths int    `json:"more_paths,omitempty"` // that come after those that the answer has
}

// mostSteps is how many paths of a plan, and how many notes beside them, an answer has.
const mostSteps = 100

// cut leaves in a walk its paths from first on that an answer has room for, and the first of its notes.
func cut(w *view.Walk, first int) part {
	w.Paths = w.Paths[min(first, len(w.Paths)):]
	n, size := 0, 0
	for _, step := range w.Paths[:min(len(w.Paths), mostSteps)] {
		size += len(step.Path) + len(step.Reason)
		for _, id := range step.Later {
			size += len(id)
		}
		if n > 0 && size > maxText {
			break
		}
		n++
	}
	out := part{MorePaths: len(w.Paths) - n}
	if w.Paths = w.Paths[:n]; out.MorePaths > 0 {
		out.Next = strconv.Itoa(first + n)
	}
	if more := len(w.Notes) - mostSteps; more > 0 {
		w.Notes = append(slices.Clip(w.Notes[:mostSteps]), fmt.Sprintf("and %s more", view.Count(more, "note")))
	}
	return out
}

type performArguments struct {
	Plan string `json:"plan" jsonschema:"the id that plan gave"`
}

func planAbout(allowed bool) string {
	about := `Say what an operation would do to each path, and change nothing (the answer has at most 100 paths; with next_cursor there are more: call plan with its plan id as plan, and that cursor): undo (take back the newest change that stands, again and again the one before it), redo (the other way), revert (take back what the records named changed), apply (bring it again), restore (make the tree, or paths, as a record found them), publish (bring a draft's work into the tree). It is refused where files were edited since.`
	if !allowed {
		return about + " This server may not perform plans: show the user what it says; they can do it with decree itself, or start the server with --allow-write."
	}
	return about + " The answer has a plan id for perform."
}

func (s *server) checkpoint(ctx context.Context, a arguments) (out any, err error) {
	err = s.planner.Use(ctx, true, func(rec *recorder.Recorder) error {
		made, err := rec.Checkpoint(ctx, recorder.CheckpointOptions{Description: a.Description})
		if err == nil {
			out = view.Record(made, nil)
		}
		return err
	})
	return out, err
}

func (s *server) plan(ctx context.Context, a planArguments) (any, error) {
	made, err := s.planOf(ctx, a)
	if err != nil {
		return nil, err
	}
	first, err := offset(a.Cursor)
	if err != nil {
		return nil, err
	}
	few := *made
	rest := cut(&few.Walk, int(min(first, int64(len(few.Paths)))))
	return plannedPart{&few, rest}, nil
}

// planOf is a new plan, or the one that was made before and that more is to be seen of.
func (s *server) planOf(ctx context.Context, a planArguments) (*planner.Planned, error) {
	switch asks := a.Operation != "" || a.Ref != "" || len(a.Refs)+len(a.Paths)+a.Limit != 0; {
	case a.Plan != "" && asks:
		return nil, usagef("a plan that was made is looked at by its id and a cursor alone")
	case a.Plan != "":
		return s.planner.Again(ctx, a.Plan)
	case a.Cursor != "":
		return nil, usagef("a cursor is of a plan that was made").Hintf("give its id as plan, and no operation")
	}
	if a.Operation == "discard" { // work that was never published goes by the user's own hand
		return nil, usagef("operation %q is not known", a.Operation).Hintf("it is one of undo, redo, revert, apply, restore and publish")
	}
	rec, err := s.reader.Get()
	if err != nil {
		return nil, err
	}
	paths, err := pathsOf(rec.Project().Root, a.Paths)
	if err != nil {
		return nil, err
	}
	return s.planner.Plan(ctx, planner.Request{Operation: a.Operation, Ref: a.Ref, Refs: a.Refs, Paths: paths, Limit: a.Limit})
}

func (s *server) perform(ctx context.Context, a performArguments) (any, error) {
	done, err := s.planner.Perform(ctx, a.Plan)
	if err != nil {
		return nil, err
	}
	rest := cut(&done.Walk, 0)
	rest.Next = "" // its record has all of it
	return donePart{done, rest}, nil
}
