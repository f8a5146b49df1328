package cmd

import (
	"fmt"
	"slices"
	"strings"

	"decree/history"
	"decree/queue"
	"decree/recorder"
)

// giveOutbox gives the command of a run that a routine makes an outbox of its own: what is sent in
// it belongs to the routine's message once the run has succeeded.
func (s *session) giveOutbox(rec *recorder.Recorder, o *recorder.RunOptions) {
	box, ours := queue.FindOutbox(rec, s.env.get("DECREE_OUTBOX"))
	o.Outbox = box != nil
	if ours && box == nil { // a process that has outlived its routine's run
		o.Env = append(slices.Clip(o.Env), "DECREE_OUTBOX=")
	}
}

// passOn gives what the run's command has sent to the outbox around it, or says that it is not sent.
func (s *session) passOn(rec *recorder.Recorder, o recorder.RunOptions, run *history.Record, succeeded bool) error {
	if !o.Outbox {
		return nil
	}
	if succeeded {
		if err := queue.PassOn(rec, run.ID, s.env.get("DECREE_OUTBOX")); err != nil {
			return fmt.Errorf("run %s has succeeded, but what it sent is not sent: %w", run.ID, err)
		}
	}
	left, err := queue.Unsent(rec, run.ID)
	if err != nil || len(left) == 0 {
		return err
	}
	for i, name := range left {
		left[i] = quoteWord(strings.TrimSuffix(name, ".md"))
	}
	s.note(fmt.Sprintf("what run %s sent is not sent, and lies in .decree/runs/%s/outbox: %s", run.ID, run.ID, strings.Join(left, ", ")))
	return nil
}
