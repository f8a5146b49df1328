package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"decree/agent"
	"decree/history"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
)

func (s *session) turnsVerb() verb {
	var of string
	return verb{
		name: "turns", category: agentCategory,
		usage: "list the sessions of coding agents and their turns, newest first",
		about: `Lists what coding agents did, by session: each turn from a prompt to its answer, with its label, when it began, how long it took, its prompt and what it changed. A turn that is open goes on, or its agent was ended without a word: then it is closed by the next prompt, or by what moves the tree. Hooks record them: see 'decree agents'.

A turn is a record: "decree show turn-7" says how to go on with its conversation, "decree diff turn-7" what it changed, and "decree revert turn-7" takes that back. What others changed in the same time, another session, a run or you, is not a turn's; a path that nobody can be said to have changed alone is taken back with --force only.`,
		examples: []example{
			{"decree turns", "what did the agents do?"},
			{"decree turns --json", "for a program: the whole records"},
		},
		exits:  []exit{{"0", "listed, even if there was nothing to list"}, {"3", "no such session"}},
		flags:  s.reading(stringFlag(&of, "only the session whose id begins with `S`", "session")),
		action: func(context.Context) error { return s.turns(of) },
	}
}

func (s *session) turns(of string) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	listing, err := s.list(rec, 0, func(r *history.Record) bool {
		return r.Reason == history.Turn && strings.HasPrefix(r.Actor.Session, of)
	})
	if err != nil {
		return err
	}
	turns := listing.Records
	if len(turns) == 0 && of != "" {
		return notFoundf("no turn of a session %s", quoteWord(of)).Hintf("'decree turns' lists them all")
	}
	s.sayHooks(rec)
	if s.global.json {
		return s.printRecords(turns)
	}
	if len(turns) == 0 {
		return s.sayNoTurns(rec)
	}
	return s.page(func(w io.Writer) error { return s.writeTurns(w, turns) })
}

// sayNoTurns says from when on turns are recorded: the tree has to be, before.
func (s *session) sayNoTurns(rec *recorder.Reader) error {
	listing, err := rec.History().List(history.ListOptions{Keep: func(r *history.Record) bool { return r.Status != history.StatusOpen }})
	if err != nil {
		return err
	}
	if n := len(listing.Records); n > 0 {
		s.say("no turns: the tree is recorded since %s, and turns from then on where 'decree agents install' was said", s.clock(listing.Records[n-1].Ended))
		return nil
	}
	s.say("no turns: 'decree agents install' has them recorded")
	return nil
}

// sayHooks tells which events could not be recorded since the newest turn.
func (s *session) sayHooks(rec *recorder.Reader) {
	lines, err := rec.HooksLog()
	if err != nil {
		s.note(err.Error())
	}
	if len(lines) > 0 {
		s.note(oneLine(recorder.UnrecordedHooks(lines)))
	}
}

// writeTurns lists turns by session, that of the newest turn first.
func (s *session) writeTurns(w io.Writer, turns []*history.Record) error {
	type of struct{ agent, session string }
	var sessions []of
	bySession := map[of][]*history.Record{}
	for _, r := range turns {
		k := of{r.Actor.Agent, r.Actor.Session}
		if bySession[k] == nil {
			sessions = append(sessions, k)
		}
		bySession[k] = append(bySession[k], r)
	}
	p := s.paint(s.env.Stdout)
	for i, k := range sessions {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n", oneLine(strings.TrimSpace(k.agent+" "+k.session)))
		var t table
		for _, r := range bySession[k] {
			t.add("", fmt.Sprintf("turn-%d", r.Actor.Turn), s.ago(r.Started), took(r), p.in(toneColours[timeline.ToneOf(r)], turnState(r)), clip(promptOf(r), 48), changesOf(r))
		}
		if err := t.write(w); err != nil {
			return err
		}
	}
	return nil
}

// turnState says in few words how a turn stands.
func turnState(r *history.Record) string {
	switch {
	case r.Status == history.StatusSucceeded && r.Turn.EndedBy == history.EndedByOther:
		return "ended without a word"
	case r.Status == history.StatusSucceeded && r.Turn.Stop != "" && r.Turn.Stop != "end_turn":
		return "stopped: " + clip(oneLine(r.Turn.Stop), 20)
	case r.Status == history.StatusSucceeded:
		return "answered"
	}
	return statusWords(r)
}

// promptOf is a turn's prompt on a line.
func promptOf(r *history.Record) string {
	return oneLine(strings.Join(strings.Fields(r.Turn.Prompt), " "))
}

// turnRows are what show says of a turn.
func (s *session) turnRows(row func(name, format string, args ...any), r *history.Record) {
	t := r.Turn
	row("prompt", "%s", promptOf(r))
	if t.PromptSize > 0 {
		row("", "(the beginning of %d bytes)", t.PromptSize)
	}
	row("ended", "%s", endedInWords(t.EndedBy))
	row("stop reason", "%s", oneLine(t.Stop))
	row("continues", "%s", t.Continues)
	if t.Transcript.Path != "" {
		row("transcript", "%s, from byte %d", shownPath(t.Transcript.Path), t.Transcript.Offset)
	}
	row("overlaps", "%s", list(t.Overlaps))
	row("tools", "%s", oneLine(list(t.Tools)))
	row("resume", "%s", tree.ShellWords(agent.Resume(r.Actor.Agent, r.Actor.Session)))
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
