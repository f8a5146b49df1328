package agent

import (
	"fmt"
	"time"
)

// Copilot's payloads have no event's name and no ids but the session's.
var copilot = adapter{
	name: "copilot",
	events: map[string]Kind{
		"sessionStart": Session, "userPromptSubmitted": Prompt, "preToolUse": ToolBefore, "postToolUse": ToolAfter,
		"postToolUseFailure": ToolAfter, "agentStop": TurnEnd, "errorOccurred": TurnEnd, "sessionEnd": SessionEnd,
	},
	unseen: []string{"postToolUseFailure"},
	fields: fields{
		session:    []string{"sessionId"},
		prompt:     []string{"prompt"},
		directory:  []string{"cwd"},
		transcript: []string{"transcriptPath"},
		tool:       []string{"toolName"},
		paths:      []string{"toolArgs.path"},
		patches:    []string{"toolArgs", "toolArgs.input", "toolArgs.patch"},
	},
	edits: []string{"create", "edit", "apply_patch"},
	reads: []string{"view", "grep", "glob", "report_intent", "fetch_copilot_cli_documentation", "web_fetch", "read_bash", "list_bash", "ask_user", "update_todo"},
	adjust: func(e *Event, f facts) {
		// After an error that it can recover from it tries again: the turn goes on.
		if e.Name == "errorOccurred" && f.get("recoverable") == "true" {
			e.Kind = Unknown
		}
	},
	allows: map[string]time.Duration{"": installed},
	place: placement{
		home: ".copilot", variable: "COPILOT_HOME", user: "hooks/decree.json", project: ".github/hooks/decree.json",
		entry: func(command string, limit time.Duration) string {
			return fmt.Sprintf(`{"type": "command", "bash": %q, "timeoutSec": %d}`, command, int(limit.Seconds()))
		},
		versioned: true, programs: []string{"copilot"},
		asksProject: "trust the folder in copilot, and start it in the root",
	},
}
