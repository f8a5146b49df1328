package cmd

import (
	"context"
	"errors"

	"decree/project"
	"decree/recorder"
	"decree/view"
)

func (s *session) recoverVerb() verb {
	var kill bool
	return verb{
		name: "recover", category: keepCategory, interruptible: true,
		usage: "finish or take back what a dead process left",
		about: `Every command that writes does this first, on its own; "recover" does only this and says what it found. A run whose process died gets its changes.diff and the status interrupted: its changes stay, and can be taken back with "decree revert". An interrupted revert, apply or restore is finished, or taken back when a content it needs is missing.

If processes of the run are still alive nothing is done, exit code 4; --kill ends them.`,
		examples: []example{
			{"decree recover", "after a crash or a power failure"},
			{"decree recover --kill", "end what is left of the run first"},
		},
		exits:  []exit{{"0", "done, or nothing to do"}, {"1", "what a dead process left cannot be read, and was set aside"}, {"4", "processes of the run are still alive; nothing was changed"}},
		flags:  s.writing(boolFlag(&kill, "end processes of the interrupted run that are still alive", "kill")),
		action: func(ctx context.Context) error { return s.recover(ctx, kill) },
	}
}

func (s *session) recover(ctx context.Context, kill bool) error {
	s.arriving = true
	rec, err := s.forChanging(ctx)
	var found []recorder.Recovered
	if err == nil {
		found, err = rec.Recover(ctx, kill)
	}
	if errors.Is(err, project.ErrNoProject) {
		err = nil // nothing was ever begun here
	}
	if err != nil {
		return err
	}
	if s.global.json {
		return errors.Join(s.printJSON(view.RecoveredOf(found)), recorder.NotRecovered(found))
	}
	if len(found) == 0 {
		s.tell("nothing to recover")
		return nil
	}
	for _, f := range found {
		s.tell("%s", oneLine(f.What))
	}
	return recorder.NotRecovered(found)
}
