package view

import (
	"time"

	"decree/history"
	"decree/recorder"
)

// eventHead begins every event.
type eventHead struct {
	Event string `json:"event"`
	Time  string `json:"time"`
}

type progressEvent struct {
	eventHead
	Phase string `json:"phase"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Bytes int64  `json:"bytes,omitempty"`
}

type recordEvent struct {
	eventHead
	ID          string         `json:"id"`
	Reason      history.Reason `json:"reason"`
	Status      history.Status `json:"status"`
	Description string         `json:"description"`
	Changes     Changes        `json:"changes"`
	ExitCode    *int           `json:"exit_code,omitempty"`
}

type restoredEvent struct {
	eventHead
	ID       string `json:"id"`
	To       string `json:"to"`
	Created  int    `json:"created"`
	Modified int    `json:"modified"`
	Deleted  int    `json:"deleted"`
}

type failedEvent struct {
	eventHead
	Failure
}

type noteEvent struct {
	eventHead
	Text string `json:"text"`
}

func head(event string, at time.Time) eventHead { return eventHead{event, at.UTC().Format(timeForm)} }

// Event is the object of what happened at a time; nil where it has none.
func Event(e recorder.Event, at time.Time) any {
	h := head(string(e.Kind), at)
	switch e.Kind {
	case recorder.Progressed:
		return progressEvent{h, e.Progress.Phase, e.Progress.Done, e.Progress.Total, e.Progress.Bytes}
	case recorder.RecordCreated:
		r := e.Record
		return recordEvent{h, r.ID, r.Reason, r.Status, r.Description, Changes(r.Changes), r.ExitCode}
	case recorder.Restored:
		out := restoredEvent{eventHead: h, To: e.To.ID, Created: e.Plan.Created, Modified: e.Plan.Modified, Deleted: e.Plan.Deleted}
		if e.Record != nil {
			out.ID = e.Record.ID
		}
		return out
	}
	return nil
}

// FailedEvent is the event of a failure.
func FailedEvent(f Failure, at time.Time) any { return failedEvent{head("failed", at), f} }

// NoteEvent is the event of a note.
func NoteEvent(text string, at time.Time) any { return noteEvent{head("note", at), text} }
