package recorder

import (
	"context"
	"errors"
	"io"

	"decree/history"
	"decree/layer"
	"decree/runner"
)

// attempts runs the command until it succeeds or the attempts are used up, and closes the
// record. What an attempt has done the next one sees, but the last starts in a fresh layer,
// and what that one did is the draft.
func (u *isolatedRun) attempts(ctx context.Context) error {
	var before *layer.Collected
	for n := u.o.Spent + 1; ; n++ {
		u.rec.Attempts = n
		if err := u.announce(n); err != nil {
			return err
		}
		ended := u.res.Last
		found, err := u.attempt(ctx, n)
		if err != nil && before != nil {
			return u.endBefore(ctx, n, before, ended, err)
		}
		if err != nil {
			return err
		}
		last := u.judgeEnding()
		failed := last.ExitCode != 0 || last.TimedOut || last.Interrupted != nil
		if !failed || n == u.o.Attempts || last.Interrupted != nil || last.NotStarted != nil {
			return u.conclude(ctx, found)
		}
		if err := u.keepAttempt(ctx, n, found); err != nil {
			return u.unrecorded(err)
		}
		stopped, err := u.delay(ctx)
		if err != nil {
			return u.unrecorded(err)
		}
		if stopped {
			return u.conclude(ctx, found)
		}
		if err := u.mendForNext(); err != nil {
			return u.unrecorded(err)
		}
		if err := u.withdrawSent(); err != nil {
			return u.unrecorded(err)
		}
		if err := u.prepareNext(ctx, n); err != nil {
			return u.endBefore(ctx, n+1, found, last, u.unrecorded(err))
		}
		before = found
	}
}

// endBefore closes the record with what the attempt before n has left where err is that no layer can be made for n any more, as
// when something was mounted below the root meanwhile; else it returns err.
func (u *isolatedRun) endBefore(ctx context.Context, n int, left *layer.Collected, ended runner.Result, err error) error {
	if !errors.As(err, new(*layer.Refusal)) {
		return err
	}
	u.say("attempt %d was not made: %v", n, errors.Unwrap(err))
	if n == u.o.Attempts {
		left = &layer.Collected{} // its layer has made room for a fresh one
	}
	u.rec.Attempts, u.res.Last, u.res.ExitCode = n-1, ended, ended.ExitCode
	if err := u.logAgain(n - 1); err != nil {
		return u.unrecorded(err)
	}
	return u.conclude(ctx, left)
}

// logAgain has routine.log be that of the attempt n again, where an empty one was made for the next.
func (u *isolatedRun) logAgain(n int) error {
	if info, err := u.log.Stat(); err != nil || info.Size > 0 {
		return err
	}
	log, err := u.r.history.OpenFile(u.rec.ID, attemptFile(n, logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(u.log, log)
	return err
}

// attempt runs the command once, and reads what it has left in the layer.
func (u *isolatedRun) attempt(ctx context.Context, n int) (*layer.Collected, error) {
	r := u.r
	look, looked := u.lookBeside(ctx)
	res, err := u.executeThere(ctx, runner.Command{
		Args: u.o.Args, Dir: u.dir(), Env: u.environment(n), Overlay: u.mount, Fence: u.fence(),
		Stdin: u.o.Stdin, Stdout: u.o.Stdout, Stderr: u.o.Stderr,
		Log: u.capped, Timeout: u.o.Timeout, Grace: u.o.Grace, Signals: u.o.Signals, Root: u.layer.Workspace(), Apart: u.o.Apart, Unread: u.o.Unread,
		Starting: func(l runner.Leader) error {
			err := u.noteStarted(l)
			if err == nil {
				err = look() // before another one can publish
			}
			if err == nil {
				err = u.freeLock()
			}
			return err
		},
	})
	u.res.Last, u.res.ExitCode, u.stopSignal = res, res.ExitCode, res.Late
	u.begun = u.begun || err == nil && res.NotStarted == nil || res.Duration > 0
	u.closeLog()
	lockErr := u.takeLock(ctx)
	looked()
	if lockErr != nil {
		return nil, u.unrecorded(lockErr)
	}
	if err := u.catchUp(ctx); err != nil {
		return nil, u.unrecorded(err)
	}
	if err != nil && res.Duration == 0 {
		return nil, u.neverStarted(err)
	}
	if err != nil {
		u.say("%v", err)
	}
	if u.mount != nil {
		res.Outside = nil // who sees the layer was ended; others do not see it
	}
	u.noteOtherProcesses(res)
	found, err := r.collectLayer(ctx, u.x, u.layer, u.seenBefore, u.isUnchanged)
	if err != nil {
		return nil, u.unrecorded(err)
	}
	return found, nil
}

// conclude closes the record: found is what the last attempt did.
func (u *isolatedRun) conclude(ctx context.Context, found *layer.Collected) error {
	u.rec.Status = history.StatusSucceeded
	if u.res.ExitCode != 0 || u.res.Last.TimedOut || u.res.Last.Interrupted != nil {
		u.rec.Status = history.StatusFailed
	}
	u.rec.ExitCode = &u.res.ExitCode
	if err := u.mendRun(); err != nil {
		return u.unrecorded(err)
	}
	if n := u.rec.Attempts; n > 1 {
		if err := u.nameLog(attemptFile(n, logFile)); err != nil {
			return u.unrecorded(err)
		}
	}
	if u.layer != nil {
		if err := u.r.bringWritten(u.layer, u.opened); err != nil {
			return u.unrecorded(err)
		}
	}
	judge := u.judge
	if u.res.Last.NotStarted != nil || u.res.Last.Interrupted != nil {
		judge = nil
	}
	notes, changes, err := u.r.endDraft(ctx, u.x, u.place, found, u.opened, u.rec, judge, u.res.Last.NotStarted != nil)
	u.sayAll(notes)
	if err != nil {
		return u.unrecorded(err)
	}
	u.res.Record, u.res.Changes = u.rec, changes
	if u.rec.Draft != nil && len(u.rec.Draft.NoBase) > 0 {
		// What has a time in the future has a base in the next run; without it each run would have none there.
		_ = u.r.captureForRuns(ctx, u.x)
	}
	return nil
}

// keepAttempt keeps the diff and the log of the attempt n, which has failed and is not the
// last.
func (u *isolatedRun) keepAttempt(ctx context.Context, n int, found *layer.Collected) error {
	u.changes, _ = found.Changes()
	if err := u.x.w.Flush(); err != nil { // the diff is written from it
		return err
	}
	stat, _, err := u.writeDiff(ctx)
	if err != nil {
		return err
	}
	if err := u.noteAttempt(n, u.changes, stat); err != nil {
		return err
	}
	return u.file(n)
}

// mendForNext writes the run's own files again: in a clone the command has seen them at their place, and may have deleted them.
func (u *isolatedRun) mendForNext() error {
	run, err := u.r.history.EnsureRun(u.rec.ID)
	if err != nil {
		return err
	}
	run.Close()
	if err := u.mendFiles(); err != nil {
		return err
	}
	return u.makeOutbox()
}

// prepareNext prepares what the attempt after n works in.
func (u *isolatedRun) prepareNext(ctx context.Context, n int) (err error) {
	u.rec.Attempts = n + 1
	if err := u.r.saveDraft(u.opened, u.rec); err != nil {
		return err
	}
	if n+1 == u.o.Attempts {
		text := failureContext(u.o.Args, u.o.Attempts, u.attemptResults)
		if err := u.writeFile(failureFile, history.Bytes(text)); err != nil {
			return err
		}
		err = u.freshLayer(ctx)
	} else if err = u.layer.GiveBackDecree(u.rec.ID, decreeWrites); err == nil {
		u.mount, err = u.layer.Mount()
	}
	if err != nil {
		return err
	}
	return u.openLog()
}

// freshLayer puts a layer in the place of the one that the attempts before have used. After a
// death in it there is none, and the run is recorded without a draft.
func (u *isolatedRun) freshLayer(ctx context.Context) error {
	how := u.layer.Mechanism()
	err := u.unlock()
	u.unlock = nil
	u.layer.Close()
	u.layer = nil
	if err = errors.Join(err, u.place.Remove(u.rec.ID)); err != nil {
		return err
	}
	if err := u.openSights(ctx); err != nil {
		return err
	}
	return u.makeLayerBy(ctx, u.rec.ID, how)
}
