package view

import "time"

// Agent is a coding agent: whether it is on this machine, and how far decree's hooks are in its files.
type Agent struct {
	Agent    string      `json:"agent"`
	Here     bool        `json:"here"`
	User     HookedAgent `json:"user"`
	Project  HookedAgent `json:"project"`
	LastTurn string      `json:"last_turn,omitempty"` // the newest record of a turn in this tree
	// LastEvent is what one of its hooks has called with last, in any tree, and LastProof the last
	// 'decree agents test'.
	LastEvent *AgentEvent `json:"last_event,omitempty"`
	LastProof *AgentProof `json:"last_proof,omitempty"`
	Untried   string      `json:"untried,omitempty"` // from what it is known, if no real client was tried
	Problem   string      `json:"problem,omitempty"` // why a file of it cannot be read or changed
}

// AgentEvent is an event of an agent: its own name for it, and what that means ("prompt").
type AgentEvent struct {
	Name string    `json:"name"`
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	Root string    `json:"root,omitempty"` // the tree it was in; "" where nothing is recorded
}

// AgentProof is a trial of an agent's hooks.
type AgentProof struct {
	At       time.Time `json:"at"`
	Recorded bool      `json:"recorded"`
}

// HookedAgent says whether the hooks are in an agent's files of one place: "no", "partly" or "yes".
type HookedAgent struct {
	Hooked string   `json:"hooked"`
	Files  []string `json:"files"`
}

// AgentChange is what agents install or remove did to one agent, or would do.
type AgentChange struct {
	Agent   string      `json:"agent"`
	Changed bool        `json:"changed"`
	InTree  bool        `json:"in_tree"` // its files are the tree's, not the user's
	Files   []AgentFile `json:"files"`
	// Asks are what the user still has to do before the agent runs the hooks.
	Asks    []string `json:"asks"`
	Untried string   `json:"untried,omitempty"`
}

// AgentFile is one of its files, and where the copy of what was there is.
type AgentFile struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"`
	Copy    string `json:"copy,omitempty"`
}

// AgentTest is what became of a made-up turn that was sent through an agent's own files.
type AgentTest struct {
	Agent    string   `json:"agent"`
	Lines    []string `json:"lines"` // that were run, in order
	Recorded bool     `json:"recorded"`
	PromptMS int64    `json:"prompt_ms"` // how long the prompt's line took
}
