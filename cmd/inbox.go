package cmd

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"decree/message"
	"decree/project"
	"decree/queue"
)

// inboxOptions are inbox's flags.
type inboxOptions struct{ dead, done bool }

func (s *session) inboxVerb() verb {
	var o inboxOptions
	return verb{
		name: "inbox", category: messageCategory, args: "[retry NAME...]",
		usage: "list the messages that wait, failed or are done",
		about: `Lists the messages in .decree/inbox, the oldest first: name, when it was written, its routine, its first line. With --dead those that failed, with the reason; with --done those that are done.

"inbox retry NAME" moves a dead message back into the inbox, where it has all its attempts again. The same is done by moving its file by hand.`,
		examples: []example{
			{"decree inbox", "what waits"},
			{"decree inbox --dead", "what failed, and why"},
			{"decree inbox retry 2026112107015900-0", "try that one again"},
			{"decree inbox --json", "for programs"},
		},
		exits: []exit{{"3", "retry: no such dead message"}, {"4", "retry: another decree works on this tree"}},
		flags: append([]cli.Flag{
			boolFlag(&o.dead, "those that failed", "dead"),
			boolFlag(&o.done, "those that are done", "done"),
		}, s.jsonFlag(), s.waitFlag(), s.rootFlag(), s.quietFlag()),
		action: func(ctx context.Context) error { return s.inbox(ctx, o) },
	}
}

func (s *session) inbox(ctx context.Context, o inboxOptions) error {
	words := s.words()
	if len(words) > 0 && words[0] == "retry" {
		if o.dead || o.done {
			return usagef("retry is about dead messages; it takes neither --dead nor --done")
		}
		return s.retry(ctx, words[1:])
	}
	switch {
	case len(words) > 0:
		return usagef("%s is nothing that inbox can do", quoteWord(words[0])).hint("'decree inbox' lists, 'decree inbox retry NAME' tries a dead message again")
	case o.dead && o.done:
		return usagef("--dead and --done are two lists").hint("give one of them")
	}
	rec, err := s.forReading(ctx)
	if err != nil {
		return err
	}
	where := ""
	if o.dead {
		where = "dead"
	} else if o.done {
		where = "done"
	}
	return s.listMessages(rec.Project(), where)
}

// waitingJSON is a message in a list.
type waitingJSON struct {
	Name      string    `json:"name"`
	Path      string    `json:"path"` // below the root
	ID        string    `json:"id"`   // "" where it has none yet
	Type      string    `json:"type"`
	Routine   string    `json:"routine"`
	InputFile string    `json:"input_file,omitempty"`
	Written   time.Time `json:"written"`
	Reason    string    `json:"reason,omitempty"` // of a dead one, or what is wrong with it
	Text      string    `json:"text"`             // its heading, or first line
}

func (s *session) listMessages(p *project.Project, where string) error {
	files, err := queue.Waiting(p, where)
	if err != nil {
		return err
	}
	out := make([]waitingJSON, 0, len(files))
	for _, f := range files {
		j := waitingJSON{Name: f.Name, Written: time.Unix(0, f.Mtime).UTC(), Path: strings.Join(nonEmpty(".decree/inbox", where, f.Name), "/")}
		data, reason, err := queue.Read(p, where, f.Name)
		var m *message.Message
		if err == nil {
			m, err = message.Parse(f.Name, data)
		}
		if err != nil {
			j.Reason = err.Error()
		} else {
			j.ID, j.Type, j.Routine, j.InputFile, j.Text = m.ID, m.Type, m.Routine, m.InputFile, m.Heading()
		}
		if reason != "" {
			j.Reason = reason
		}
		out = append(out, j)
	}
	if s.global.json {
		return s.printJSON(out)
	}
	if len(out) == 0 {
		s.say("decree: %s", map[string]string{"": "nothing waits", "dead": "no message failed", "done": "no message is done"}[where])
		return nil
	}
	return s.print(func(w io.Writer) error {
		var t table
		for _, j := range out {
			last := j.Text
			if last == "" {
				last = j.InputFile
			}
			if j.Reason != "" {
				last = j.Reason
			}
			t.add(quoteWord(strings.TrimSuffix(j.Name, ".md")), s.ago(j.Written), orDash(j.Routine), oneLine(last))
		}
		return t.write(w)
	})
}

func nonEmpty(words ...string) (out []string) {
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return oneLine(text)
}

func (s *session) retry(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return usagef("a NAME is missing").hint("'decree inbox --dead' lists them")
	}
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	return rec.Hold(ctx, s.global.wait, func() error {
		for _, w := range words {
			as, err := queue.Retry(rec.Project(), messageName(w))
			if err != nil {
				return err
			}
			s.tell("%s waits again", quoteWord(strings.TrimSuffix(as, ".md")))
		}
		return nil
	})
}
