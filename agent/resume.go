package agent

import "strings"

// resumes are the commands that go on with a conversation, by agent; the session's id follows.
var resumes = map[string][]string{
	"claude": {"claude", "--resume"}, "cline": {"cline", "--id"}, "codex": {"codex", "resume"}, "copilot": {"copilot", "--resume"}, "cursor": {"cursor-agent", "--resume"},
	"gemini": {"gemini", "--resume"}, "opencode": {"opencode", "--session"}, "pi": {"pi", "--session"}, "qwen": {"qwen", "--resume"},
}

// Resume is the command that goes on with the conversation of a session; nil where none is
// known, or the id would be taken for something else.
func Resume(agentName, session string) []string {
	command := resumes[agentName]
	if command == nil || session == "" || strings.HasPrefix(session, "-") {
		return nil
	}
	return append(command[:len(command):len(command)], session)
}
