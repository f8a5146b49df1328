package cmd

import (
	"context"
	"fmt"

	"decree/recorder"
)

// checkpointOptions are checkpoint's flags.
type checkpointOptions struct {
	description, reason, label string
	skipUnreadable, full       bool
}

func (s *session) checkpointVerb() verb {
	o := checkpointOptions{reason: "manual"}
	return verb{
		name: "checkpoint", category: recordCategory, interruptible: true,
		usage: "record the tree as it is now",
		about: `Records the tree without running a command, and prints only the record's id on stdout. "decree restore ID" returns the tree to this state. An unchanged tree costs next to nothing. Without a description, a checkpoint with the reason auto or publish gets one: with DECREE_TURN=7, "Before turn 7".

It works while a run is in progress too: then it holds what the run's command had done by then, and the run's diff has that all the same.`,
		examples: []example{
			{"decree checkpoint -d 'before the big move'", "a record with a description"},
			{"decree checkpoint --label good", "a record that can be called 'good' from now on"},
			{"id=$(decree checkpoint --reason auto)", "in a script or a hook"},
		},
		exits: []exit{{"4", "another decree is working on this tree, or the tree is too large to be recorded without --yes"}},
		flags: s.writing(
			stringFlag(&o.description, "`TEXT` that says what this is; -m is the same", "description", "d", "m"),
			stringFlag(&o.reason, "why the record exists: `REASON` is manual, auto or publish", "reason"),
			stringFlag(&o.label, "give the record the label `L`", "label"),
			skipUnreadableFlag(&o.skipUnreadable), fullFlag(&o.full),
		),
		action: func(ctx context.Context) error { return s.checkpoint(ctx, o) },
	}
}

func (s *session) checkpoint(ctx context.Context, o checkpointOptions) error {
	switch o.reason {
	case "manual", "auto", "publish":
	default:
		return usagef("--reason %s: not a reason for a checkpoint", quoteWord(o.reason)).Hintf("it is manual, auto or publish")
	}
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	s.noteLeftOut(ctx, rec.Reader)
	options := recorder.CheckpointOptions{
		Description: o.description, Reason: o.reason, Label: o.label,
		SkipUnreadable: o.skipUnreadable, Full: o.full, Yes: s.global.yes,
	}
	record, err := rec.Checkpoint(ctx, options)
	if s.allowed(err, "record it anyway? [y/N]") {
		options.Yes = true
		record, err = rec.Checkpoint(ctx, options)
	}
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printRecord(record)
	}
	s.meter.pause()
	_, err = fmt.Fprintln(s.env.Stdout, record.ID)
	return err
}
