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

If processes of the run are still alive nothing is done, exit code 4; --kill ends them. A run that began on another machine, which shares the tree and the store with this one, is recovered only where you say that its process is gone: asked on a terminal, or with --yes. Other commands that write are refused until then.`,
		examples: []example{
			{"decree recover", "after a crash or a power failure"},
			{"decree recover --kill", "end what is left of the run first"},
			{"decree recover --yes", "also a run of another machine, whose process you know to be gone"},
		},
		exits:  []exit{{"0", "done, or nothing to do"}, {"1", "what a dead process left cannot be read, and was set aside"}, {"4", "processes of the run are still alive, or may be on another machine; nothing was changed"}},
		flags:  s.writing(boolFlag(&kill, "end processes of the interrupted run that are still alive", "kill")),
		action: func(ctx context.Context) error { return s.recover(ctx, kill) },
	}
}

func (s *session) recover(ctx context.Context, kill bool) error {
	s.arriving = true
	rec, err := s.forChanging(ctx)
	var found []recorder.Recovered
	if err == nil {
		found, err = s.recoverHere(ctx, rec, kill)
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

// recoverHere recovers, and what processes of other machines left if the person says that they are gone.
func (s *session) recoverHere(ctx context.Context, rec *recorder.Recorder, kill bool) ([]recorder.Recovered, error) {
	if s.global.yes {
		return rec.RecoverElsewhere(ctx, kill)
	}
	found, err := rec.Recover(ctx, kill)
	other := new(recorder.ElsewhereError)
	if !errors.As(err, &other) || !s.canAsk() || s.ask(other.Error()+"; is it gone, so that the run can be recovered here? [y/N]", 'n') != 'y' {
		return found, err
	}
	return rec.RecoverElsewhere(ctx, kill)
}
