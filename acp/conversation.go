// Package acp reads along what an editor and a coding agent say to each other in the Agent
// Client Protocol, version 1 (agentclientprotocol.com): JSON-RPC messages, a line each, over the
// agent's stdin and stdout. It makes the events of it that decree records turns by.
//
// Copy passes every byte on as it came, whatever it is. A Conversation understands what it can:
// a line that is no JSON, a method that is not known, a field of another shape tell nothing.
// The package is pure: it reads and writes only the streams that it is given.
package acp

import (
	"maps"
	"slices"
	"sync"

	"decree/agent"
)

// Conversation is what is known of the messages so far. It is safe for concurrent use by the
// two directions.
type Conversation struct {
	agent    string
	mu       sync.Mutex
	asked    map[string]asked // by id, what the editor asked and the agent has not answered
	sessions map[string]*session
}

// asked is a request of the editor's.
type asked struct {
	method string
	params params
}

type session struct {
	directory, model string
	prompts          int // those that are not answered
	tools            map[string]*tool
}

// tool is a call in a turn.
type tool struct {
	kind  string
	paths []string
	told  bool // that it may have changed anything
	ended bool // more may be said of it all the same
}

// New is a conversation with the agent of that name that has not begun.
func New(agentName string) *Conversation {
	return &Conversation{agent: agentName, asked: map[string]asked{}, sessions: map[string]*session{}}
}

func (c *Conversation) session(id string) *session {
	s := c.sessions[id]
	if s == nil {
		s = &session{tools: map[string]*tool{}}
		c.sessions[id] = s
	}
	return s
}

// event is one of a session's; name is what the protocol calls it.
func (c *Conversation) event(kind agent.Kind, name, id string) agent.Event {
	s := c.session(id)
	return agent.Event{Agent: c.agent, Kind: kind, Name: name, Session: id, Model: s.model, Directory: s.directory}
}

// FromEditor returns what a line of the editor's tells: of kind Prompt. cut is how many bytes the
// line lacks, as of Copy.
func (c *Conversation) FromEditor(line []byte, cut int64) []agent.Event {
	m := read[message](line)
	p := read[params](m.Params)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case "session/new", "session/load", "session/resume":
		c.asked[key(m.ID)] = asked{m.Method, p}
	case "session/set_model":
		if s := c.sessions[p.SessionID]; s != nil {
			s.model = p.ModelID
		}
	case "session/prompt":
		if p.SessionID == "" || m.ID == nil {
			return nil
		}
		c.asked[key(m.ID)] = asked{m.Method, p}
		c.session(p.SessionID).prompts++
		e := c.event(agent.Prompt, m.Method, p.SessionID)
		if e.Prompt = textOf(p.Prompt); cut > 0 {
			e.PromptSize = int64(len(e.Prompt)) + cut
		}
		return []agent.Event{e}
	}
	return nil
}

// FromAgent returns what a line of the agent's tells: of the kinds Session, ToolBefore,
// ToolAfter and TurnEnd, this one last.
func (c *Conversation) FromAgent(line []byte) []agent.Event {
	m := read[message](line)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Method == "" {
		return c.answered(m)
	}
	p := read[params](m.Params)
	s := c.sessions[p.SessionID]
	if s == nil || s.prompts == 0 {
		return nil // a session that is loaded tells again what its tools did once
	}
	switch m.Method {
	case "session/update":
		if p.Update.SessionUpdate == "tool_call" || p.Update.SessionUpdate == "tool_call_update" {
			return c.updated(p.SessionID, p.Update)
		}
	case "session/request_permission":
		return c.updated(p.SessionID, p.ToolCall)
	case "fs/write_text_file":
		e := c.event(agent.ToolBefore, m.Method, p.SessionID)
		e.Tool, e.Paths, e.Edits = "write_text_file", named(p.Path), p.Path != ""
		return []agent.Event{e}
	case "terminal/create":
		e := c.event(agent.ToolBefore, m.Method, p.SessionID)
		e.Tool = "terminal"
		return []agent.Event{e}
	}
	return nil
}

func named(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// answered is what an answer of the agent's tells.
func (c *Conversation) answered(m message) []agent.Event {
	a, ok := c.asked[key(m.ID)]
	if !ok || m.ID == nil {
		return nil
	}
	delete(c.asked, key(m.ID))
	result := read[params](m.Result)
	id := a.params.SessionID
	if a.method == "session/prompt" {
		s := c.session(id)
		s.prompts--
		events := c.unfinished(id)
		e := c.event(agent.TurnEnd, "stopReason", id)
		if e.Stop = result.StopReason; m.failed() {
			e.Stop = "error"
		}
		return append(events, e)
	}
	if id == "" {
		id = result.SessionID
	}
	if m.failed() || id == "" {
		return nil
	}
	s := c.session(id)
	s.directory, s.model = a.params.Cwd, result.Models.CurrentModelID
	return []agent.Event{c.event(agent.Session, a.method, id)}
}

// Ended returns what is told by the agent's end: nothing answers any more, so that the sessions with a
// prompt that is not answered are over. They are of kind SessionEnd.
func (c *Conversation) Ended() (events []agent.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.sessions)) {
		if c.sessions[id].prompts > 0 {
			events = append(events, c.unfinished(id)...)
			events = append(events, c.event(agent.SessionEnd, "exit", id))
		}
	}
	return events
}
