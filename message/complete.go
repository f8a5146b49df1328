package message

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Defaults is what a message that leaves something open is completed with.
type Defaults struct {
	Chain    string // where neither front matter nor name say one
	Seq      int    // goes with Chain: 0, or the next one of the chain that a follow-up joins
	Routine  string // see ChooseRoutine; "": what the message says, be it nothing
	MaxDepth int    // depth must be below; 0: no bound
	MaxChain int    // seq must be below; 0: no bound
}

// Complete returns m with all of id, chain, seq, type and routine, and its bytes. Chain and
// seq are the front matter's, else the name's (NameParts), else the defaults'; the id is
// always <chain>-<seq>, and the type Spec when input_file ends in ".spec.md", else Task,
// whatever the front matter says; the routine is d.Routine where it is not "". If that is
// what the file said already, the bytes are those given to Parse. Errors are *Error: the
// depth is reached, or a default that cannot be. m is not changed.
func Complete(m *Message, d Defaults) (*Message, []byte, error) {
	c := *m
	c.Params = slices.Clone(m.Params)
	if err := c.fill(d); err != nil {
		return nil, nil, &Error{Name: m.Name, Reason: err.Error()}
	}
	missing := c.missing()
	if len(missing) == 0 {
		return &c, m.front.data, nil
	}
	return m.rewrite(missing)
}

// Set returns m with fields of its front matter set, known ones or parameters, and its
// bytes. It changes the lines of these fields and nothing else. Errors are *Error, as from
// Parse, and for text that YAML cannot hold. m is not changed.
func Set(m *Message, fields []Param) (*Message, []byte, error) {
	if len(fields) == 0 {
		return m, m.front.data, nil
	}
	for i, f := range fields {
		if slices.ContainsFunc(fields[:i], func(p Param) bool { return p.Name == f.Name }) {
			return nil, nil, &Error{Name: m.Name, Reason: fmt.Sprintf("field %q is given twice", f.Name)}
		}
	}
	return m.rewrite(fields)
}

// rewrite sets fields, and believes in the result only when it has read it.
func (m *Message) rewrite(fields []Param) (*Message, []byte, error) {
	var problem error
	// Lines do not do for a value over several of them, or a line end that only YAML knows.
	for _, write := range []func([]Param, []byte) ([]byte, error){m.front.with, m.front.rebuilt} {
		data, err := write(fields, m.Body)
		if err != nil {
			return nil, nil, &Error{Name: m.Name, Reason: err.Error()}
		}
		got, err := Parse(m.Name, data)
		switch {
		case err != nil:
			problem = err
		case string(got.Body) == string(m.Body) && got.front.keeps(&m.front, fields):
			return got, data, nil
		}
	}
	if problem == nil {
		problem = &Error{Name: m.Name, Reason: "its front matter cannot hold the new fields; write it one field a line"}
	}
	return nil, nil, problem
}

// fill sets the fields of m that d and the name decide.
func (m *Message) fill(d Defaults) error {
	nameChain, nameSeq, named := NameParts(m.Name, d.MaxDepth)
	joins := m.Chain == "" && !named
	switch {
	case joins:
		m.Chain = d.Chain
	case m.Chain == "":
		m.Chain = nameChain
	}
	if m.Seq < 0 {
		m.Seq = 0
		if joins {
			m.Seq = d.Seq
		} else if named && nameChain == m.Chain {
			m.Seq = nameSeq
		}
	}
	if err := checkChain(m.Chain); err != nil {
		return err
	}
	if d.MaxDepth > 0 && m.Depth >= d.MaxDepth {
		return fmt.Errorf("the depth is reached: depth %d, and max_depth is %d", m.Depth, d.MaxDepth)
	}
	if d.MaxChain > 0 && m.Seq >= d.MaxChain {
		return fmt.Errorf("the chain is full: seq %d, and max_chain is %d", m.Seq, d.MaxChain)
	}
	m.ID = m.Chain + "-" + strconv.Itoa(m.Seq)
	m.Type = Task
	if strings.HasSuffix(m.InputFile, ".spec.md") {
		m.Type = Spec
	}
	if d.Routine != "" {
		m.Routine = d.Routine
		return CheckRoutineName(m.Routine)
	}
	return nil
}

// missing is what the file does not say, or says otherwise.
func (m *Message) missing() []Param {
	var missing []Param
	for _, want := range []Param{
		{"id", m.ID}, {"chain", m.Chain}, {"seq", strconv.Itoa(m.Seq)}, {"type", m.Type}, {"routine", m.Routine},
	} {
		_, v := m.front.find(want.Name)
		if v == nil && want.Value != "" || v != nil && v.Value != want.Value {
			missing = append(missing, want)
		}
	}
	return missing
}

// chainDigits is how many digits a chain of decree's own has.
const chainDigits = 16

// NameParts takes a name of the form <chain>-<seq>.md apart. A chain is 16 digits, as
// decree gives them. Another one is believed only with a seq below maxDepth: people call
// files 2026-11-20.md and step-117.md and mean no chain by it.
func NameParts(name string, maxDepth int) (chain string, seq int, ok bool) {
	stem, isMessage := strings.CutSuffix(name, ".md")
	dash := strings.LastIndexByte(stem, '-')
	if !isMessage || dash < 1 {
		return "", 0, false
	}
	chain, digits := stem[:dash], stem[dash+1:]
	seq, ok = number(digits)
	if !ok || strconv.Itoa(seq) != digits || checkChain(chain) != nil {
		return "", 0, false
	}
	if !ownChain(chain) && maxDepth > 0 && seq >= maxDepth {
		return "", 0, false
	}
	return chain, seq, true
}

func ownChain(chain string) bool {
	return len(chain) == chainDigits && strings.Trim(chain, "0123456789") == ""
}

// checkChain is nil for text that can be a chain: 1 to 100 letters, digits, '_', '-' and
// '.', not beginning with '-' or '.'.
func checkChain(chain string) error {
	if chain == "" || len(chain) > 100 || chain[0] == '-' || chain[0] == '.' {
		return fmt.Errorf("%q is not a chain: 1 to 100 letters, digits, _, - and ., a letter, digit or _ first", chain)
	}
	for _, c := range []byte(chain) {
		if c >= 0x80 || !isWord(c) && c != '-' && c != '.' {
			return fmt.Errorf("%q is not a chain: it can hold letters, digits, _, - and .", chain)
		}
	}
	return nil
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// checkInputFile is nil for a path below the root: relative, and nowhere above it.
// Whether it is there, and no link leads out, is the caller's to see.
func checkInputFile(file string) error {
	if err := below(file); err != nil {
		return err
	}
	if control(file) {
		return fmt.Errorf("input_file %q holds a control character", file)
	}
	return nil
}

// below is nil for a path that leads nowhere above the root.
func below(file string) error {
	clean := path.Clean(file)
	switch {
	case file == "" || clean == ".":
		return fmt.Errorf("input_file %q is not a file", file)
	case path.IsAbs(file), clean == "..", strings.HasPrefix(clean, "../"):
		return fmt.Errorf("input_file %q is outside of the root; it is relative to it", file)
	}
	return nil
}

// control says whether text holds a control character.
func control(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// Choice is what decides on a message's routine.
type Choice struct {
	Spec    *Message               // the spec that input_file names, or nil
	Router  func() (string, error) // asks the router; nil: there is none. Called only if it decides
	Default string                 // default_routine
	Known   func(name string) bool // whether there is such a routine
}

// ChooseRoutine returns the message's routine, else its spec's, else the router's answer
// (its first line, trimmed) when that is a known name, else the default. The one that is
// named must be known: an *Error otherwise. A router that fails, or answers something
// else, is passed over; passed says why, to be told.
func ChooseRoutine(m *Message, c Choice) (name string, passed, err error) {
	switch {
	case m.Routine != "":
		name = m.Routine
	case c.Spec != nil && c.Spec.Routine != "":
		name = c.Spec.Routine
	case c.Router != nil:
		name, passed = route(c)
	}
	if name == "" {
		name = c.Default
	}
	if CheckRoutineName(name) != nil || !c.Known(name) {
		return "", passed, &Error{Name: m.Name, Reason: fmt.Sprintf("no routine is called %q", name)}
	}
	return name, passed, nil
}

// route is the router's answer, "" with the reason where it is none.
func route(c Choice) (string, error) {
	answer, err := c.Router()
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	name := strings.TrimSpace(line)
	if CheckRoutineName(name) != nil || !c.Known(name) {
		return "", fmt.Errorf("the router's answer %.100q is not the name of a routine", name)
	}
	return name, nil
}
