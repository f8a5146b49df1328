package view

import (
	"path/filepath"
	"time"

	"decree/history"
	"decree/message"
	"decree/queue"
)

// Waiting is a message in a list.
type Waiting struct {
	Name      string    `json:"name"`
	Path      string    `json:"path"` // below the root
	ID        string    `json:"id"`   // "" where it has none yet
	Type      string    `json:"type"`
	Routine   string    `json:"routine"`
	InputFile string    `json:"input_file,omitempty"`
	Written   time.Time `json:"written"`
	Reason    string    `json:"reason,omitempty"` // of a dead one, what is wrong with it, or why its work is not in the tree yet
	Text      string    `json:"text"`             // its heading, or first line
	Running   bool      `json:"running"`          // it is being done
}

// Sent is a message that was sent.
type Sent struct {
	Name string `json:"name"`
	ID   string `json:"id"` // "" for a follow-up: its chain gives it one
	Path string `json:"path"`
}

// Message is how a message ended.
type Message struct {
	Name      string         `json:"name"`
	ID        string         `json:"id"`
	Routine   string         `json:"routine"`
	Outcome   queue.Outcome  `json:"outcome"`
	Reason    string         `json:"reason,omitempty"`
	Place     string         `json:"place"` // below .decree/inbox
	Record    string         `json:"record,omitempty"`
	Status    history.Status `json:"status,omitempty"`
	ExitCode  *int           `json:"exit_code,omitempty"`
	Attempts  int            `json:"attempts,omitempty"`
	Changes   *Changes       `json:"changes,omitempty"`
	Published string         `json:"published,omitempty"` // the record that brought an isolated run's work into the tree
	FollowUps []string       `json:"follow_ups,omitempty"`
}

// MessageOf is the Message of a result.
func MessageOf(r *queue.Result) Message {
	j := Message{Name: r.Name, ID: r.ID, Routine: r.Routine, Outcome: r.Outcome, Reason: r.Reason, Place: r.Place, FollowUps: r.FollowUps}
	if rec := r.Record; rec != nil {
		j.Record, j.Status, j.ExitCode, j.Attempts, j.Changes = rec.ID, rec.Status, rec.ExitCode, rec.Attempts, (*Changes)(&rec.Changes)
	}
	if r.Published != nil {
		j.Published = r.Published.ID
	}
	return j
}

// Routine is a script or notebook that does messages.
type Routine struct {
	Name        string       `json:"name"`
	Kind        message.Kind `json:"kind"`
	Path        string       `json:"path"`
	Description string       `json:"description"`
	Isolated    *bool        `json:"isolated,omitempty"` // what its head says
	Parameters  []Parameter  `json:"parameters"`
	Error       string       `json:"error,omitempty"`
}

// Parameter is one that a routine declares.
type Parameter struct {
	Name    string `json:"name"`
	Default string `json:"default"`
}

// RoutineOf is the Routine of a finding.
func RoutineOf(f message.Found) Routine {
	j := Routine{Name: f.Name, Kind: f.Kind, Path: filepath.Join(f.Dir.Path(), f.File), Description: f.Description, Isolated: f.Isolated, Parameters: []Parameter{}}
	for _, p := range f.Params {
		j.Parameters = append(j.Parameters, Parameter{p.Name, p.Value})
	}
	if f.Err != nil {
		j.Error = f.Err.Error()
	}
	return j
}
