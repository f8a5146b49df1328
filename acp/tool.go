package acp

import (
	"maps"
	"slices"

	"decree/agent"
)

// reads are the kinds of tools that change nothing. Not among them is "think": what an agent
// has another one do goes by that.
var reads = []string{"read", "search", "fetch", "switch_mode"}

// edits says how many paths a tool of a kind names at least if it changes those and no
// other; 0: it may change anything.
var edits = map[string]int{"edit": 1, "delete": 1, "move": 2}

// updated is what is told by the news of a tool's call. Paths often come after the call itself, so
// that an edit that has named none yet tells nothing until it has ended.
func (c *Conversation) updated(id string, u toolUpdate) (events []agent.Event) {
	s := c.session(id)
	t := s.tools[u.ToolCallID]
	if t == nil {
		t = &tool{}
		s.tools[u.ToolCallID] = t
	}
	if u.Kind != "" {
		t.kind = u.Kind
	}
	ended := u.Status == "completed" || u.Status == "failed"
	more := t.name(u)
	switch {
	case ended && !t.ended:
		if t.ended = true; !slices.Contains(reads, t.kind) {
			events = append(events, c.told(agent.ToolAfter, id, u.ToolCallID, t))
		}
	case t.isEdit() && more, t.mayChangeAnything(u.Status) && !t.told:
		t.told = !t.isEdit()
		events = append(events, c.told(agent.ToolBefore, id, u.ToolCallID, t))
	}
	return events
}

// name adds the paths that an update names; true if one is new.
func (t *tool) name(u toolUpdate) (more bool) {
	add := func(path string) {
		if path != "" && !slices.Contains(t.paths, path) {
			t.paths, more = append(t.paths, path), true
		}
	}
	for _, l := range u.Locations {
		add(l.Path)
	}
	for _, part := range u.Content {
		if part.Type == "diff" {
			add(part.Path)
		}
	}
	return more
}

func (t *tool) isEdit() bool { return edits[t.kind] > 0 && len(t.paths) >= edits[t.kind] }

// mayChangeAnything says so of a tool that is about to work; without a kind it is not
// known before it works.
func (t *tool) mayChangeAnything(status string) bool {
	return edits[t.kind] == 0 && !slices.Contains(reads, t.kind) && (t.kind != "" || status == "in_progress")
}

func (c *Conversation) told(kind agent.Kind, id, call string, t *tool) agent.Event {
	e := c.event(kind, "tool_call", id)
	if e.Tool, e.ToolID = t.kind, call; e.Tool == "" {
		e.Tool = "other"
	}
	if e.Edits = t.isEdit(); e.Edits {
		e.Paths = slices.Clone(t.paths)
	}
	return e
}

// unfinished is what is told of the calls of a session that nobody said have ended: an
// edit that has named no path may have changed anything.
func (c *Conversation) unfinished(id string) (events []agent.Event) {
	s := c.session(id)
	for _, call := range slices.Sorted(maps.Keys(s.tools)) {
		if t := s.tools[call]; !t.ended && !t.told && !t.isEdit() && !slices.Contains(reads, t.kind) {
			events = append(events, c.told(agent.ToolBefore, id, call, t))
		}
	}
	clear(s.tools)
	return events
}
