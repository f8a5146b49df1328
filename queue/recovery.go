package queue

import (
	"context"
	"errors"
	"fmt"

	"decree/history"
	"decree/project"
	"decree/recorder"
)

// recoverMessage deals with the message that a dead process left under way, after the
// recorder has recovered its run. A message whose run had ended is ended: res is what
// became of it. One that is to be done again is returned as resume, the name of its file.
func (q *Queue) recoverMessage(ctx context.Context, d *dirs) (res *Result, resume string, err error) {
	s := q.s
	if s.Name == "" {
		return nil, "", nil
	}
	var rec *history.Record
	if s.Record != "" { // else its attempts were counted, and the next was not begun
		if rec, err = q.o.Recorder.History().Get(s.Record); project.KindOf(err) == project.NotFound || isMissing(err) {
			rec, err = nil, nil
		}
		if err != nil {
			return nil, "", err
		}
	}
	here, err := q.stillInInbox(d)
	if err != nil {
		return nil, "", err
	}
	res = &Result{Name: s.Name, ID: s.ID, Record: rec}
	switch {
	case rec == nil && here:
		return nil, s.Name, nil // it had not begun
	case rec == nil:
		s.forget()
		return nil, "", nil
	case succeeded(rec):
		return q.recoverDone(d, res)
	}
	return q.recoverFailed(ctx, d, res, here)
}

// recoverFailed takes back the run of the message under way, which did not succeed, and
// counts its attempts. The message goes to dead, or is to be gone on with; here says
// whether it still lies in the inbox.
func (q *Queue) recoverFailed(ctx context.Context, d *dirs, res *Result, here bool) (*Result, string, error) {
	s, rec := q.s, res.Record
	if err := q.takeBack(ctx, rec); err != nil {
		return nil, "", err
	}
	came, err := q.cameUntilDeath(d)
	if err == nil {
		err = q.withdraw(d, rec.ID, came)
	}
	if err != nil {
		return nil, "", err
	}
	spent := s.Attempt
	if rec.Status != history.StatusInterrupted && rec.Status != history.StatusUndone {
		spent = max(spent, rec.Attempts)
	}
	if !here {
		res, err := q.recoverDeleted(d, res, spent)
		return res, "", err
	}
	if spent >= q.project().Config.MaxAttempts || final(rec) {
		reason := failedAfter(spent)
		if rec.Recovered != nil {
			reason = fmt.Sprintf("decree's process ended in attempt %d of %d", spent, q.project().Config.MaxAttempts)
		}
		res, err = q.dead(d, res, reason, rec)
		return res, "", err
	}
	s.Spent, s.Interrupted = spent, append(s.Interrupted, rec.ID)
	s.Record, s.Attempt = "", 0
	q.note("%s was under way when decree's process ended: %d of %d attempts are spent", s.Name, spent, q.project().Config.MaxAttempts)
	return nil, s.Name, s.write(q.project().Store, true)
}

// recoverDeleted deals with the message under way where it is not in the inbox any more: its
// routine deleted it before its end was decided, and it goes to dead; or somebody
// cancelled it.
func (q *Queue) recoverDeleted(d *dirs, res *Result, spent int) (*Result, error) {
	rec := res.Record
	as, err := q.nameIn(d.dead)
	if err != nil {
		return nil, err
	}
	if as == "" && rec.Recovered == nil {
		return q.dead(d, res, failedAfter(spent), rec)
	}
	if as == "" {
		q.tellCancelled(rec)
	}
	q.s.forget()
	return nil, q.s.write(q.project().Store, false)
}

func failedAfter(attempts int) string { return fmt.Sprintf("failed after %d attempts", attempts) }

// tellCancelled says that the message under way was taken out of the inbox.
func (q *Queue) tellCancelled(rec *history.Record) {
	q.note("%s was deleted from the inbox, and is not done again; its text is in .decree/runs/%s/%s", q.s.Name, rec.ID, messageFile)
}

// succeeded says whether a run succeeded, also one that was undone since.
func succeeded(rec *history.Record) bool {
	return rec.Status == history.StatusSucceeded || rec.ExitCode != nil && *rec.ExitCode == 0
}

// final says whether a run ended with a command that cannot be executed.
func final(rec *history.Record) bool {
	return rec.Recovered == nil && rec.ExitCode != nil && (*rec.ExitCode == 126 || *rec.ExitCode == 127) && rec.Attempts == 1
}

// recoverDone ends a message whose run had succeeded. If its file is in done
// already, what came into the inbox since is no follow-up of it.
func (q *Queue) recoverDone(d *dirs, res *Result) (*Result, string, error) {
	found, err := q.s.find(d.inbox, q.s.Name)
	if err != nil {
		return nil, "", err
	}
	if found != itself {
		if as, err := q.nameIn(d.done); as != "" || err != nil {
			q.s.Last = q.s.Chain
			q.s.forget()
			return nil, "", err
		}
	}
	came, err := q.cameUntilDeath(d)
	if err != nil {
		return nil, "", err
	}
	res, err = q.accept(d, res, came)
	return res, "", err
}

// takeBack brings the tree back to what it was before an interrupted run, and
// before one that could not put itself back.
func (q *Queue) takeBack(ctx context.Context, rec *history.Record) error {
	if rec.Status != history.StatusInterrupted && rec.Status != history.StatusFailed {
		return nil
	}
	res, err := q.o.Recorder.Revert(ctx, recorder.MoveOptions{Refs: []string{rec.ID}, Yes: true})
	var conflict *recorder.ConflictError
	if errors.As(err, &conflict) {
		conflict.Advice = fmt.Sprintf("message %s waits for it: take its run back with 'decree revert --merge %s' (or --force), or take the message out of the inbox", q.s.Name, rec.ID)
	}
	if err != nil {
		return err
	}
	if res.Record != nil {
		q.note("run %s of %s was interrupted, and is taken back: record %s", rec.ID, q.s.Name, res.Record.ID)
	}
	return nil
}
