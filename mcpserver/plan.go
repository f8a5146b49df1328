package mcpserver

import (
	"context"

	"decree/planner"
	"decree/recorder"
	"decree/view"
)

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

func planAbout(allowed bool) string {
	about := `Say what an operation would do to each path, and change nothing: undo (take back the newest change that stands, again and again the one before it), redo (the other way), revert (take back what the records named changed), apply (bring it again), restore (make the tree, or paths, as a record found them), publish (bring a draft's work into the tree). It is refused where files were edited since.`
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
	return s.planner.Perform(ctx, a.Plan)
}
