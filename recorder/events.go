package recorder

import (
	"decree/history"
	"decree/plan"
)

// EventKind says what an Event is about.
type EventKind string

const (
	// Progressed: a phase of an operation has advanced.
	Progressed EventKind = "progress"
	// RecordCreated: a record is in the history. A run's comes at its end.
	RecordCreated EventKind = "record-created"
	// Restored: the tree is what a restore was to make of it.
	Restored EventKind = "restored"
)

// Event is something that happens while an operation goes on.
type Event struct {
	Kind     EventKind
	Progress Progress        // of Progressed
	Record   *history.Record // of RecordCreated; of Restored, nil where nothing was to do
	To       *history.Record // of Restored: the record whose tree it is
	Plan     *plan.Plan      // of Restored
}

// Progress says how far a phase is. Total 0 is unknown.
type Progress struct {
	Phase       string // "recording", "comparing", "checking", "moving"
	Done, Total int64
	Bytes       int64
}

func (r *Reader) emit(e Event) {
	if r.opt.Events != nil {
		r.opt.Events(e)
	}
}

func (r *Reader) progress(p Progress) { r.emit(Event{Kind: Progressed, Progress: p}) }

func (r *Recorder) created(rec *history.Record) { r.emit(Event{Kind: RecordCreated, Record: rec}) }
