// Package mcpserver shows a project's records to a program that speaks the Model Context
// Protocol, and lets it make checkpoints, plan what takes changes back, and, where that is
// allowed, do what it has planned.
//
// Answers are the JSON objects of the command line, as text: names, prompts and contents of
// the tree are data, so what a terminal would obey is escaped in it. Each answer is bounded; where there is
// more it has next_cursor, which the next call gives as cursor. The server asks nothing of its
// client: no roots, no sampling, no logging.
package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"decree/planner"
	"decree/project"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// Options are what a server works on.
type Options struct {
	// Read opens the project to look at it. It is called until it succeeds once.
	Read func() (*recorder.Reader, error)
	// Change opens the project to change it; with create one is made where there is none.
	// The server closes what it gets.
	Change func(ctx context.Context, create bool) (*recorder.Recorder, error)
	// Resolve finds the record that a REF names.
	Resolve func(rec *recorder.Reader, ref string) (recorder.Point, error)
	// AllowWrite lets the client perform what it has planned.
	AllowWrite bool
	Version    string
}

const instructions = `decree records the tree that you work in: each run of a command, each turn of a coding agent, and checkpoints. Look with history, show, diff and blame. Before something risky make a checkpoint. To take work back, call plan: it says what would happen to each path and changes nothing. A REF is a record's id, a unique end of it, "last", "last~2", or a label. Paths are relative to the root of the tree.`

// server is safe for concurrent use.
type server struct {
	Options

	planner *planner.Planner
	reader  *recorder.KeptReader
}

// arguments are those of all tools; each takes some of them.
type arguments struct {
	Ref         string   `json:"ref,omitempty" jsonschema:"a record: its id, a unique end of it, last, last~2, a label"`
	Refs        []string `json:"refs,omitempty" jsonschema:"several records"`
	Paths       []string `json:"paths,omitempty" jsonschema:"files or directories, relative to the root of the tree"`
	Limit       int      `json:"limit,omitempty" jsonschema:"at most so many"`
	Cursor      string   `json:"cursor,omitempty" jsonschema:"next_cursor of the answer before"`
	Description string   `json:"description,omitempty" jsonschema:"what the checkpoint is for"`
}

// New returns a server that is to be run. Close it when it has ended.
func New(o Options) (s *mcp.Server, done func() error) {
	srv := &server{Options: o, planner: planner.New(planner.Options{Change: o.Change}), reader: recorder.KeepReader(o.Read)}
	s = mcp.NewServer(&mcp.Implementation{Name: "decree", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	look := func(name, about string, do func(context.Context, *recorder.Reader, arguments) (any, error)) {
		add(s, name, about, &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}, func(ctx context.Context, a arguments) (any, error) {
			rec, err := srv.reader.Get()
			if err != nil {
				return nil, err
			}
			return do(ctx, rec, a)
		})
	}
	look("history", "List records, newest first; with paths, what changed these. limit: 20 unless given, at most 100.", srv.history)
	look("show", "Show one record (ref; the newest if there is none); with paths, the contents of these files as the record found them.", srv.show)
	look("diff", `Show what a record (ref; the newest if there is none) changed, as a unified diff; with two refs, the difference between the tree before the first and after the second, which may be "now".`, srv.diff)
	look("blame", "Say of each line of one file (paths), as it is now, which record brought it. limit: 200 lines unless given, at most 1000.", srv.blame)
	add(s, "checkpoint", "Record the tree as it is now, so that it can be looked at and gone back to.",
		&mcp.ToolAnnotations{DestructiveHint: new(bool), OpenWorldHint: new(bool)}, srv.checkpoint)
	add(s, "plan", planAbout(o.AllowWrite), &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}, srv.plan)
	if o.AllowWrite {
		destructive := true
		add(s, "perform", "Do what a plan said. Refused if one of its paths, or the newest record, is no longer what the plan saw. It is a record itself, which can be taken back.",
			&mcp.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: new(bool)}, srv.perform)
	}
	return s, srv.reader.Close
}

// add registers a tool. Errors of it are answers, with the next step where there is one.
func add[In any](s *mcp.Server, name, about string, a *mcp.ToolAnnotations, do func(context.Context, In) (any, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: about, Annotations: a}, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		out, err := do(ctx, in)
		if err != nil {
			out = map[string]any{"error": failureOf(name, err)}
		}
		var text bytes.Buffer
		if eerr := view.Encode(&text, out); eerr != nil {
			return nil, nil, eerr
		}
		return &mcp.CallToolResult{IsError: err != nil, Content: []mcp.Content{&mcp.TextContent{Text: text.String()}}}, nil, nil
	})
}

// failure is an error, with the first of the paths that stood in the way.
type failure struct {
	view.Failure
	part
}

func failureOf(tool string, err error) failure {
	out := failure{Failure: view.FailureOf(tool, err)}
	if more := len(out.Paths) - mostSteps; more > 0 {
		out.Paths, out.MorePaths = out.Paths[:mostSteps], more
	}
	return out
}

func usagef(format string, args ...any) *project.Error {
	return &project.Error{Kind: project.Usage, Msg: fmt.Sprintf(format, args...)}
}

// pathsOf are paths as given, below the root, with slashes; "" is the root.
func pathsOf(root string, given []string) ([]tree.Path, error) {
	var out []tree.Path
	for _, p := range given {
		if p == "" || strings.ContainsRune(p, 0) {
			return nil, usagef("a path is empty, or has a NUL").Hintf("'.' means the root of the tree")
		}
		if path.IsAbs(p) {
			below, ok := strings.CutPrefix(path.Clean(p)+"/", root+"/")
			if !ok {
				return nil, usagef("%s is not below %s", p, root)
			}
			p = "./" + below
		}
		p = path.Clean(p)
		if p == ".." || strings.HasPrefix(p, "../") {
			return nil, usagef("%s leads out of the tree", p)
		}
		if p == "." {
			p = ""
		}
		out = append(out, tree.Path(p))
	}
	return out, nil
}

// bounded is how many are wanted, usual if it is not said.
func bounded(limit, usual, most int) (int, error) {
	if limit < 0 {
		return 0, usagef("limit %d: not a number of things", limit)
	}
	if limit == 0 {
		limit = usual
	}
	return min(limit, most), nil
}

// offset is a cursor that is a number; "" is 0.
func offset(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, usagef("cursor %q: no answer had it", cursor).Hintf("call again without a cursor")
	}
	return n, nil
}

// labels are those of all records.
func labels(rec *recorder.Reader) (view.Labels, error) {
	found, err := rec.History().LabelsOf()
	return view.Labels(found), err
}
