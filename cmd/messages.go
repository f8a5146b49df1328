package cmd

import (
	"fmt"
	"strings"
	"time"

	"decree/history"
	"decree/queue"
	"decree/view"
)

// tally counts how messages ended.
type tally struct{ done, dead, stuck int }

func (t *tally) add(r *queue.Result) {
	switch r.Outcome {
	case queue.Done:
		t.done++
	case queue.Dead:
		t.dead++
	}
}

// tallied says on stderr what all came to.
func (s *session) tallied(t *tally) {
	switch {
	case t.done+t.dead+t.stuck == 0:
		s.say("decree: nothing is waiting")
	case t.dead == 0:
		s.say("decree: %s done", count(t.done, "message"))
	default:
		s.say("decree: %s done, %d dead; 'decree inbox --dead' says why", count(t.done, "message"), t.dead)
	}
	if t.stuck > 0 {
		s.say("decree: %s in the inbox, which cannot be gone on with yet; 'decree inbox' says why", count(t.stuck, "message"))
	}
}

// messageHappened tells of the queue: to people a line or two on stderr, to
// programs an object a message on stdout.
func (s *session) messageHappened(e queue.Event) {
	r := e.Result
	if r != nil && r.Run != nil {
		s.tellGone(r.Run)
	}
	switch {
	case e.Note != "":
		s.note(e.Note)
	case e.Started:
		s.say("decree: %s: %s (message %s) begins", oneLine(r.Name), r.Routine, r.ID)
	case s.global.json:
		_ = s.printLine(view.MessageOf(r)) // a broken pipe ends the process by itself
	default:
		s.messageEnded(r)
	}
}

// messageEnded says how a message ended, and what one may want to do next.
func (s *session) messageEnded(r *queue.Result) {
	p := s.paint(s.env.Stderr)
	var b strings.Builder
	fmt.Fprintf(&b, "decree: %s: ", oneLine(r.Name))
	switch r.Outcome {
	case queue.Done:
		b.WriteString("done" + messageTook(r) + "; " + workDone(r.Record))
		if r.Published != nil {
			b.WriteString("; published by record " + r.Published.ID)
		}
		if len(r.FollowUps) > 0 {
			b.WriteString("; follow-ups: " + oneLine(list(r.FollowUps)))
		}
	case queue.Dead:
		b.WriteString(p.in(red, "failed") + messageTook(r) + ": " + deadReason(r.Name, r.Reason))
		if r.Record != nil {
			b.WriteString("; " + workLeft(r) + ": record " + r.Record.ID)
		}
	default:
		b.WriteString(oneLine(r.Reason) + "; " + workLeft(r))
		if r.Place != "" {
			b.WriteString(", and it is still in the inbox")
		}
	}
	s.say("%s", b.String())
	if r.Outcome == queue.Dead {
		s.say("  %s  try it again", queue.RetryCommand(strings.TrimPrefix(r.Place, "dead/")))
	}
}

// workDone says what the work of a run that succeeded is.
func workDone(rec *history.Record) string {
	switch {
	case rec == nil:
	case rec.Changes != (history.Changes{}):
		return changesInWords(rec.Changes) + "; record " + rec.ID
	case changesOf(rec) == directoriesAlone:
		return directoriesAlone + "; record " + rec.ID
	}
	return "it changed nothing"
}

// workLeft says what became of the work of a run that did not succeed.
func workLeft(r *queue.Result) string {
	rec := r.Record
	switch {
	case r.Kept:
		return "what could not be taken back stays in the tree"
	case rec == nil || rec.Isolated == "":
		return "what it changed was put back"
	case rec.Draft == nil:
		return "it changed nothing"
	}
	return "what it changed is in a draft"
}

// deadReason is a dead message's reason without the file's name, which stands before it.
func deadReason(file, reason string) string { return oneLine(strings.TrimPrefix(reason, file+": ")) }

func messageTook(r *queue.Result) string {
	if r.Record == nil {
		return ""
	}
	if t := took(r.Record); t != "" {
		return " in " + t
	}
	return ""
}

// stamp is the time before a daemon's lines.
func (s *session) stamp() string { return s.env.Now().In(s.env.Location).Format(time.DateTime) }
