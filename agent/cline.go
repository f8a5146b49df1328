package agent

import "time"

// Cline's hooks are executable files named by the event; its payload calls the event by another word.
// It does not wait for TaskStart, and says nothing at a session's end. How long it waits
// for the others is not known: a hook that took eight seconds was waited for.
var cline = adapter{
	name: "cline",
	events: map[string]Kind{
		"TaskStart": Prompt, "TaskResume": Prompt, "UserPromptSubmit": Prompt, "PreToolUse": ToolBefore, "PostToolUse": ToolAfter,
		"TaskComplete": TurnEnd, "TaskError": TurnEnd, "TaskCancel": TurnEnd, "SessionShutdown": SessionEnd,
	},
	unseen: []string{"TaskResume", "UserPromptSubmit", "TaskCancel"},
	fields: fields{
		session:   []string{"sessionContext.rootSessionId", "taskId"},
		prompt:    []string{"userPromptSubmit.prompt", "taskStart.taskMetadata.initialTask"},
		directory: []string{"workspaceInfo.rootPath", "workspaceRoots"},
		tool:      []string{"tool_call.name", "tool_result.name", "preToolUse.toolName", "postToolUse.toolName"},
		toolID:    []string{"tool_call.id", "tool_result.id"},
		paths: []string{
			"tool_call.input.path", "tool_result.input.path", "preToolUse.parameters.path", "postToolUse.parameters.path",
		},
		patches: []string{
			"tool_call.input.input", "tool_result.input.input", "preToolUse.parameters.input", "postToolUse.parameters.input",
		},
	},
	edits: []string{"editor", "write_to_file", "replace_in_file", "new_rule", "apply_patch"},
	reads: []string{
		"read_files", "read_file", "list_files", "search_files", "search_codebase", "list_code_definition_names",
		"fetch_web_content", "web_fetch", "ask_question", "ask_followup_question", "plan_mode_respond", "attempt_completion",
	},
	unawaited: true,
	allows:    map[string]time.Duration{"": 8 * time.Second},
	place: placement{
		home: ".cline", user: "hooks", project: ".clinerules/hooks", scripts: true, programs: []string{"cline"},
	},
}
