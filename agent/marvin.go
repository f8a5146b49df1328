package agent

import (
	_ "embed"
	"time"
)

//go:embed plugins/marvin.ts
var marvinPlugin string

// Marvin is known by its source alone. Its events come from a file of decree's: Marvin's event with
// the session, the model and the directory. Its turns are requests to the model; one
// prompt is what its agent.start and agent.end enclose.
var marvin = adapter{
	name: "marvin",
	events: map[string]Kind{
		"session.start": Session, "session.resume": Session, "session.clear": Session, "agent.start": Prompt,
		"tool.execute.before": ToolBefore, "tool.execute.after": ToolAfter, "agent.end": TurnEnd, "session.shutdown": SessionEnd,
	},
	fields: fields{
		session:   []string{"session", "event.sessionId"},
		model:     []string{"model"},
		prompt:    []string{"prompt"},
		directory: []string{"directory"},
		tool:      []string{"event.toolName"},
		toolID:    []string{"event.toolCallId"},
		paths:     []string{"event.input.path", "event.input.filePath"},
	},
	edits:  []string{"write", "edit"},
	reads:  []string{"read", "grep", "find", "glob", "ls"},
	allows: map[string]time.Duration{"": installed},
	place:  placement{home: ".config/marvin", user: "hooks/decree.ts", plugin: marvinPlugin, untried: "its source"},
}
