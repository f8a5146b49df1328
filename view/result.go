package view

import (
	"encoding/json"
	"errors"
	"time"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// Step is one path of a plan.
type Step struct {
	Path    string       `json:"path"`
	Op      string       `json:"op"`
	Change  string       `json:"change"` // the same word for the same thing in all JSON; Op is older
	Verdict plan.Verdict `json:"verdict"`
	Reason  string       `json:"reason,omitempty"`
	Later   []string     `json:"later,omitempty"`
	Dir     bool         `json:"-"` // it is, or was, a directory and nothing else
}

// Standing says in how many paths a record's change stays.
type Standing struct {
	Record string `json:"record"`
	Paths  int    `json:"paths"`
}

// Move is what a revert, apply or restore does: Record is null for a dry run or when there
// was nothing to do.
type Move struct {
	DryRun   bool            `json:"dry_run"`
	Record   json.RawMessage `json:"record"`
	Created  int             `json:"created"`
	Modified int             `json:"modified"`
	Deleted  int             `json:"deleted"`
	Paths    []Step          `json:"paths"`
	Standing []Standing      `json:"standing"`
	Stayed   []string        `json:"stayed"`
	Notes    []string        `json:"notes"`
}

// MoveOf is the Move of a result.
func MoveOf(m *recorder.MoveResult, dryRun bool, notes []string, labels Labels) Move {
	out := Move{DryRun: dryRun, Paths: []Step{}, Standing: []Standing{}, Stayed: []string{}, Notes: notes}
	if m.Record != nil {
		out.Record = Record(m.Record, labels)
	}
	stays := map[tree.Path]bool{} // that were found not to be empty when it was done
	if m.Outcome != nil {
		out.Stayed = Paths(m.Outcome.Stayed)
		for _, path := range m.Outcome.Stayed {
			stays[path] = true
		}
	}
	if p := m.Plan; p != nil {
		out.Stayed = append(Paths(p.Stay), out.Stayed...)
		for _, st := range p.Standing {
			out.Standing = append(out.Standing, Standing{st.ID, st.Paths})
		}
		out.Created, out.Modified, out.Deleted = p.Created, p.Modified, p.Deleted
		for _, it := range p.Items {
			if stays[it.Path] {
				continue
			}
			word := ChangeWord(it.From, it.To)
			isFile := func(e *tree.Entry) bool { return e != nil && e.Type != tree.Dir }
			out.Paths = append(out.Paths, Step{Path(it.Path), word, word, it.Verdict, it.Reason, it.Later, !isFile(it.From) && !isFile(it.To)})
		}
	}
	return out
}

// Pruned is what a prune did, or would do.
type Pruned struct {
	DryRun     bool      `json:"dry_run"`
	Records    []Verdict `json:"records"` // oldest first
	Removed    int       `json:"removed"`
	FreedBytes int64     `json:"freed_bytes"`
	StoreBytes int64     `json:"store_bytes"`
	RunsBytes  int64     `json:"runs_bytes"`
}

// Verdict says whether a record stays, and why.
type Verdict struct {
	ID      string   `json:"id"`
	Reason  string   `json:"reason"`
	Started string   `json:"started"`
	Keep    bool     `json:"keep"`
	Why     []string `json:"why"`
}

// PrunedOf is the Pruned of a prune.
func PrunedOf(p *recorder.Pruned, dryRun bool) Pruned {
	out := Pruned{DryRun: dryRun, Records: []Verdict{}, Removed: len(p.Gone()), FreedBytes: p.Freed, StoreBytes: p.Store, RunsBytes: p.Runs}
	for _, v := range p.Verdicts {
		out.Records = append(out.Records, Verdict{v.ID, v.Reason, v.Started.UTC().Format(time.RFC3339Nano), v.Keep, v.Why})
	}
	return out
}

// Collected is what a gc did.
type Collected struct {
	FreedBytes int64    `json:"freed_bytes"`
	Objects    int64    `json:"objects"`
	Packs      int      `json:"packs"`
	StoreBytes int64    `json:"store_bytes"`
	Damaged    []string `json:"damaged"` // packs that stay because parts of them are damaged
}

// CollectedOf is the Collected of a gc.
func CollectedOf(c *recorder.Collected) Collected {
	return Collected{c.Freed, c.Objects, c.Packs, c.Store, append([]string{}, c.Damaged...)}
}

// Forgetting is what a forget does, or would do.
type Forgetting struct {
	DryRun     bool        `json:"dry_run"`
	Contents   []Forgotten `json:"contents"`
	Records    []string    `json:"records"`
	Also       []string    `json:"also"`
	InTree     []string    `json:"in_tree"`
	Layers     []string    `json:"layers"`
	FreedBytes int64       `json:"freed_bytes"`
	// Backups are those that may hold the contents, as far as the store remembers them.
	Backups []Backups `json:"backups"`
}

// Backups are generations in one target.
type Backups struct {
	Target      string   `json:"target"`
	Generations []string `json:"generations"` // by name, oldest first
}

// Forgotten is a content that goes.
type Forgotten struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// ForgettingOf is the Forgetting of a forget.
func ForgettingOf(f *recorder.Forgetting, dryRun bool) Forgetting {
	out := Forgetting{DryRun: dryRun, Contents: []Forgotten{}, Records: append([]string{}, f.Records...),
		Also: Paths(f.Also), InTree: Paths(f.InTree), Layers: append([]string{}, f.Layers...), FreedBytes: f.Freed, Backups: []Backups{}}
	for _, c := range f.Contents {
		out.Contents = append(out.Contents, Forgotten{Path(c.Path), c.SHA256.String(), c.Size})
	}
	return out
}

// Recovered is one thing that was recovered.
type Recovered struct {
	Record string   `json:"record"`
	What   string   `json:"what"`
	Later  []string `json:"later"`
	Aside  string   `json:"aside,omitempty"`
}

// RecoveredOf is what a recovery did.
func RecoveredOf(list []recorder.Recovered) []Recovered {
	out := make([]Recovered, 0, len(list))
	for _, f := range list {
		r := Recovered{What: f.What, Later: Paths(f.Later), Aside: Path(f.Aside)}
		if f.Record != nil {
			r.Record = f.Record.ID
		}
		out = append(out, r)
	}
	return out
}

// Failure is an error. Paths are those that stood in the way.
type Failure struct {
	Command  string          `json:"command"`
	Message  string          `json:"message"`
	ExitCode int             `json:"exit_code"`
	Hint     string          `json:"hint"`
	State    string          `json:"state"` // in which state things are left, as the message says; "" where it does not
	Paths    []FailureAtPath `json:"paths"`
}

// FailureOf is the Failure of an error that a command ended with; "" where it was no command.
func FailureOf(command string, err error) Failure {
	out := Failure{
		Command: command, Message: err.Error(), ExitCode: int(project.KindOf(err)), Hint: project.HintOf(err), State: project.StateOf(err),
		Paths: []FailureAtPath{},
	}
	if conflict, ok := errors.AsType[*recorder.ConflictError](err); ok {
		out.Paths = inTheWay(conflict.Items)
	}
	return out
}

// FailureAtPath is a path that stood in the way.
type FailureAtPath struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// inTheWay are the paths of items, and why each is in the way; never null.
func inTheWay(items []plan.Item) []FailureAtPath {
	out := make([]FailureAtPath, len(items))
	for i, it := range items {
		out[i] = FailureAtPath{Path(it.Path), it.Reason}
	}
	return out
}

// Walk is what an undo or redo does: a Move, with the records that it takes back or brings
// again, in this order, and those that it passes over.
type Walk struct {
	Move
	Records []string     `json:"records"`
	Passed  []PassedOver `json:"passed"`
}

// PassedOver is a record that an undo or redo passed over, and why.
type PassedOver struct {
	Record string `json:"record"`
	Reason string `json:"reason"`
}

// WalkOf is the Walk of a result.
func WalkOf(m *recorder.MoveResult, dryRun bool, notes []string, labels Labels) Walk {
	out := Walk{Move: MoveOf(m, dryRun, notes, labels), Records: []string{}, Passed: []PassedOver{}}
	for _, l := range m.Walked {
		out.Records = append(out.Records, l.ID)
	}
	for _, p := range m.Passed {
		out.Passed = append(out.Passed, PassedOver{p.Link.ID, p.Why})
	}
	return out
}

// Chain is what undo and redo have before them, each the next one first.
type Chain struct {
	Undo []Link `json:"undo"`
	Redo []Link `json:"redo"`
}

// Link is a record of a chain. Undo is, of one that can be redone, the undo that took it
// back; By is what took back by hand one that stands in the chain, so that it is passed over;
// Record is null where it was removed.
type Link struct {
	ID     string          `json:"id"`
	Undo   string          `json:"undo,omitempty"`
	By     string          `json:"by,omitempty"`
	Record json.RawMessage `json:"record"`
}

// ChainOf is the Chain of a history's.
func ChainOf(c *history.Chain, labels Labels) Chain {
	links := func(list []history.Link) []Link {
		out := make([]Link, 0, len(list))
		for _, l := range list {
			j := Link{ID: l.ID, By: l.By}
			if l.Undo != nil {
				j.Undo = l.Undo.ID
			}
			if l.Record != nil {
				j.Record = Record(l.Record, labels)
			}
			out = append(out, j)
		}
		return out
	}
	return Chain{Undo: links(c.Undo), Redo: links(c.Redo)}
}
