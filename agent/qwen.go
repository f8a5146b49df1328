package agent

import "time"

// Qwen's UserPromptSubmit comes before every request to the model, not once a turn: only the one
// that a person's prompt begins has submitted_prompt.
var qwen = adapter{
	name: "qwen",
	events: map[string]Kind{
		"SessionStart": Session, "UserPromptSubmit": Prompt, "PreToolUse": ToolBefore, "PostToolUse": ToolAfter,
		"PostToolUseFailure": ToolAfter, "Stop": TurnEnd, "StopFailure": TurnEnd, "SessionEnd": SessionEnd,
	},
	unseen: []string{"StopFailure", "SessionEnd"},
	fields: hookFields,
	edits:  geminiEdits,
	reads:  geminiReads,
	adjust: func(e *Event, f facts) {
		notAfterCompacting(e, f)
		if _, submitted := f["submitted_prompt"]; e.Kind == Prompt && !submitted {
			e.Kind, e.Prompt = Unknown, ""
		}
	},
	allows: map[string]time.Duration{"": installed},
	place: placement{
		home: ".qwen", user: "settings.json", project: ".qwen/settings.json",
		entry: timedHook, grouped: true, programs: []string{"qwen"},
	},
}
