// Package recorder does whole operations on a project: it records a run, takes
// one back, brings one again, restores a past state, and finishes what a dead
// process left. It joins the packages below it and decides the order of their
// steps, which is what makes an operation all or nothing:
//
//   - what a later step relies on is durable before that step begins;
//   - an open record says what is going on before anything of the user's moves;
//   - a record counts from the moment its line is in the log, and everything
//     after that line can be repeated.
//
// A record of any kind goes through some of these states, and ends in one place, end:
//
//	captured    what it needs is in the store, and nothing says so: a death leaves nothing
//	open        there is an open record (not of a checkpoint); a run's command works.
//	            A death leaves a run, which is recorded as interrupted, or a move
//	            that has moved nothing, which is dropped
//	moving      a transaction's journal is there: of a move, or of a failed run that is put
//	            back. After a death it is finished, and the record ended, or taken back
//	ended       its line is in the log, and what follows from it is written (see history's doc)
//
// It prints nothing and asks through the callbacks of its options.
package recorder

import (
	"context"
	"sync/atomic"
	"time"

	"decree/capture"
	"decree/history"
	"decree/project"
	"decree/runner"
	"decree/store"
	"decree/tree"
	"decree/worktree"
)

// Options open a Recorder.
type Options struct {
	ReaderOptions // Bare is not looked at
	// Create makes the project and its store where they are missing: writing commands.
	Create bool
	// Existing, with Create, is for commands that need records: without a project
	// they fail and make none.
	Existing bool
	Actor    history.Actor
	// Beside: other Recorders of this process have runs of their own, which are no part of
	// one another.
	Beside bool
	// Wait is how long to wait for the project's lock.
	Wait time.Duration
	// CommandLine is this process's own, for whoever waits for the lock.
	CommandLine []string
}

// Recorder does operations on one project, and looks at it as its Reader does. It is
// not safe for concurrent use, and neither is its Reader: who only looks opens one by
// OpenReader.
type Recorder struct {
	*Reader
	opt     Options
	holding *writeSession // of Hold
	// changedAfterOutput is what was changed after the last output of runs that it has recovered.
	changedAfterOutput map[string][]tree.Path
	own                ownCache    // of the user's own files in .decree
	manifestStaged     atomic.Bool // a manifest.json was written into .decree/tmp since the lock was taken
	// elsewhereGone: processes of other machines count as gone when the lock could be taken
	elsewhereGone bool
	reserveGiven  bool // of the reserve at least a part was given up since the lock was taken

	// execute is runner.Run, but where a test has no processes.
	execute func(context.Context, runner.Command) (runner.Result, error)
	// looked is called when the walk beside an isolated run's command has ended; nil but in tests.
	looked func()
	// fillPart, in tests, is what the constant is.
	fillPart int
	// descent says how far above this process the one is that a note names, -1 if this
	// one does not descend from it.
	descent func(project.Holder) int
	// alive says whether the process of an agent may still work; true if it is not known.
	alive func(project.Holder) bool
}

// Open opens the project that the options name. It takes no lock; without
// Create it writes nothing, and a project that does not exist is an error with
// project.ErrNoProject in its chain.
func Open(ctx context.Context, opt Options) (*Recorder, error) {
	opt.ReaderOptions = opt.complete()
	p, err := openProject(opt)
	if err != nil {
		return nil, err
	}
	r, err := newReader(p, opt.ReaderOptions)
	if err != nil {
		return nil, err
	}
	out := &Recorder{Reader: r, opt: opt, execute: runner.Run, descent: descent(opt.Actor.Host, opt.Beside)}
	out.alive = func(h project.Holder) bool { return agentLives(h, opt.Actor.Host) }
	if err := out.convertFirst(ctx); err != nil {
		_ = out.Close()
		return nil, err
	}
	return out, nil
}

func openProject(opt Options) (*project.Project, error) {
	if opt.Create && opt.Existing {
		p, err := project.Open(opt.Disk, opt.Where, false)
		if err != nil {
			return nil, err
		}
		if p.InLayer && !p.StoreInLayer() {
			err = &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "this is a part of an isolated run, which can look at the project's records and change none",
				Advice: "do that outside of the run; 'decree checkpoint' or 'decree run' here begins a history of the layer's own, which goes with it"}
		}
		p.Close()
		if err != nil {
			return nil, err
		}
	}
	return project.Open(opt.Disk, opt.Where, opt.Create)
}

// Close ends the recorder.
func (r *Recorder) Close() error {
	r.own.forget()
	return r.Reader.Close()
}

// Project is the project that is open.
func (r *Recorder) Project() *project.Project { return r.project }

// History is its records.
func (r *Recorder) History() *history.History { return r.history }

// writeSession is what a writing operation needs: the lock, the store's writer, what others do meanwhile.
type writeSession struct {
	unlock      func() // nil while the lock is free: a command runs
	w           *store.Writer
	underHold   bool // by Hold, which closes it
	activity    activity
	latest      *capture.Result                 // the last capture
	storing     context.Context                 // of a run's files, once it has ended; nil: it does not end
	onlyInStore map[string]map[string]tree.Hash // files of run directories that the store alone has, by record and name
}

func (x *writeSession) close() {
	if x.underHold {
		return
	}
	x.release()
}

// release gives the lock back; what is flushed is durable.
func (x *writeSession) release() {
	if x.w != nil {
		x.w.Close()
		x.w = nil
	}
	if x.unlock != nil {
		x.unlock()
		x.unlock = nil
	}
}

// BeginError says why an operation could not begin: nothing was changed. Its text is
// Err's: cmd adds the state, which it knows the command's words for, unless Err says one.
type BeginError struct{ Err error }

func (e *BeginError) Error() string { return e.Err.Error() }

func (e *BeginError) Unwrap() error { return e.Err }

// prepare opens the store for writing. Another process may have written since
// this one opened it, so what was read before the lock is read again.
func (r *Recorder) prepare(ctx context.Context, x *writeSession) error {
	r.history.Refresh()
	if err := r.reopen(); err != nil {
		return err
	}
	if err := r.project.EnsureDecree(); err != nil {
		return err
	}
	return r.openWriter(ctx, x)
}

// openWriter opens the store for writing, unless it is open: freeing space ends the
// writer, and under a lock that is held for several operations another one follows.
func (r *Recorder) openWriter(ctx context.Context, x *writeSession) (err error) {
	if x.w == nil {
		x.w, err = r.store.Writer(ctx)
	}
	return err
}

// reopen sees the store as it is now.
func (r *Recorder) reopen() error {
	s, err := store.Open(r.project.Store, store.Options{})
	if err != nil {
		return err
	}
	old := r.store
	r.store = s
	r.history.UseObjects(s)
	r.tree = worktree.Open(r.project.Dir, worktree.Options{Store: s})
	return old.Close()
}

// enter locks, and finishes or takes back what a dead process left.
func (r *Recorder) enter(ctx context.Context, k lockMode) (*writeSession, error) {
	if r.holding != nil {
		if err := r.openWriter(ctx, r.holding); err != nil {
			return nil, &BeginError{err}
		}
		return r.holding, nil
	}
	x, err := r.lock(ctx, k)
	if err != nil {
		return nil, err
	}
	done, err := r.recover(ctx, x, false)
	if err != nil {
		x.close()
		return nil, err
	}
	if !r.reserveGiven {
		r.keepReserve()
	}
	for _, d := range done {
		r.note("%s", d.What)
	}
	return x, nil
}

// enterFor is enter for an operation whose refusal is written down: the lock is
// held, a run stands in the way, what a dead process left cannot be finished.
func (r *Recorder) enterFor(ctx context.Context, op string, k lockMode) (*writeSession, error) {
	x, err := r.enter(ctx, k)
	if err == nil && (k == movesFiles || op == opRecord) {
		if k == movesFiles && op != opRecord && op != string(history.Publish) {
			_, err = r.closeAllTurns(ctx, x)
		} else {
			err = r.closeTurns(ctx, x, func(t *openTurn) bool { return r.over(x, t) })
		}
		if err != nil {
			x.close()
			err = &BeginError{err}
		}
	}
	if err != nil {
		_ = r.history.AuditAside(r.audit(op, err.Error()))
		return nil, err
	}
	return x, nil
}

// Wait is how long an operation waits for the lock.
func (r *Recorder) Wait() time.Duration { return r.opt.Wait }

// Hold locks once for several operations: what do calls on r works under this
// lock, so that nothing of another process comes in between. What a dead process
// left is finished or taken back before do begins. wait is how long to wait for
// the lock and, where do has commands run, for the runs of others. While a command
// runs, the lock is free.
func (r *Recorder) Hold(ctx context.Context, wait time.Duration, runs bool, do func() error) error {
	usual := r.opt.Wait
	r.opt.Wait = wait
	k := besideRuns
	if runs {
		k = movesFiles
	}
	x, err := r.enter(ctx, k)
	r.opt.Wait = usual
	if err != nil {
		return err
	}
	x.underHold, r.holding = true, x
	defer func() {
		x.underHold, r.holding = false, nil
		x.close()
	}()
	return do()
}
