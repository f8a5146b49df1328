// Package agent knows the coding agents that decree can be hooked into: what
// their hooks send, and which hooks stand in which of their own files. It is pure: an
// adapter makes an Event of a hook's name and its bytes, a File new bytes of old ones.
// docs/guide-agents.md says which of the agents were tried for real.
package agent

// Kind is what an event means, whatever the agent calls it.
type Kind string

// The kinds of events. Unknown is an event that decree has no use for.
const (
	Unknown    Kind = ""
	Session    Kind = "session"     // a session starts, is resumed or is cleared
	Prompt     Kind = "prompt"      // a turn begins
	ToolBefore Kind = "tool-before" // a tool is about to work
	ToolAfter  Kind = "tool-after"  // a tool has worked, or failed
	TurnEnd    Kind = "turn-end"    // the agent has answered, was interrupted, or failed
	SessionEnd Kind = "session-end" // the session's process is about to go
)

// Event is what one call of a hook says. Fields that the agent did not send are
// empty; nothing in it is checked, since agents pass on what models wrote.
type Event struct {
	Agent      string // the adapter's name: codex, gemini, …
	Kind       Kind
	Name       string // the agent's own name of the event
	Session    string // the agent's id of the session
	Turn       string // the agent's id of the turn, of few agents
	Model      string
	Prompt     string // the whole prompt, or what was read of it
	PromptSize int64  // how long it was, in bytes, with all that was sent with it, where not all was read
	Directory  string // where the agent works, absolute; empty: the hook's own
	Transcript string // the file that the agent writes the conversation to
	Tool       string // the tool's name as the agent calls it
	ToolID     string // what joins a tool's before and after, of few agents
	// Paths are the files that an edit tool named, as it named them: absolute,
	// or from Directory. Nil with Edits false: a tool that may have changed
	// anything (a shell, an unknown one), or one that only reads.
	Paths []string
	Edits bool // a tool that changes the files it names and no other
	Reads bool // a tool that changes nothing
	// Stop is why the agent stopped, as it calls it ("end_turn", "cancelled"); of few agents.
	Stop string
}
