package agent

import (
	"fmt"
	"time"
)

// hookFields is the shape of the payloads that several agents share.
var hookFields = fields{
	session:    []string{"session_id"},
	turn:       []string{"turn_id", "prompt_id"},
	model:      []string{"model"},
	prompt:     []string{"submitted_prompt", "prompt"},
	directory:  []string{"cwd"},
	transcript: []string{"transcript_path"},
	tool:       []string{"tool_name"},
	toolID:     []string{"tool_use_id"},
	paths:      []string{"tool_input.file_path", "tool_input.path", "tool_input.notebook_path"},
}

// Codex edits files by one tool, whose only argument is a patch.
var codex = adapter{
	name: "codex",
	events: map[string]Kind{
		"SessionStart": Session, "UserPromptSubmit": Prompt, "PreToolUse": ToolBefore, "PostToolUse": ToolAfter,
		"Stop": TurnEnd, "Interrupt": TurnEnd, "SessionEnd": SessionEnd,
	},
	fields: codexFields(),
	edits:  []string{"apply_patch"},
	adjust: notAfterCompacting,
	allows: map[string]time.Duration{"": installed, "Interrupt": 3 * time.Second, "SessionEnd": 3 * time.Second},
	place: placement{
		home: ".codex", variable: "CODEX_HOME", user: "hooks.json", project: ".codex/hooks.json",
		entry: timedHook, grouped: true, programs: []string{"codex"},
		asks:        "trust the new hooks once: start codex and type /hooks; until then it skips them without a word",
		asksProject: "mark the project as trusted in codex too",
	},
}

func codexFields() fields {
	f := hookFields
	f.paths, f.patches = nil, []string{"tool_input.command", "tool_input.input", "tool_input.patch"}
	return f
}

// timedHook is a hook as several agents want it, with its time limit in seconds.
func timedHook(command string, limit time.Duration) string {
	return fmt.Sprintf(`{"type": "command", "command": %q, "timeout": %d}`, command, int(limit.Seconds()))
}
