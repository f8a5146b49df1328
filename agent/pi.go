package agent

import (
	_ "embed"
	"time"
)

//go:embed plugins/pi.ts
var piPlugin string

// Pi's events come from an extension of decree's: pi's event with the session, its file and the directory.
var pi = adapter{
	name: "pi",
	events: map[string]Kind{
		"session_start": Session, "before_agent_start": Prompt, "tool_call": ToolBefore, "tool_result": ToolAfter,
		"agent_end": TurnEnd, "session_shutdown": SessionEnd,
	},
	fields: fields{
		session:    []string{"session"},
		prompt:     []string{"event.prompt"},
		model:      []string{"model"},
		directory:  []string{"cwd"},
		transcript: []string{"file"},
		tool:       []string{"event.toolName"},
		toolID:     []string{"event.toolCallId"},
		paths:      []string{"event.input.path"},
	},
	edits:  []string{"write", "edit"},
	reads:  []string{"read", "grep", "find", "ls"},
	allows: map[string]time.Duration{"": installed},
	place: placement{
		home: ".pi/agent", variable: "PI_CODING_AGENT_DIR", user: "extensions/decree.ts", project: ".pi/extensions/decree.ts", plugin: piPlugin,
	},
}
