package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

const (
	stateFile = "queue.json"
	maxState  = 4 << 20
	// maxStack bounds the follow-ups that are remembered in order; those beyond
	// are found by their names.
	maxStack  = 1000
	maxBefore = 1000
)

// state is queue.json in the store: the message under way, and whose follow-ups
// come next. Every write is flushed but those that only forget.
type state struct {
	Version int `json:"version"`
	// Name is the file of the message under way, "" when there is none.
	Name string `json:"name"`
	identity
	ID    string `json:"id"`
	Chain string `json:"chain"`
	Seq   int    `json:"seq"`
	Depth int    `json:"depth,omitempty"`
	Spec  string `json:"spec,omitempty"` // the path of the spec that it is about
	// Record is of its run, Attempt the attempt that is being made there; Spent
	// were made by the runs Interrupted before.
	Record      string   `json:"record"`
	Attempt     int      `json:"attempt"`
	Spent       int      `json:"spent"`
	Interrupted []string `json:"interrupted,omitempty"`
	// Before is what was in the inbox when the run began: what is not in it came
	// since. Of a fuller inbox than maxBefore only what is named after the chain is
	// in it (Partly), and a death then makes nothing a follow-up but what has such a
	// name.
	Before []string `json:"before,omitempty"`
	Partly bool     `json:"partly,omitempty"`
	// Last is the chain done last, Stack its follow-ups, the next one first.
	Last  string   `json:"last,omitempty"`
	Stack []string `json:"stack,omitempty"`
	// Unmarked are the specs that are done and could not be marked so yet.
	Unmarked []string `json:"unmarked,omitempty"`
}

// comesFirst has a message keep its place though it is not under way any more.
func (s *state) comesFirst(name string) {
	s.Stack = slices.Insert(slices.DeleteFunc(s.Stack, func(n string) bool { return n == name }), 0, name)
}

// forget leaves of the state what holds beyond one message.
func (s *state) forget() {
	*s = state{Version: 1, Last: s.Last, Stack: s.Stack, Unmarked: s.Unmarked}
}

// read reads the state. A damaged one is as good as none: it is replaced whole,
// so only a failing disk makes one, and the messages themselves are in the inbox.
func readState(store disk.Dir) (*state, error) {
	s := &state{Version: 1}
	data, err := project.ReadFile(store, stateFile, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%s/%s: %v", store.Path(), stateFile, err),
			Advice: "it says which message was under way; see 'decree log' for the last run and move the file away"}
	}
	if s.Version != 1 {
		return nil, fmt.Errorf("%s/%s: version %d is newer than this decree", store.Path(), stateFile, s.Version)
	}
	s.eachName(unquoted)
	return s, nil
}

// eachName puts each name of a file through f. On disk they are quoted as in the
// manifest: JSON holds no bytes that are not UTF-8.
func (s *state) eachName(f func(string) string) {
	s.Name, s.Spec = f(s.Name), f(s.Spec)
	s.Before, s.Stack, s.Unmarked = slices.Clone(s.Before), slices.Clone(s.Stack), slices.Clone(s.Unmarked)
	for _, list := range [][]string{s.Before, s.Stack, s.Unmarked} {
		for i, name := range list {
			list[i] = f(name)
		}
	}
}

// unquoted is the name that tree.Quote has written; one that it would have
// written otherwise is from before names were quoted, and stands as it is.
func unquoted(text string) string {
	if name, err := tree.Unquote(text); err == nil {
		return name
	}
	return text
}

func (s *state) write(store disk.Dir, flush bool) error {
	if len(s.Stack) > maxStack {
		s.Stack = s.Stack[:maxStack]
	}
	out := *s
	out.eachName(tree.Quote)
	data, err := json.Marshal(&out)
	if err == nil && (len(s.Before) > maxBefore || len(data) > maxState) { // names can be six times as long there
		s.Before = slices.DeleteFunc(s.Before, func(name string) bool { return !strings.HasPrefix(name, s.Chain+"-") })
		s.Partly = true
		out = *s
		out.eachName(tree.Quote)
		data, err = json.Marshal(&out)
	}
	if err != nil {
		return err
	}
	return project.ReplaceFile(store, stateFile, append(data, '\n'), project.PrivateFile, flush)
}
