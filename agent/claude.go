package agent

import "time"

// Claude is known by its documentation alone. It cuts the hooks of SessionEnd short.
var claude = adapter{
	name: "claude",
	events: map[string]Kind{
		"SessionStart": Session, "UserPromptSubmit": Prompt, "PreToolUse": ToolBefore, "PostToolUse": ToolAfter,
		"PostToolUseFailure": ToolAfter, "Stop": TurnEnd, "StopFailure": TurnEnd, "SessionEnd": SessionEnd,
	},
	fields: hookFields,
	edits:  []string{"Write", "Edit", "MultiEdit", "NotebookEdit"},
	reads: []string{
		"Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoRead", "TodoWrite", "AskUserQuestion",
		"ExitPlanMode", "EnterPlanMode", "BashOutput", "ToolSearch", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput",
	},
	adjust: notAfterCompacting,
	allows: map[string]time.Duration{"": installed, "SessionEnd": 1500 * time.Millisecond},
	place: placement{
		home: ".claude", variable: "CLAUDE_CONFIG_DIR", user: "settings.json", project: ".claude/settings.json",
		entry: timedHook, grouped: true, programs: []string{"claude"}, untried: "its documentation",
	},
}
