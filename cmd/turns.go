package cmd

import (
	"strings"

	"decree/history"
)

// turnRows are what show says of a turn.
func (s *session) turnRows(row func(name, format string, args ...any), t *history.TurnFacts) {
	row("prompt", "%s", oneLine(strings.Join(strings.Fields(t.Prompt), " ")))
	row("ended", "%s", endedInWords(t.EndedBy))
	row("continues", "%s", t.Continues)
	if t.Transcript.Path != "" {
		row("transcript", "%s, from byte %d", shownPath(t.Transcript.Path), t.Transcript.Offset)
	}
	row("overlaps", "%s", list(t.Overlaps))
	row("tools", "%s", oneLine(list(t.Tools)))
}

// endedInWords says what a turn ended with.
func endedInWords(by history.EndedBy) string {
	switch by {
	case history.EndedByEvent:
		return "by the agent's own event"
	case history.EndedByOther:
		return "by what came after it: the agent did not say that it had answered"
	}
	return ""
}
