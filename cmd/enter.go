package cmd

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"decree/history"
	"decree/recorder"
)

func (s *session) enterVerb() verb {
	grace := 2 * time.Second
	return verb{
		name: "enter", category: draftCategory, args: "[DRAFT] [-- COMMAND [ARG...]]", words: refWords, most: anyWords,
		usage: "go on working in a draft",
		about: `Runs COMMAND, or else a shell, in the layer of a draft: it sees what the draft's run left, at the same path, and what it changes becomes a part of the draft. The tree stays as it is. When it ends, the draft's diff is written anew; "decree publish" then brings all of it into the tree.

DRAFT is a record's id or the NAME of its run; without it the only draft that waits is meant. It needs the draft's layer, which goes with time; what the draft has changed can be published without it.`,
		examples: []example{
			{"decree enter try", "a shell in the draft 'try'; it ends with 'exit'"},
			{"decree enter try -- make test", "see whether its tests pass"},
		},
		exits: []exit{
			{"n", "the command's own exit status"},
			{"128+n", "signal n ended the command, or decree got it"},
			{"3", "no such draft, or several and none was named"},
			{"4", "no draft that waits, its layer is gone, or another process works in it; nothing was changed"},
			{"126", "the command could not be executed"},
			{"127", "the command was not found"},
		},
		flags: []cli.Flag{
			durationFlag(&grace, "give processes `D` to end before they are killed", "grace"),
			s.yesFlag(), s.waitFlag(), s.rootFlag(), s.quietFlag(),
		},
		action: func(ctx context.Context) error { return s.enter(ctx, grace) },
	}
}

func (s *session) enter(ctx context.Context, grace time.Duration) error {
	if err := checkTimes(0, 0, grace); err != nil {
		return err
	}
	o := recorder.EnterOptions{
		Args: s.line.paths, Dir: s.env.Cwd, Grace: grace,
		Stdin: s.env.Stdin, Stdout: s.env.Stdout, Stderr: s.env.Stderr,
		Env: append(slices.Clip(s.env.Environ), "DECREE_OUTBOX="), // nothing brings out of the layer what is sent in it
	}
	switch words := s.line.words; {
	case len(words) > 1:
		return usagef("unexpected argument %s", quoteWord(words[1])).Hintf("a command stands after '--': decree enter %s -- %s", quoteWord(words[0]), quoteWord(words[1]))
	case len(words) == 1:
		o.Ref = words[0]
	}
	if s.line.dashed && len(o.Args) == 0 {
		return usagef("a command is missing after '--'").Hintf("without '--' a shell is started")
	}
	if len(o.Args) == 0 {
		o.Args = []string{cmp.Or(s.env.get("SHELL"), "/bin/sh")}
		o.Begins = func(rec *history.Record, workspace string) {
			s.say("decree: this shell works in draft %s, at %s; 'exit' leaves it", nameOf(rec), workspace)
		}
	}
	signals, stop := commandSignals()
	defer stop()
	o.Signals = signals
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	result, err := rec.Enter(ctx, o)
	if err != nil {
		return err
	}
	s.code = result.ExitCode
	s.entered(result)
	return nil
}

// entered says on stderr what the draft is now.
func (s *session) entered(result *recorder.RunResult) {
	p, rec := s.paint(s.env.Stderr), result.Record
	if why := result.Last.NotStarted; why != nil {
		s.say("%s draft %s is as it was: %s", p.in(bold, "decree:"), nameOf(rec), oneLine(why.Error()))
		return
	}
	if len(result.Changes) == 0 {
		s.say("%s draft %s changes nothing now", p.in(bold, "decree:"), nameOf(rec))
	} else {
		s.say("%s draft %s now changes:", p.in(bold, "decree:"), nameOf(rec))
		s.say("  %s", changesInWords(rec.Changes))
		s.changedFiles(result.Changes)
	}
	for _, n := range result.Notes {
		s.note(n)
	}
	if len(result.Changes) > 0 {
		s.say("  %s  bring it into the tree", p.in(cyan, "decree publish "+nameOf(rec)))
	}
}
