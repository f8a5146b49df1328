package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"decree/jsonread"
	"decree/project"
	"decree/tree"
)

// Reason is why a record exists.
type Reason string

// The reasons of product.md.
const (
	Run     Reason = "run"
	Manual  Reason = "manual"
	Auto    Reason = "auto"
	Publish Reason = "publish"
	Restore Reason = "restore"
	Revert  Reason = "revert"
	Apply   Reason = "apply"
	Turn    Reason = "turn"
)

// Status is how a record stands.
type Status string

// The statuses of formats.md.
const (
	StatusOpen        Status = "open"
	StatusSucceeded   Status = "succeeded"
	StatusFailed      Status = "failed"      // changes kept
	StatusReverted    Status = "reverted"    // failed and put back
	StatusInterrupted Status = "interrupted" // the process died; recorded by the next command
	StatusUndone      Status = "undone"      // a later revert took it back
)

// Version is the version of run.json that this package writes.
const Version = 1

var statuses = []string{string(StatusOpen), string(StatusSucceeded), string(StatusFailed), string(StatusReverted), string(StatusInterrupted), string(StatusUndone)}

// Actor is who made a record.
type Actor struct {
	User    string
	Host    string
	Agent   string // a coding agent's name, or ""
	Session string
	Turn    int // 0: none
	Model   string
}

// Changes counts what a run changed; a directory counts as created, modified
// (its mode) or deleted like a file.
type Changes struct {
	Created, Modified, Deleted int
	AddedLines, RemovedLines   int
}

// Field is a field of run.json that this version does not know: it is kept.
type Field struct {
	Name string
	Raw  json.RawMessage
}

// Record is run.json. A zero Hash or Time stands for none.
type Record struct {
	ID          string
	Chain       string
	Seq         int
	Reason      Reason
	Status      Status
	Description string

	Command  []string // these four are written for runs only
	Cwd      string   // relative to the root, "." for the root itself
	Attempts int
	ExitCode *int // nil while it is not known

	Started    time.Time
	Ended      time.Time
	Recovered  *time.Time
	Duration   time.Duration
	DiffSHA256 tree.Hash
	Unrecorded []tree.Path // raw paths
	Files      int
	Bytes      int64
	Changes    Changes
	Before     tree.Hash // tree ids
	After      tree.Hash
	// ManifestSHA256 is that of manifest.json, which is the tree before; zero: not known.
	ManifestSHA256 tree.Hash
	Actor          Actor
	Parent         string // the record that this one undoes or restores
	UndoneBy       string
	Inside         string // the run that this one was made in the course of, by one of its processes
	Origin         string // the id of the machine that it was made on; "": not known

	// Isolated is how the run's layer was made, "overlay" or "clone"; "": it ran in place. Such
	// a record is no state of the tree: it has no trees and counts no files.
	Isolated string
	Draft    *Draft // nil: there is none
	// Fence is what kept the command's writes to the root: "landlock", "partly", or "none"
	// where the kernel had nothing; "": nothing was to. NoNet says that it had no network.
	Fence string
	NoNet bool
	Judge *Judgement // nil: nobody judged it
	Turn  *TurnFacts // of a turn

	Walked Walked // of an undo or redo

	Extra []Field // unknown fields, in their order

	order int64 // the at of its line in the log where that is not the start, else 0
}

// timeForm is RFC 3339 in UTC with all nine digits, so that texts sort as times.
const timeForm = "2006-01-02T15:04:05.000000000Z"

// JSON is the record as run.json has it, with a newline at its end. labels, unless
// nil, are added as `--json` shows them.
func (r *Record) JSON(labels []string) []byte { return r.AppendJSON(nil, labels) }

// AppendJSON appends what JSON returns to dst.
func (r *Record) AppendJSON(dst []byte, labels []string) []byte {
	w := &writer{sep: ",\n  ", colon: ": "}
	w.dst = append(slices.Grow(dst, 1<<10), "{\n  "...)
	r.write(w)
	if labels != nil {
		w.texts("labels", labels)
	}
	return append(w.dst, "\n}\n"...)
}

// MarshalJSON is the record on one line.
func (r *Record) MarshalJSON() ([]byte, error) { return r.appendCompact(nil), nil }

func (r *Record) appendCompact(dst []byte) []byte {
	w := compact(dst)
	r.write(w)
	return w.end()
}

func (r *Record) write(w *writer) {
	w.number("version", Version)
	w.text("id", r.ID)
	w.text("chain", r.Chain)
	w.number("seq", int64(r.Seq))
	w.text("reason", string(r.Reason))
	w.text("status", string(r.Status))
	w.text("description", r.Description)
	if r.Reason == Run {
		w.texts("command", r.Command)
		w.text("cwd", tree.Quote(r.Cwd))
		w.number("attempts", int64(r.Attempts))
		if r.ExitCode == nil {
			w.raw("exit_code", "null")
		} else {
			w.number("exit_code", int64(*r.ExitCode))
		}
	}
	w.time("started", r.Started)
	w.time("ended", r.Ended)
	if r.Recovered == nil {
		w.raw("recovered", "null")
	} else {
		w.time("recovered", *r.Recovered)
	}
	w.number("duration_ms", r.Duration.Milliseconds())
	w.hash("diff_sha256", r.DiffSHA256)
	w.paths("unrecorded", r.Unrecorded)
	if r.Isolated == "" {
		w.number("files", int64(r.Files))
	} else {
		w.raw("files", "null")
	}
	w.number("bytes", r.Bytes)
	w.value("changes", r.Changes.append)
	r.writeTrees(w)
	if !r.ManifestSHA256.IsZero() {
		w.hash("manifest_sha256", r.ManifestSHA256)
	}
	w.value("actor", r.Actor.append)
	w.textIfAny("parent", r.Parent)
	w.textIfAny("undone_by", r.UndoneBy)
	w.textIfAny("inside", r.Inside)
	w.textIfAny("origin", r.Origin)
	r.isolatedFacts(w)
	w.textIfAny("fence", r.Fence)
	if r.NoNet {
		w.raw("no_net", "true")
	}
	r.writeTurn(w)
	w.walked(r.Walked)
	for _, f := range r.Extra {
		w.raw(f.Name, string(f.Raw))
	}
}

func (c Changes) append(dst []byte) []byte {
	w := spaced(dst)
	w.number("created", int64(c.Created))
	w.number("modified", int64(c.Modified))
	w.number("deleted", int64(c.Deleted))
	w.number("added_lines", int64(c.AddedLines))
	w.number("removed_lines", int64(c.RemovedLines))
	return w.end()
}

func (a Actor) append(dst []byte) []byte {
	w := spaced(dst)
	w.text("user", a.User)
	w.text("host", a.Host)
	w.textIfAny("agent", a.Agent)
	w.textIfAny("session", a.Session)
	if a.Turn != 0 {
		w.number("turn", int64(a.Turn))
	}
	w.textIfAny("model", a.Model)
	return w.end()
}

// NewerError says that a file was written by a newer decree.
type NewerError struct {
	Path    string
	Version int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s: format version %d is newer than the newest that this decree can read (%d)", e.Path, e.Version, Version)
}

// Category is Refused: the file is left as it is.
func (e *NewerError) Category() project.Kind { return project.Refused }

// UnmarshalJSON is ParseRecord.
func (r *Record) UnmarshalJSON(data []byte) error {
	p, err := ParseRecord(data)
	if err == nil {
		*r = *p
	}
	return err
}

// ParseRecord reads a run.json. Unknown fields are kept in Extra; a newer
// version is a *NewerError; anything that is not a whole record is an error.
func ParseRecord(data []byte) (*Record, error) {
	r, version := &Record{}, 0
	err := jsonread.Object(data, func(key string, v *jsonread.Value) error {
		if key == "version" {
			version = int(v.Int())
			return v.Err()
		}
		if r.read(key, v) {
			return v.Err()
		}
		r.Extra = append(r.Extra, Field{strings.Clone(key), append(json.RawMessage(nil), v.Raw()...)})
		return nil
	})
	if version > Version {
		return nil, &NewerError{"run.json", version}
	}
	if err != nil {
		return nil, err
	}
	if version < 1 {
		return nil, errors.New("no version")
	}
	return r, r.check()
}

// read takes the field key into r; false: it is not known.
func (r *Record) read(key string, v *jsonread.Value) bool {
	switch key {
	case "id":
		r.ID = v.Text()
	case "chain":
		// It is the id's beginning, and shares its bytes.
		if r.Chain = v.Text(); strings.HasPrefix(r.ID, r.Chain) {
			r.Chain = r.ID[:len(r.Chain)]
		} else {
			r.Chain = v.Text()
		}
	case "seq":
		r.Seq = int(v.Int())
	case "reason":
		if r.Reason = Reason(v.Known(project.Reasons...)); r.Reason == Turn {
			r.Turn = &TurnFacts{}
		}
	case "status":
		r.Status = Status(v.Known(statuses...))
	case "description":
		r.Description = v.Text()
	case "command":
		r.Command = v.Texts()
	case "cwd":
		r.Cwd = pathOf(v)
	case "attempts":
		r.Attempts = int(v.Int())
	case "exit_code":
		if !v.Null() {
			code := int(v.Int())
			r.ExitCode = &code
		}
	default:
		return r.readFacts(key, v)
	}
	return true
}

func (r *Record) readFacts(key string, v *jsonread.Value) bool {
	switch key {
	case "started":
		r.Started = timeOf(v)
	case "ended":
		r.Ended = timeOf(v)
	case "recovered":
		if t := timeOf(v); !t.IsZero() {
			r.Recovered = &t
		}
	case "duration_ms":
		r.Duration = time.Duration(v.Int()) * time.Millisecond
	case "diff_sha256":
		r.DiffSHA256 = hashOf(v)
	case "unrecorded":
		r.Unrecorded = pathsOf(v)
	case "files":
		r.Files = int(v.Int())
	case "bytes":
		r.Bytes = v.Int()
	case "changes":
		r.Changes = changesOf(v)
	case "before":
		r.Before = hashOf(v)
	case "after":
		r.After = hashOf(v)
	case "manifest_sha256":
		r.ManifestSHA256 = hashOf(v)
	case "actor":
		r.Actor = actorOf(v)
	case "parent":
		r.Parent = v.Text()
	case "inside":
		r.Inside = v.Text()
	case "origin":
		r.Origin = v.Text()
	case "undone_by":
		r.UndoneBy = v.Text()
	case "isolated":
		r.Isolated = v.Text()
	case "draft":
		r.Draft = draftOf(v)
	case "fence":
		r.Fence = v.Text()
	case "no_net":
		r.NoNet = v.Bool()
	case "judge":
		r.Judge = judgementOf(v)
	case "labels": // of --json; they live in labels.json
	default:
		return r.readTurn(key, v) || r.Walked.read(key, v)
	}
	return true
}

// check holds what every reader relies on.
func (r *Record) check() error {
	chain, seq, ok := ParseID(r.ID)
	switch {
	case !ok:
		return fmt.Errorf("%q is not a record id", clip(r.ID))
	case r.Chain != chain || r.Seq != seq:
		return errors.New("id, chain and seq disagree")
	case r.Started.IsZero():
		return errors.New("no start time")
	case r.Reason == "" || r.Status == "":
		return errors.New("no reason or no status")
	case r.Duration < 0 || r.Files < 0 || r.Bytes < 0:
		return errors.New("a negative count")
	}
	for _, id := range append(r.Walked.ids(), r.Parent, r.UndoneBy, r.Inside) {
		if id != "" && !IsID(id) {
			return fmt.Errorf("%q is not a record id", clip(id))
		}
	}
	return nil
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
