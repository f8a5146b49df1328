package agent

import (
	"fmt"
	"time"
)

// Cursor is known by its documentation alone. Only events that cannot hold up a tool
// are used, so that a tool's end is all that comes of it. It takes a hook that prints no JSON for one
// that has failed, and some of its versions then refuse what was asked for.
var cursor = adapter{
	name: "cursor",
	events: map[string]Kind{
		"sessionStart": Session, "beforeSubmitPrompt": Prompt, "afterFileEdit": ToolAfter, "afterShellExecution": ToolAfter,
		"afterMCPExecution": ToolAfter, "stop": TurnEnd, "sessionEnd": SessionEnd,
	},
	fields: fields{
		session:    []string{"conversation_id", "session_id"},
		turn:       []string{"generation_id"},
		model:      []string{"model"},
		prompt:     []string{"prompt"},
		directory:  []string{"workspace_roots", "cwd"},
		transcript: []string{"transcript_path"},
		tool:       []string{"tool_name"},
		paths:      []string{"file_path", "tool_input.file_path"},
	},
	toolByEvent: true,
	edits:       []string{"afterFileEdit", "Edit", "Write"},
	allows:      map[string]time.Duration{"": installed},
	place: placement{
		home: ".cursor", user: "hooks.json", project: ".cursor/hooks.json",
		entry: func(command string, limit time.Duration) string {
			return fmt.Sprintf(`{"command": %q, "timeout": %d}`, command, int(limit.Seconds()))
		},
		answer: func(event string) string {
			if event == "beforeSubmitPrompt" {
				return `{"continue": true}`
			}
			return "{}"
		},
		versioned: true, programs: []string{"cursor-agent", "cursor"}, untried: "its documentation",
	},
}
