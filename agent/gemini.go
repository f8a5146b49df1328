package agent

import (
	"fmt"
	"time"
)

// geminiEdits and geminiReads are the tools of Gemini CLI, and of Qwen Code, which began as a copy of it.
var (
	geminiEdits = []string{"write_file", "replace", "edit", "notebook_edit"}
	geminiReads = []string{
		"read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search",
		"web_fetch", "google_web_search", "web_search", "todo_write", "write_todos", "ask_user", "get_internal_docs",
	}
)

// Gemini names no tool calls: a tool's before and after are joined by their order.
var gemini = adapter{
	name: "gemini",
	events: map[string]Kind{
		"SessionStart": Session, "BeforeAgent": Prompt, "BeforeTool": ToolBefore, "AfterTool": ToolAfter,
		"AfterAgent": TurnEnd, "SessionEnd": SessionEnd,
	},
	fields: hookFields,
	edits:  geminiEdits,
	reads:  geminiReads,
	allows: map[string]time.Duration{"": installed},
	place: placement{
		home: ".gemini", user: "settings.json", project: ".gemini/settings.json",
		entry: func(command string, limit time.Duration) string {
			return fmt.Sprintf(`{"type": "command", "name": "decree", "command": %q, "timeout": %d}`, command, limit.Milliseconds())
		},
		grouped: true, programs: []string{"gemini"},
		asksProject: "trust the folder in gemini, and start it there: it reads no settings of a folder above",
	},
}
