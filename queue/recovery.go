package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// recoverMessages deals with the messages that dead processes left under way, after the
// recorder has recovered their runs: those without a lease, since who has the lock sees none
// between its runs. One whose run had ended is ended: res is what became of it. One that is
// to be done again becomes the job's own. pick is the message that is wanted alone.
func (q *job) recoverMessages(ctx context.Context, d *dirs, pick Pick) (res *Result, err error) {
	leases, err := q.project().Leases()
	if err != nil {
		return nil, err
	}
	q.forgetStuck()
	for _, u := range slices.Clone(q.s.UnderWay) {
		if slices.ContainsFunc(leases, func(l project.Lease) bool { return l.ID == u.Record }) {
			continue
		}
		if pick.Ended && u.Name != pick.Name {
			continue
		}
		if later, err := q.triesLater(d, u); err != nil {
			return nil, err
		} else if later && pick.Name != u.Name {
			continue
		}
		q.u = u
		res, resume, err := q.recoverMessage(ctx, d)
		if isStuck(err) && pick.Name != u.Name {
			continue
		}
		if err != nil {
			return nil, err
		}
		if resume {
			if err := q.follow(d); err != nil {
				return nil, err
			}
		}
		wanted := pick.Name == "" || pick.Name == u.Name
		if wanted && (res != nil || resume) {
			return res, nil
		}
		if res != nil && res.Outcome == Dead {
			q.dying = append(q.dying, res)
		}
		if resume && u.Stuck == "" {
			q.note("%s, which was being processed, is waiting again", tree.Quote(u.Name))
		}
	}
	q.u = nil
	return nil, nil
}

// follow has the message under way, which has no run now, be called as it lies in the inbox. While it has one its record
// is found by the name that it began with.
func (q *job) follow(d *dirs) error {
	name, err := q.nowCalled(d)
	if err == nil && name != "" {
		q.u.Name = name
	}
	return err
}

// recoverMessage deals with one of them; resume says that it is to be done again.
func (q *job) recoverMessage(ctx context.Context, d *dirs) (res *Result, resume bool, err error) {
	u := q.u
	var rec *history.Record
	if u.Record != "" { // else its attempts were counted, and the next was not begun
		if rec, err = recordOf(q.rec.Reader, u); err != nil {
			return nil, false, err
		}
	}
	name, err := q.nowCalled(d)
	if err != nil {
		return nil, false, err
	}
	here := name != ""
	res = &Result{Name: u.Name, ID: u.ID, Record: rec}
	switch {
	case rec == nil && here:
		return nil, true, nil // it had not begun
	case rec == nil:
		q.s.over(u)
		return nil, false, q.saveState()
	case rec.Isolated != "":
		return q.recoverIsolated(ctx, d, res)
	case succeeded(rec):
		res, err = q.recoverDone(d, res)
		return res, false, err
	}
	return q.recoverFailed(ctx, d, res, here)
}

// isOf says whether a record is of a run of the message called name. Where decree died before
// the record that it had noted was begun, another one may have got its id since.
func isOf(rec *history.Record, name string) bool {
	earlier := "message " + tree.Quote(name) // as the first versions of decree described it
	return rec.Reason == history.Run && (strings.HasSuffix(rec.Description, recorder.OfMessage(name)) || rec.Description == earlier)
}

// recoverFailed takes back the run of the message under way, which did not succeed, and
// counts its attempts. The message goes to dead, or is to be gone on with; here says
// whether it still lies in the inbox.
func (q *job) recoverFailed(ctx context.Context, d *dirs, res *Result, here bool) (*Result, bool, error) {
	rec := res.Record
	err := q.takeBack(ctx, rec, q.serving && here)
	switch {
	case err == nil || recorder.Unsettled(err):
	case here && errors.As(err, new(*recorder.WaitError)):
		err = &inTreeError{rec.ID, q.notTakenBack(rec, err)}
	case here:
		err = q.notTakenBack(rec, err)
	default: // nobody waits for the message, and whatever keeps its run in the tree is to hold no other one
		res.Kept, err = true, q.tellKept(d, rec, err)
	}
	if err != nil {
		return nil, false, err
	}
	if err := q.keepMarks(rec); err != nil {
		return nil, false, err
	}
	came, err := q.cameUntilDeath(d)
	if err == nil {
		err = q.withdraw(d, rec.ID, outboxName, came)
	}
	if err != nil {
		return nil, false, err
	}
	spent := q.spentBy(rec)
	if !here {
		res, err := q.recoverDeleted(d, res, spent)
		return res, false, err
	}
	if spent >= q.project().Config.MaxAttempts || cannotExecute(rec) {
		res, err = q.dead(d, res, q.whyDead(rec, spent), rec)
		return res, false, err
	}
	q.note("%s was under way when decree's process ended: %d of %d attempts are spent", q.u.Name, spent, q.project().Config.MaxAttempts)
	return nil, true, q.spend(rec.ID, spent, "")
}

// spentBy is how many attempts are spent with the run of a dead process.
func (q *job) spentBy(rec *history.Record) int {
	if rec.Status == history.StatusInterrupted || rec.Status == history.StatusUndone {
		return q.u.Attempt
	}
	if rec.Isolated != "" { // the attempt that began last may not have been made
		return rec.Attempts
	}
	return max(q.u.Attempt, rec.Attempts)
}

func (q *job) whyDead(rec *history.Record, spent int) string {
	if rec.Recovered != nil {
		return fmt.Sprintf("decree's process ended in attempt %d of %d", spent, q.project().Config.MaxAttempts)
	}
	return failedAfter(spent)
}

// spend makes it durable that attempts are spent, the last of them in a record. reason says
// why they failed, for the next one; "": nobody knows.
func (q *job) spend(record string, spent int, reason string) error {
	u := q.u
	u.Spent, u.Earlier = spent, append(u.Earlier, record)
	if reason != "" {
		u.Reasons = append(u.Reasons, reason)
	}
	u.Record, u.Attempt, u.Stuck = "", 0, ""
	return q.saveState()
}

// recoverDeleted deals with the message under way where it is not in the inbox any more: its
// routine deleted it before its end was decided, and it goes to dead; or somebody
// cancelled it, or gave it another text.
func (q *job) recoverDeleted(d *dirs, res *Result, spent int) (*Result, error) {
	rec := res.Record
	as, err := q.nameIn(d.dead)
	if err != nil {
		return nil, err
	}
	if as == "" && rec.Recovered == nil {
		return q.dead(d, res, failedAfter(spent), rec)
	}
	if as == "" && !res.Kept {
		if err := q.tellUnwanted(d, rec); err != nil {
			return nil, err
		}
	}
	q.s.over(q.u)
	return nil, q.saveState()
}

func failedAfter(attempts int) string { return fmt.Sprintf("failed after %d attempts", attempts) }

// tellCancelled says that the message under way was taken out of the inbox.
func (q *job) tellCancelled(rec *history.Record) {
	q.note("%s was deleted from the inbox, and is not done again; its text is in .decree/runs/%s/%s", q.u.Name, rec.ID, messageFile)
}

// succeeded says whether a run succeeded, also one that was undone since.
func succeeded(rec *history.Record) bool {
	return rec.Status == history.StatusSucceeded || rec.ExitCode != nil && *rec.ExitCode == 0
}

// cannotExecute says whether a run ended with a command that cannot be executed.
func cannotExecute(rec *history.Record) bool {
	return rec.Recovered == nil && rec.ExitCode != nil && (*rec.ExitCode == 126 || *rec.ExitCode == 127) && rec.Attempts == 1
}

// recoverDone ends a message whose run had succeeded. If its file is in done
// already, what came into the inbox since is no follow-up of it.
func (q *job) recoverDone(d *dirs, res *Result) (*Result, error) {
	if moved, err := q.alreadyDone(d); moved || err != nil {
		return nil, err
	}
	came, err := q.cameUntilDeath(d)
	if err != nil {
		return nil, err
	}
	return q.accept(d, res, came)
}

// alreadyDone says whether the message's file is in done already; then it is not under way
// any more.
func (q *job) alreadyDone(d *dirs) (bool, error) {
	if name, err := q.nowCalled(d); name != "" || err != nil {
		return false, err
	}
	as, err := q.nameIn(d.done)
	if err != nil || as == "" {
		return false, err
	}
	q.s.Last = q.u.Chain
	q.s.over(q.u)
	return true, q.saveState()
}

// takeBack brings the tree back to what it was before an interrupted run, and
// before one that could not put itself back. waits: what another program has open for writing is waited for.
func (q *job) takeBack(ctx context.Context, rec *history.Record, waits bool) error {
	if rec.Status == history.StatusInterrupted || rec.Status == history.StatusFailed {
		res, err := q.revert(ctx, rec, waits)
		if err != nil {
			return err
		}
		for _, n := range res.Notes {
			q.note("%s", n)
		}
		if res.Record != nil {
			q.note("run %s of %s was interrupted, and is taken back: record %s", rec.ID, q.u.Name, res.Record.ID)
			if len(res.Plan.Warnings) > 0 {
				q.note("%s; 'decree revert %s PATH...' brings it again", strings.Join(res.Plan.Warnings, "; "), res.Record.ID)
			}
		}
	}
	return q.rec.UnrecordedBack(ctx, rec) // after it: what the run ignored counts again
}

// revert reverts a run: all of it, or what is not edited where a person has reverted a part of it.
func (q *job) revert(ctx context.Context, rec *history.Record, waits bool) (*recorder.MoveResult, error) {
	o := recorder.MoveOptions{Refs: []string{rec.ID}, Yes: true, Unasked: waits}
	res, err := q.rec.Revert(ctx, o)
	var edited *recorder.ConflictError
	if !errors.As(err, &edited) {
		return res, err
	}
	if decided, rerr := q.revertedInPart(rec); rerr != nil || !decided {
		return nil, cmp.Or(rerr, err)
	}
	for _, it := range edited.Items {
		o.Exclude = append(o.Exclude, it.Path)
	}
	if res, err = q.rec.Revert(ctx, o); project.KindOf(err) == project.NotFound { // there was nothing else
		res, err = &recorder.MoveResult{}, nil
	}
	if err == nil {
		q.note("what was edited since run %s of %s stays, as after 'decree revert' has taken back a part of the run%s", rec.ID, q.u.Name, recorder.NamedIn(edited))
	}
	return res, err
}

// revertedInPart says whether somebody has reverted rec since, though not all of it: what else is edited is left so on purpose.
func (q *job) revertedInPart(rec *history.Record) (found bool, err error) {
	err = q.rec.History().Newest(func(r *history.Record) bool {
		found = r.Reason == history.Revert && r.Parent == rec.ID && r.Status == history.StatusSucceeded
		return !found && r.ID != rec.ID
	})
	return found, err
}

// notTakenBack is the error of a message whose run could not be taken back, for cause, and that others wait for.
func (q *job) notTakenBack(rec *history.Record, cause error) error {
	var conflict *recorder.ConflictError
	if errors.As(cause, &conflict) {
		conflict.Advice = fmt.Sprintf("message %s waits for it: %s; or %s", tree.Quote(q.u.Name), waysBack(rec, cause), giveUp(q.u.Name))
		return cause
	}
	return &project.Error{Kind: project.KindOf(cause), Err: cause, State: fmt.Sprintf("message %s waits for it, and so do all others", tree.Quote(q.u.Name)),
		Advice: cmp.Or(project.HintOf(cause), "the next try goes on once the cause is gone") + "; or " + giveUp(q.u.Name)}
}

// giveUp says how a person lets the others be done where the run of the message called name cannot be taken back.
func giveUp(name string) string {
	return fmt.Sprintf("give the message up; what cannot be taken back then stays in the tree: '%s'", cancelCommand(name))
}

// waysBack says how a person takes back a run that could not be taken back for cause.
func waysBack(rec *history.Record, cause error) string {
	if errors.As(cause, new(*recorder.WaitError)) {
		return project.HintOf(cause)
	}
	if !errors.As(cause, new(*recorder.ConflictError)) {
		return fmt.Sprintf("once the cause is gone 'decree revert %[1]s' takes its run back, 'decree revert %[1]s PATH...' what can be of it", rec.ID)
	}
	return fmt.Sprintf("take its run back with 'decree revert --merge %[1]s', with --markers instead where both changed the same lines, or with --force over your edits", rec.ID)
}

// tellKept says that the run of the message under way stays in the tree: nobody waits for its
// end any more, and what bars it is a person's.
func (q *job) tellKept(d *dirs, rec *history.Record, cause error) error {
	what, next := "was taken out of the inbox", ""
	edited, err := disk.Has(d.inbox, q.u.Name)
	if edited {
		what, next = "was changed in the inbox", "; it is done as it is now"
	}
	q.note("%s %s, and what its run %s changed stays: %v%s; 'decree diff %s' shows it; %s; the text that it had is in .decree/runs/%s/%s%s",
		tree.Quote(q.u.Name), what, rec.ID, cause, recorder.NamedIn(cause), rec.ID, waysBack(rec, cause), rec.ID, messageFile, next)
	return err
}
