package recorder

import (
	"encoding/json"
	"io"
	"time"

	"decree/history"
	"decree/tree"
)

// ending is how a record ends, of whatever kind. That of a move, and of a run whose
// changes are put back, stands in the open record, so that a recovery needs nothing else.
type ending struct {
	Record *history.Record      `json:"record"`
	Files  map[string]tree.Hash `json:"files"`

	build   []history.RunFile // the run directory's files; none: it is there
	effects history.Effects
	asked   time.Duration // that people took to answer, or a judge: it does not count
	mistake bool          // what was asked for there is not
}

// end ends a record: it says when, and has the history take it. After an error, or a
// death, the next command that writes calls it again. There is no other end: runs that
// succeed, fail, are put back or interrupted, moves, and checkpoints come here.
func (r *Recorder) end(e *ending) error {
	rec := e.Record
	rec.Ended = r.now(rec.Started)
	rec.Duration = max(0, rec.Ended.Sub(rec.Started)-e.asked)
	audit := r.auditOf(rec)
	audit.Mistake = e.mistake
	err := r.history.End(history.Closing{Record: rec, Files: e.Files, Build: e.build, Effects: e.effects, Audit: audit})
	if err != nil {
		return err
	}
	r.created(rec)
	r.thinRuns(false)
	return nil
}

// now is the clock, never before a record's start.
func (r *Recorder) now(started time.Time) time.Time {
	if now := r.opt.Clock().UTC(); now.After(started) {
		return now
	}
	return started
}

// origin is the machine that a record is made on. It is the lesser thing: where it is not
// known the record does without.
func (r *Recorder) origin() string {
	id, err := r.project.Machine()
	if err != nil {
		r.note("the record does not say on which machine it was made: %v", err)
	}
	return id
}

// thinRuns keeps the run directories small; gc looks at all of them. The records stand:
// what fails here is tried again after the next one.
func (r *Recorder) thinRuns(all bool) {
	if err := r.history.ThinRuns(all); err != nil {
		r.note("the plain files of older records are kept as they are: %v", err)
	}
}

// buildMove lists the files of a move's run directory, as the store has them.
func (r *Recorder) buildMove(e *ending) {
	if e.build == nil {
		e.build = []history.RunFile{{Name: "manifest.json", Write: func(w io.Writer) error { return r.history.WriteManifest(e.Record, w) }}}
	}
	for name, sum := range e.Files {
		e.build = append(e.build, history.RunFile{Name: name, Write: func(w io.Writer) error { return r.copyObject(w, sum) }})
	}
}

// extraEnding is the ending's place in an open record.
const extraEnding = "ending"

func endingOf(o *history.Opened) (*ending, bool) {
	raw, ok := o.Extra[extraEnding]
	if !ok {
		return nil, false
	}
	var end ending
	if err := json.Unmarshal(raw, &end); err != nil || end.Record == nil {
		return nil, false
	}
	return &end, true
}

// saveEnding puts a run's end into its open record, as far as it is known.
func (r *Recorder) saveEnding(o *history.Opened, rec *history.Record, files map[string]tree.Hash) error {
	raw, err := json.Marshal(ending{Record: rec, Files: files})
	if err != nil {
		return err
	}
	return r.saveExtra(o, rec, extraEnding, raw)
}

// saveExtra puts a field of the recorder's into a run's open record.
func (r *Recorder) saveExtra(o *history.Opened, rec *history.Record, name string, raw json.RawMessage) error {
	extra := map[string]json.RawMessage{name: raw}
	for other, value := range o.Extra {
		if other != name {
			extra[other] = value
		}
	}
	o.Extra = extra
	return r.saveDraft(o, rec)
}

// saveDraft writes a run's open record as it is known by now.
func (r *Recorder) saveDraft(o *history.Opened, rec *history.Record) error {
	draft := *rec
	draft.Status, draft.ExitCode = history.StatusOpen, nil
	saved := *o
	saved.Record = &draft
	return r.history.Begin(&saved)
}
