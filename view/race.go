package view

import (
	"encoding/json"

	"decree/recorder"
)

// Race is how a race ended.
type Race struct {
	Name       string          `json:"name"`
	ExitCode   int             `json:"exit_code"`
	Best       *string         `json:"best"`      // the name of the good draft with the fewest changed lines; null: there is none
	Published  json.RawMessage `json:"published"` // the record that published it; null: there is none
	Candidates []Candidate     `json:"candidates"`
	Notes      []string        `json:"notes"`
}

// Candidate is one of a race. Record is null where there is none: Error says why, or is ""
// where the command was not started since a signal had come.
type Candidate struct {
	Candidate int             `json:"candidate"`
	Name      string          `json:"name"`
	Good      bool            `json:"good"`
	TookMS    int64           `json:"took_ms"` // the command alone
	Shared    []string        `json:"shared"`  // the paths that others changed too
	Notes     []string        `json:"notes"`
	Error     string          `json:"error,omitempty"`
	Record    json.RawMessage `json:"record"`
}

// RaceOf is the Race of a result.
func RaceOf(r *recorder.RaceResult, judged bool, labels Labels) Race {
	out := Race{Name: r.Name, ExitCode: r.ExitCode, Candidates: []Candidate{}, Notes: append([]string{}, r.Notes...)}
	if r.Best != nil {
		out.Best = &r.Best.Name
	}
	if p := r.Published; p != nil && p.Record != nil {
		out.Published = Record(p.Record, labels)
	}
	for _, c := range r.Candidates {
		j := Candidate{Candidate: c.Number, Name: c.Name, Good: c.Good(judged), Shared: Paths(c.Shared), Notes: []string{}}
		if c.Err != nil {
			j.Error = c.Err.Error()
		}
		if c.Result != nil {
			j.TookMS = c.Result.Last.Duration.Milliseconds()
			j.Notes = append(j.Notes, c.Result.Notes...)
			j.Record = Record(c.Result.Record, labels)
		}
		out.Candidates = append(out.Candidates, j)
	}
	return out
}
