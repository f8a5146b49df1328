package recorder

import (
	"context"
	"fmt"
	"io"
	"time"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/runner"
	"decree/store"
	"decree/tree"
)

// A judge looks at what an isolated run has made, in its layer, once all that its record
// will have is stored: files are those of its directory, to which the judge adds. It says how
// long it took. An error is decree's own.
type judge func(ctx context.Context, files map[string]tree.Hash) (took time.Duration, err error)

// judgeBy is the judge that sh is with a line. While it works the lock is free, and the open
// record has the run's end, so that a death costs the judgement alone.
func (u *isolatedRun) judgeBy(line string) judge {
	return func(ctx context.Context, files map[string]tree.Hash) (time.Duration, error) {
		began := u.r.opt.Clock()
		if err := u.r.saveEnding(u.opened, u.rec, files); err != nil {
			return 0, err
		}
		log, err := u.judgeLog()
		if err != nil {
			return 0, err
		}
		defer log.Close()
		res, err := u.executeJudge(ctx, line, log)
		if err != nil {
			u.say("not judged: %v", err)
			res.Interrupted = nil
		}
		if err := u.takeLock(ctx); err != nil {
			return 0, err
		}
		if err := u.catchUp(ctx); err != nil {
			return 0, err
		}
		switch {
		case res.Interrupted != nil:
			u.say("not judged: stopped by %s", signalName(res.Interrupted))
		case err == nil:
			u.rec.Judge = &history.Judgement{Command: line, ExitCode: res.ExitCode}
		}
		u.r.leaveAside(u.layer)
		files[history.JudgeLog], err = store.PutWritten(u.x.w, func(w io.Writer) error { return copyFile(w, log) })
		if err == nil {
			err = u.x.w.Flush()
		}
		return u.r.opt.Clock().Sub(began), err
	}
}

// executeJudge runs the line in the layer.
func (u *isolatedRun) executeJudge(ctx context.Context, line string, log disk.File) (runner.Result, error) {
	mount, err := u.layer.MountAside(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	capped := &cappedLog{f: log, max: leastLog(u.r.project.Config.LogMax)}
	env := append(u.environment(u.rec.Attempts), "DECREE_OUTBOX=") // in a clone what it sends would be the candidate's
	res, err := u.executeThere(ctx, runner.Command{
		Args: []string{"sh", "-c", line}, Dir: u.dir(), Env: env, Overlay: mount, Fence: u.fence(), Apart: true, Log: capped,
		Timeout: u.o.Timeout, Grace: u.o.Grace, Signals: u.o.Signals, Root: u.layer.Workspace(),
		Starting: func(l runner.Leader) error {
			err := u.noteStarted(l)
			if err == nil {
				err = u.freeLock()
			}
			return err
		},
	})
	if _, cerr := capped.finish(); cerr != nil && err == nil {
		u.say("%s is out of order: %v", history.JudgeLog, cerr)
	}
	return res, err
}

// judgeLog makes the file for what the judge prints.
func (u *isolatedRun) judgeLog() (disk.File, error) {
	dir, err := u.r.history.EnsureRun(u.rec.ID)
	if err == nil {
		defer dir.Close()
		var f disk.File
		if f, err = disk.CreateFile(dir, history.JudgeLog, project.PrivateFile); err == nil {
			return f, nil
		}
	}
	if !history.KeepsOut(err) {
		return nil, err
	}
	u.r.history.NoteKeptOut(u.rec.ID, err)
	return u.hiddenLog()
}

// unjudged ends the record of a candidate whose decree died while it was judged.
func (c *recovery) unjudged(place *layer.Place, o *history.Opened, end *ending) error {
	rec := end.Record
	if err := c.bringEnding(end); err != nil {
		return err
	}
	now := c.r.opt.Clock().UTC()
	rec.Recovered = &now
	if err := c.close(o, end); err != nil {
		return err
	}
	what := fmt.Sprintf("isolated run %s had ended, and is recorded without a judgement; the tree is as it was", rec.ID)
	if rec.Draft == nil {
		c.add(rec, "%s", what)
		c.r.removeLayer(place, rec.ID)
		return nil
	}
	if l, err := place.Open(rec.ID); err == nil {
		c.r.leaveAside(l)
		l.Close()
	}
	c.add(rec, "%s, and its work is a draft: 'decree publish %s' brings it into the tree", what, rec.ID)
	return nil
}
