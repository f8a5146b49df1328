package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// adapter is what decree knows of one agent. A new agent is one file with one of
// these, its line in adapters, and its samples in testdata.
type adapter struct {
	name string
	// events has the kind of each event that decree is hooked into.
	events map[string]Kind
	// unseen are those of them that came in no trial, or in none that was kept.
	unseen []string
	fields fields
	// edits are the tools that change the files they name and no other; reads change nothing.
	// All others may do anything: shells, other programs' tools, what comes with a later version.
	edits, reads []string
	// toolByEvent: a tool that the payload does not name is called by the event.
	toolByEvent bool
	// adjust mends what the shape alone cannot say. May be nil.
	adjust func(e *Event, f facts)
	// unawaited: it goes on with its work beside the hook of a prompt.
	unawaited bool
	// allows is how long the agent waits for a hook at most, by event; "" stands for all others.
	allows map[string]time.Duration
	place  placement
}

// fields names where an agent's payload has what: the first name with a value counts.
type fields struct {
	session, turn, model, prompt, directory, transcript, tool, toolID []string
	// paths have a file each; patches have the text of a patch that names its files.
	paths, patches []string
}

// adapters is the table of all agents, in order of their names.
var adapters = []*adapter{
	&claude, &cline, &codex, &copilot, &cursor, &gemini, &marvin, &opencode, &pi, &qwen,
}

func find(name string) *adapter {
	for _, a := range adapters {
		if a.name == name {
			return a
		}
	}
	return nil
}

// Read returns what a hook's call says. agentName and eventName are the hook's arguments, payload is
// what the agent wrote to its stdin. Broken, empty or cut-off payloads give what can be known,
// and an error that says what is wrong with them; for an agent that is not known the event has its
// two names alone.
func Read(agentName, eventName string, payload []byte) (Event, error) {
	e := Event{Agent: agentName, Name: eventName}
	a := find(agentName)
	if a == nil {
		return e, fmt.Errorf("no agent %q is known", agentName)
	}
	e.Kind = a.events[eventName]
	f, err := readFacts(payload)
	e.Session, e.Turn, e.Model = f.get(a.fields.session...), f.get(a.fields.turn...), f.get(a.fields.model...)
	e.Directory, e.Transcript = f.get(a.fields.directory...), f.get(a.fields.transcript...)
	switch e.Kind {
	case Prompt:
		e.Prompt = f.get(a.fields.prompt...)
	case ToolBefore, ToolAfter:
		e.Tool, e.ToolID = f.get(a.fields.tool...), f.get(a.fields.toolID...)
		if e.Tool == "" && a.toolByEvent {
			e.Tool = e.Name
		}
		a.classify(&e, f)
	}
	if a.adjust != nil {
		a.adjust(&e, f)
	}
	return e, err
}

// classify says what e's tool can have changed. An edit tool that names no file, as the payload was cut off or
// a later version calls it otherwise, may have changed anything.
func (a *adapter) classify(e *Event, f facts) {
	if e.Reads = slices.Contains(a.reads, e.Tool); e.Reads || !slices.Contains(a.edits, e.Tool) {
		return
	}
	var paths []string
	for _, name := range a.fields.paths {
		paths = append(paths, f[name]...)
	}
	for _, name := range a.fields.patches {
		for _, text := range f[name] {
			paths = append(paths, patchPaths(text)...)
		}
	}
	slices.Sort(paths)
	e.Paths = slices.DeleteFunc(slices.Compact(paths), func(path string) bool { return path == "" })
	e.Edits = len(e.Paths) > 0
}

// patchPaths returns the files that a patch in the form of apply_patch names, also those
// that it moves files to.
func patchPaths(text string) []string {
	var paths []string
	for line := range strings.Lines(text) {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, head); ok {
				paths = append(paths, strings.TrimRight(path, "\r\n"))
			}
		}
	}
	return paths
}

// Awaits says whether an agent waits for the hook of a prompt before it goes to work.
func Awaits(agentName string) bool {
	a := find(agentName)
	return a == nil || !a.unawaited
}

// Deadline returns how long decree may work for an event: half of what the agent
// waits for. Of an agent or event that is not known it is four seconds.
func Deadline(agentName, eventName string) time.Duration {
	const unknown = 8 * time.Second
	a := find(agentName)
	if a == nil {
		return unknown / 2
	}
	return a.allowed(eventName) / 2
}

// allowed is how long the agent waits for the hook of an event.
func (a *adapter) allowed(event string) time.Duration {
	if d, ok := a.allows[event]; ok {
		return d
	}
	return a.allows[""]
}

// installed is the time limit that decree asks for where an agent lets a hook say its own.
const installed = 20 * time.Second

// notAfterCompacting makes a session's start that only says that the conversation was
// shortened, in the midst of a turn, an event of no use.
func notAfterCompacting(e *Event, f facts) {
	if e.Kind == Session && f.get("source") == "compact" {
		e.Kind = Unknown
	}
}
