package history

import (
	"strconv"
	"strings"

	"decree/jsonread"
)

// EndedBy says what a coding agent's turn ended with.
type EndedBy string

// What ends a turn.
const (
	EndedByEvent EndedBy = "event"    // the agent said that it has answered
	EndedByOther EndedBy = "inferred" // something that shows that it was over
)

var endedBys = []string{string(EndedByEvent), string(EndedByOther)}

// TurnFacts is what run.json says of a turn beside what it says of every record.
type TurnFacts struct {
	Prompt     string // its first characters; "" where the config leaves it out
	PromptSize int64  // bytes of the whole prompt, at least; 0: Prompt is all of it
	EndedBy    EndedBy
	Stop       string // why the agent stopped, as it calls it; "" where it does not say
	Continues  string // the turn whose end event came when it was closed already
	Transcript Transcript
	// Overlaps are the records of others that changed the tree while the turn was open.
	Overlaps []string
	Tools    []string // those that it used, sorted
}

// Transcript is where an agent writes its conversation down.
type Transcript struct {
	Path   string // "": not known
	Offset int64  // its size at the prompt, in bytes
}

// writeTurn writes what a turn's run.json has more.
func (r *Record) writeTurn(w *writer) {
	t := r.Turn
	if t == nil {
		return
	}
	w.textIfAny("prompt", t.Prompt)
	if t.PromptSize > 0 {
		w.number("prompt_bytes", t.PromptSize)
	}
	w.textIfAny("ended_by", string(t.EndedBy))
	w.textIfAny("stop_reason", t.Stop)
	w.textIfAny("continues", t.Continues)
	if t.Transcript.Path != "" {
		w.key("transcript")
		in := spaced(w.dst)
		in.text("path", t.Transcript.Path)
		in.number("offset", t.Transcript.Offset)
		w.dst = in.end()
	}
	if len(t.Overlaps) > 0 {
		w.texts("overlaps", t.Overlaps)
	}
	if len(t.Tools) > 0 {
		w.texts("tools", t.Tools)
	}
}

// readTurn takes the field key of a turn into r; false: it is none.
func (r *Record) readTurn(key string, v *jsonread.Value) bool {
	switch key {
	case "prompt", "prompt_bytes", "ended_by", "stop_reason", "continues", "transcript", "overlaps", "tools":
	default:
		return false
	}
	if r.Turn == nil {
		return false // a field of a later decree, which is kept as it is
	}
	switch t := r.Turn; key {
	case "prompt":
		t.Prompt = v.Text()
	case "prompt_bytes":
		t.PromptSize = v.Int()
	case "ended_by":
		t.EndedBy = EndedBy(v.Known(endedBys...))
	case "stop_reason":
		t.Stop = v.Text()
	case "continues":
		t.Continues = idOf(v)
	case "transcript":
		v.Members(func(name string, m *jsonread.Value) {
			switch name {
			case "path":
				t.Transcript.Path = m.Text()
			case "offset":
				t.Transcript.Offset = m.Int()
			}
		})
	case "overlaps":
		t.Overlaps = v.Texts()
		for _, id := range t.Overlaps {
			if !IsID(id) {
				v.Fail(errNoID)
			}
		}
	case "tools":
		t.Tools = v.Texts()
	}
	return true
}

func idOf(v *jsonread.Value) string {
	id := v.Text()
	if !IsID(id) {
		v.Fail(errNoID)
	}
	return id
}

// OwnLabel says whether decree itself gives labels of this name: they say where something
// is, and keep no record.
func OwnLabel(name string) bool {
	_, turn := TurnOfLabel(name)
	return turn || name == SessionLabel
}

// SessionLabel is on the checkpoint that the newest session of an agent began with.
const SessionLabel = "session"

const turnLabel = "turn-"

// LabelOfTurn is the label of the n-th turn.
func LabelOfTurn(n int) string { return turnLabel + strconv.Itoa(n) }

// TurnOfLabel is the number of the turn that a label is of.
func TurnOfLabel(name string) (n int, ok bool) {
	text, ok := strings.CutPrefix(name, turnLabel)
	if !ok || len(text) > 9 || !digits(text) || text[0] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
