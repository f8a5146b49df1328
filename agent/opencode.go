package agent

import (
	_ "embed"
	"time"
)

//go:embed plugins/opencode.js
var opencodePlugin string

// OpenCode's events come from a plugin of decree's: what OpenCode calls it with, and the
// directory. session.idle follows a session.error too, so that alone ends a turn.
var opencode = adapter{
	name: "opencode",
	events: map[string]Kind{
		"session.created": Session, "chat.message": Prompt, "tool.execute.before": ToolBefore, "tool.execute.after": ToolAfter,
		"session.idle": TurnEnd, "dispose": SessionEnd,
	},
	fields: fields{
		session:   []string{"session", "input.sessionID", "properties.sessionID", "properties.info.id"},
		model:     []string{"output.message.model.modelID", "input.model.modelID"},
		prompt:    []string{"output.parts.text"},
		directory: []string{"directory", "properties.info.directory"},
		tool:      []string{"input.tool"},
		toolID:    []string{"input.callID"},
		paths:     []string{"output.args.filePath", "input.args.filePath"},
		patches:   []string{"output.args.patchText", "input.args.patchText"},
	},
	edits:  []string{"write", "edit", "patch", "apply_patch"},
	reads:  []string{"read", "glob", "grep", "list", "webfetch", "websearch", "codesearch", "todowrite", "todoread", "question", "skill"},
	allows: map[string]time.Duration{"": installed},
	place: placement{
		home: ".config/opencode", user: "plugin/decree.js", project: ".opencode/plugin/decree.js",
		plugin: opencodePlugin, programs: []string{"opencode"},
	},
}
