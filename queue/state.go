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
	stateFile    = project.QueueFile
	stateVersion = 2
	maxState     = 4 << 20
	// maxStack bounds the follow-ups that are remembered in order; those beyond
	// are found by their names.
	maxStack = 1000
	maxShort = 50 // of what began beside a message, in a state that was too large
)

// maxBefore bounds underWay.Before and Beside; a variable for the tests.
var maxBefore = 1000

// state is queue.json in the store: the messages under way, and whose follow-ups
// come next. Every write is flushed, also those that only forget: what is not may be an empty
// file after a power loss.
type state struct {
	Version  int         `json:"version"`
	UnderWay []*underWay `json:"under_way,omitempty"`
	// Last is the chain done last, Stack its follow-ups, the next one first.
	Last  string   `json:"last,omitempty"`
	Stack []string `json:"stack,omitempty"`
	// Unmarked are the specs that are done and could not be marked so yet, the latest last.
	Unmarked []doneSpec `json:"done_specs,omitempty"`
	// Edited are the ids of messages whose files were edited while they were done in place, and which are so done once more.
	Edited []string `json:"edited,omitempty"`
}

// underWay is a message that has begun and not ended.
type underWay struct {
	Name string `json:"name"` // of its file
	identity
	ID    string `json:"id"`
	Chain string `json:"chain"`
	Seq   int    `json:"seq"`
	Depth int    `json:"depth,omitempty"`
	Spec  string `json:"spec,omitempty"` // the path of the spec that it is about
	// SpecSHA256 is of the spec's text as the message began; zero: it could not be read.
	SpecSHA256 tree.Hash `json:"spec_sha256,omitzero"`
	// Isolated: its run is, so that others can be beside it.
	Isolated bool `json:"isolated,omitempty"`
	// Record is of its run, "" between two of them, and retention keeps it; Attempt the attempt that is being made
	// there; Spent were made by the runs Earlier before.
	Record  string   `json:"record"`
	Attempt int      `json:"attempt"`
	Spent   int      `json:"spent"`
	Earlier []string `json:"interrupted,omitempty"`
	// Reasons say how those of Earlier failed, where decree has seen it.
	Reasons []string `json:"reasons,omitempty"`
	// Stuck is why it cannot be gone on with, where that waits for a person or another process.
	Stuck string `json:"unpublished,omitempty"`
	// Before is what was in the inbox when the run began: what is not in it came
	// since. Of a fuller inbox than maxBefore only what is named after the chain is
	// in it (Partly), and a death then makes nothing a follow-up but what has such a
	// name.
	Before []string `json:"before,omitempty"`
	Partly bool     `json:"partly,omitempty"`
	// Beside are the messages that came since, and began beside its isolated run, at most maxBefore, the last
	// ones. Its layer may show them, and has those that its routine touches as if that had written them.
	Beside []begunBeside `json:"beside,omitempty"`
	// Listed are the names that a list of specs that is ignored had when its run in place began, with the texts under them: the record has
	// neither.
	Listed []doneSpec `json:"listed_specs,omitempty"`
}

// begunBeside is a message as it was when it began beside another one, before it was completed.
type begunBeside struct {
	Name string `json:"name"`
	identity
	ID string `json:"id"`
}

// calledIn is the name that the message has in the inbox; "": it is not there. That is its own, or else another one
// that came since its run began: somebody has renamed it, or a death while it was moved has left it beside another
// message that has its name now.
func (u *underWay) calledIn(inbox disk.Dir) (string, error) {
	if here, err := u.isAt(inbox, u.Name); here || err != nil {
		return u.Name, err
	}
	list, err := files(inbox)
	for _, p := range list {
		if here, err := u.isCalled(p.Name, inbox, p.Name); here || err != nil {
			return p.Name, err
		}
	}
	return "", err
}

// isCalled says whether the message is the one that is called name, and lies in dir as as. What had another name than it when its run
// began is a copy, which is a message of its own.
func (u *underWay) isCalled(name string, dir disk.Dir, as string) (bool, error) {
	if name != u.Name && slices.Contains(u.Before, name) {
		return false, nil
	}
	return u.isAt(dir, as)
}

// unstack takes messages out of those that come next.
func (s *state) unstack(names ...string) {
	s.Stack = slices.DeleteFunc(s.Stack, func(n string) bool { return slices.Contains(names, n) })
}

// comeFirst has messages come next, in this order.
func (s *state) comeFirst(names ...string) {
	s.unstack(names...)
	s.Stack = slices.Concat(names, s.Stack)
}

// over takes a message out that is not under way any more.
func (s *state) over(u *underWay) {
	s.UnderWay = slices.DeleteFunc(s.UnderWay, func(o *underWay) bool { return o == u })
}

// named is the message under way whose file is called so; nil: none is.
func (s *state) named(name string) *underWay {
	for _, u := range s.UnderWay {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// read reads the state. A damaged one is as good as none: it is replaced whole,
// so only a failing disk makes one, and the messages themselves are in the inbox.
func readState(store disk.Dir) (*state, error) {
	s := &state{Version: stateVersion}
	data, err := project.ReadFile(store, stateFile, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil && !errors.Is(err, project.ErrTooLarge) { // nobody has written one that is larger
		return nil, err
	}
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err == nil {
		err = s.fromEarlier(data)
	}
	if err != nil {
		return nil, &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%s/%s: %v", store.Path(), stateFile, err),
			Advice: "it says which messages were under way; see 'decree log' for the last runs and move the file away"}
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("%s/%s: version %d is newer than this decree", store.Path(), stateFile, s.Version)
	}
	s.eachName(tree.Unquoted)
	return s, nil
}

// fromEarlier takes what a file of an earlier decree has elsewhere: a version 1, which knew one message under way at most, has
// that beside the rest; others have the specs that are done by their paths.
func (s *state) fromEarlier(data []byte) error {
	var old struct {
		underWay
		Unmarked []string             `json:"unmarked"`
		Away     map[string]tree.Hash `json:"unmarked_away"`
	}
	err := json.Unmarshal(data, &old)
	for _, spec := range old.Unmarked {
		s.Unmarked = append(s.Unmarked, doneSpec{Spec: spec})
	}
	for spec, sum := range old.Away {
		s.Unmarked = append(s.Unmarked, doneSpec{Spec: spec, SHA256: sum})
	}
	if s.Version == 1 {
		if s.Version = stateVersion; old.Name != "" {
			s.UnderWay = []*underWay{&old.underWay}
		}
	}
	return err
}

// eachName puts each name of a file through f. On disk they are quoted as in the
// manifest: JSON holds no bytes that are not UTF-8.
func (s *state) eachName(f func(string) string) {
	lists := []*[]string{&s.Stack}
	s.UnderWay = slices.Clone(s.UnderWay)
	for i, u := range s.UnderWay {
		c := *u
		c.Name, c.Spec = f(u.Name), f(u.Spec)
		c.Beside = slices.Clone(u.Beside)
		for n := range c.Beside {
			c.Beside[n].Name = f(c.Beside[n].Name)
		}
		c.Listed = eachSpec(u.Listed, f)
		s.UnderWay[i], lists = &c, append(lists, &c.Before)
	}
	s.Unmarked = eachSpec(s.Unmarked, f)
	for _, list := range lists {
		*list = slices.Clone(*list)
		for i, name := range *list {
			(*list)[i] = f(name)
		}
	}
}

// eachSpec puts each name of specs through f.
func eachSpec(specs []doneSpec, f func(string) string) []doneSpec {
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Spec = f(specs[i].Spec)
	}
	return specs
}

func (s *state) write(store disk.Dir) error {
	if len(s.Stack) > maxStack {
		s.Stack = s.Stack[:maxStack]
	}
	data, err := s.encode()
	if err == nil && len(data) > maxState { // names can be six times as long there
		for _, u := range s.UnderWay {
			u.shorten()
		}
		data, err = s.encode()
	}
	if err != nil {
		return err
	}
	return project.ReplaceFile(store, stateFile, append(data, '\n'), project.PrivateFile, true)
}

func (q *job) saveState() error { return q.s.write(q.project().Store) }

func (s *state) encode() ([]byte, error) {
	out := *s
	out.eachName(tree.Quote)
	return json.Marshal(&out)
}

// shorten leaves in Before what is named after the chain, of each reason its first line, of Beside the last ones, and nothing in Listed.
func (u *underWay) shorten() {
	for i, reason := range u.Reasons {
		u.Reasons[i] = firstLine(reason)
	}
	u.Before = slices.DeleteFunc(u.Before, func(name string) bool { return !strings.HasPrefix(name, u.Chain+"-") })
	u.Partly, u.Listed = true, nil
	u.Beside = u.Beside[max(0, len(u.Beside)-maxShort):]
}
