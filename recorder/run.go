package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/runner"
	"decree/tree"
	"decree/worktree"
)

// RunOptions are a run's. Args, Dir and the streams are needed.
type RunOptions struct {
	Args                  []string
	Dir                   string // absolute
	Stdin, Stdout, Stderr *os.File
	Env                   []string
	Attempts              int // in all, the first counts; 0 means 1
	Delay, Timeout, Grace time.Duration
	Keep                  bool // leave a failed run's changes
	Label, Description    string
	SkipUnreadable, Full  bool
	Yes                   bool // a first capture of any size
	Fence                 FenceMode
	NoNet                 bool // a network of its own, of a loopback alone
	Signals               <-chan os.Signal
	Ending                func() *Interrupted  // the signal that asked decree to end after this run; nil: none did, or nobody asks
	Unread                bool                 // see runner.Command
	Apart                 bool                 // the command has no terminal, and others may run beside it; see runner.Command
	Confirm               func(PutBack) Answer // asked when a pseudo-terminal was in use; nil: yes

	// Named, if not nil, is called with the record's id before the tree is recorded,
	// and with "" where the command was not started after all.
	Named func(id string) error
	// ID is the record's, if it is free; "" or a taken one gives it a new one.
	ID string
	// Compose says what to execute once it is known where the record lies; it
	// takes the place of Args and adds to Env.
	Compose func(Place) (Composed, error)
	// Spent are the attempts that interrupted runs have already made at the same
	// work: the numbers go on after them. Earlier tells their story, in Markdown,
	// to a last attempt that has no other before it in this run.
	Spent   int
	Earlier string
	// Attempt is called before each attempt but the first of this run: whoever
	// counts attempts over a death makes its number durable.
	Attempt func(n int) error
	// Task is the path below .decree of the message that the command does. Whoever
	// gives it sees to it when the command deletes it; only a recovery writes it again.
	Task string
	// Outbox has the record's directory begin with an empty project.OutboxDir, whose path the
	// command gets as DECREE_OUTBOX.
	Outbox bool
	// FollowsUp says whether a message that the command has put into the inbox of its layer is to
	// succeed or fail with the attempt, as what is in its outbox; nil: none is.
	FollowsUp func(inbox disk.Dir, name string) bool
	// LogCopy is a second name for routine.log in the run directory.
	LogCopy string
	// Freed is called when the lock has been given back while the command works, and Back
	// before it is taken again; nil: nobody wants to know.
	Freed, Back func()
}

// Place is where a run's record lies while its command works.
type Place struct {
	ID, Root string
	Dir      string // of the record's files
}

// Composed is a command, what is added to its environment, and files that lie
// in the record's directory before it starts.
type Composed struct {
	Args, Env []string
	Files     map[string][]byte
}

// PutBack is what a failed run on a terminal asks about.
type PutBack struct {
	ID      string
	Changes []tree.Change
	Counts  history.Changes
	Last    runner.Result // why it counts as failed
	Took    time.Duration
}

// Answer to it.
type Answer uint8

const (
	Yes Answer = iota // put it back
	No                // leave it
)

// RunResult says how a run ended.
type RunResult struct {
	Record   *history.Record
	ExitCode int // what decree exits with
	Changes  []tree.Change
	PutBack  bool
	Last     runner.Result
	Notes    []string
	// Published is the publish of an isolated run's work that was asked for with it.
	Published *MoveResult
	Gone      []Gone // unrecorded, taken away by a failed run, and not back
	MoreGone  int    // how many others there are, below the root's own entries
}

// run is one run on its way.
type run struct {
	r       *Recorder
	x       *writeSession
	o       RunOptions
	limits  limits
	opened  *history.Opened
	rec     *history.Record
	runs    disk.Info            // of .decree/runs, to see whether the command deleted it
	born    int64                // decreeBorn, then
	logGone bool                 // the command deleted the run's own log
	packs   map[string]disk.Info // the store's, likewise
	own     ownSet               // the user's own files in .decree
	modes   ownModes             // of the root, .decree and decree's own in it
	inbox   disk.Info            // of .decree/inbox, to see whether the command put something there

	unrecorded []unrecordedEntry // what the root holds beside them
	uncopied   []string          // of uncopiedDirs, those that .decree had as the run began
	// below is what a walk after an attempt missed of what is not recorded and lay deeper, moreBelow what it only counted.
	below     []tree.Path
	moreBelow int
	newGit    []tree.Path // each .git below the root's own that came with an attempt
	vacated   []tree.Path // where of that something was after the last attempt, and is no more

	before         tree.Hash
	unread         []tree.Path     // could not be read before the command, or was too large
	outsideChanges *outside        // what had changed since the last record
	head           project.GitHead // when it began
	headMoved      bool            // it is elsewhere now

	release     func() // gives the lease back; nil: there is none
	lockWasFree bool   // the lock was free for a while: others may have recorded meanwhile

	promptTime time.Duration // that people took to answer
	stopSignal os.Signal     // came after the command's end: there is no further attempt

	started         started // the last attempt
	log             disk.File
	capped          *cappedLog // what writes it
	ended           int64      // when the last attempt's command did, in nanoseconds since 1970
	begun           bool       // a command has been executed
	slateCleaned    bool       // the tree was put back for the last attempt, which has not begun
	attemptResults  []attemptResult
	changes         []tree.Change // of the last attempt, against before
	unreadableSince []tree.Path   // paths that could not be read after it, but were before
	hiddenFiles     int
	notedSpecial    []tree.Path       // told already
	notedVanished   []tree.Path       // told already: unrecorded before, and gone
	files           map[string][]byte // composed, by name
	res             RunResult
}

// checkRun refuses options that no run begins with, and returns what keeps the command in.
func (r *Recorder) checkRun(o RunOptions) (limits, error) {
	if err := checkDescription(o.Description); err != nil {
		return limits{}, notStarted(err)
	}
	return r.limitsOf(o)
}

// Run records a command. An error means that decree itself failed or refused;
// it says in which state the tree is. The command's own failure is in the result.
func (r *Recorder) Run(ctx context.Context, o RunOptions) (res *RunResult, err error) {
	o.Attempts = max(o.Attempts, o.Spent+1, 1)
	limits, err := r.checkRun(o)
	if err != nil {
		return nil, err
	}
	beginning, begun, end := heedSignals(ctx, o.Signals, nil)
	defer end()
	entering := beginning
	if r.holding != nil {
		entering = ctx // a writer that is opened now serves the operations that follow, too
	}
	x, err := r.enterFor(entering, opRecord, movesFiles)
	if err != nil {
		if errors.As(err, new(*BeginError)) || project.KindOf(err) == project.Refused {
			return nil, err // its state is said
		}
		return nil, notStarted(err)
	}
	defer x.close()
	u := &run{r: r, x: x, o: o, limits: limits}
	defer u.close()
	defer func() {
		if err != nil && !u.begun && o.Named != nil {
			err = errors.Join(err, o.Named(""))
		}
	}()
	err = u.begin(beginning)
	begun()
	if err != nil {
		r.own.forget()
		if o.Outbox && unreadNow(err) { // it is a message's, which waits for that
			return nil, notStarted(&WaitError{&project.Error{Kind: project.KindOf(err), Err: err, Advice: readAdvice(err)}})
		}
		r.auditFailure(opRecord, err)
		return nil, notStarted(err)
	}
	if err := u.attempts(ctx); err != nil {
		return nil, err
	}
	u.gitMoved()
	u.tellCleared()
	if words := r.rootMode(u.modes); words != "" {
		u.say("%s", words)
	}
	if err := u.finish(); err != nil {
		return nil, u.unfinished("the record is not written", err)
	}
	r.retain(ctx, x, history.Run)
	return &u.res, nil
}

// notStarted says that the tree is as it was.
func notStarted(err error) error {
	return &project.Error{Kind: project.KindOf(err), Err: err, State: project.NotStarted}
}

// executeInTree is execute where the root is at its path, by which the command finds it.
func (r *Recorder) executeInTree(ctx context.Context, c runner.Command) (runner.Result, error) {
	if err := r.project.AtItsPath(); err != nil {
		return runner.Result{}, err
	}
	return r.execute(ctx, c)
}

// NotMadeError is in the chain of a run's error where an attempt's command was not executed.
type NotMadeError struct {
	Attempt int
	Err     error
}

func (e *NotMadeError) Error() string { return e.Err.Error() }
func (e *NotMadeError) Unwrap() error { return e.Err }

// unfinished is an error that ends a run early. Where its command has run the
// changes are there, and the open record lets the next command finish; else there
// is nothing to be recorded.
func (u *run) unfinished(what string, err error) error {
	id := u.rec.ID
	if !u.begun {
		err = fmt.Errorf("%s: %w", what, err)
		if !u.lockWasFree { // else the next command records that it changed nothing
			err = errors.Join(err, u.r.history.Abandon(id))
		}
		return notStarted(err)
	}
	e := &project.Error{Kind: project.KindOf(err), Err: fmt.Errorf("%s: %w", what, err), Advice: fmt.Sprintf("once the cause is gone 'decree recover' records run %s", id)}
	if advice := project.RightsAdvice(err); advice != "" {
		e.Advice = fmt.Sprintf("%s; then 'decree recover' records run %s", advice, id)
	}
	switch {
	case u.res.PutBack:
		e.State = "the command has failed and its changes are put back"
	case halfMoved(err):
		e.State = "the command has run, and its changes are in the tree but for what is put back already"
	case u.slateCleaned:
		e.State = "the tree is back at its state before the first attempt, and the last one was not made"
	default:
		e.State = "the command has run and its changes are in the tree as it left them"
		e.Advice += fmt.Sprintf(", and 'decree revert %s' takes it back", id)
	}
	switch hint := project.HintOf(err); {
	case lostContents(err):
		e.Advice = fmt.Sprintf("'decree recover' closes run %s with what is left; then 'decree restore %s PATH...' returns path by path to what was before it, and 'decree verify %s' names what is lost", id, id, id)
	case hint != "":
		e.Advice = hint
	}
	return e
}

// halfMoved says whether a move came to neither of its ends.
func halfMoved(err error) bool {
	var move *worktree.Error
	return errors.As(err, &move) && move.Moved && !move.RolledBack
}

// unmoved says whether a move has changed nothing.
func unmoved(err error) bool {
	var move *worktree.Error
	return errors.As(err, &move) && !move.Moved
}

func (u *run) close() {
	if u.release != nil {
		u.release()
	}
	if u.log != nil {
		u.log.Close()
	}
}

// begin records the tree and opens the record, each durable before the next.
func (u *run) begin(ctx context.Context) error {
	r := u.r
	// It will be looked for again when the command has ended.
	if _, err := r.project.Rejoin(); err != nil {
		return fmt.Errorf("the root would not be found again after the command: %w", err)
	}
	id, started, err := u.newID()
	if err != nil {
		return err
	}
	if err := u.compose(id); err != nil {
		return err
	}
	res, err := u.observe(ctx)
	if err != nil {
		return err
	}
	defer res.Close()
	plain, sum, err := r.manifestFile(res.Tree, res.WriteManifest)
	if err != nil {
		return err
	}
	if err := u.describe(id, started, res, sum); err != nil {
		return err
	}
	return u.open(ctx, plain)
}

// observe captures the tree, notes all that the command's changes will be compared with,
// and makes both durable. The caller closes the result.
func (u *run) observe(ctx context.Context) (_ *capture.Result, err error) {
	r := u.r
	res, err := r.observe(ctx, u.x, captureOptions{phase: "recording", full: u.o.Full, skipUnreadable: u.o.SkipUnreadable, unlimited: u.o.Yes, anyFile: u.o.Yes})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			res.Close()
		}
	}()
	if err := r.introduce(res); err != nil {
		return nil, err
	}
	r.noteCapture(res)
	if u.own, err = r.ownFiles(u.x, false); err != nil {
		return nil, err
	}
	if u.modes, err = r.lookModes(); err != nil {
		return nil, err
	}
	u.uncopied = slices.DeleteFunc(slices.Clone(uncopiedDirs), r.lacks)
	if u.o.Task != "" {
		if u.inbox, err = r.project.Decree.Stat(project.InboxDir); err != nil && !isMissing(err) {
			return nil, err
		}
	}
	if u.unrecorded, err = r.lookLeftOut(ctx); err != nil {
		return nil, err
	}
	u.head = u.gitHead()
	if u.outsideChanges, err = r.observeOutside(ctx, u.x, res, nil); err != nil {
		return nil, err
	}
	return res, r.keep(u.x, res) // with the flush for all three
}

// newID is the id of the run's record, of which who asked for the run is told, and when it begins.
func (u *run) newID() (id string, started time.Time, err error) {
	id, started, err = u.r.newID(u.o.ID)
	if err == nil && u.o.Named != nil {
		err = u.o.Named(id)
	}
	return id, started, err
}

// makeRecord makes the record as it is when a run begins, and the open record around it.
func (u *run) makeRecord(id string, started time.Time) error {
	cwd, err := filepath.Rel(u.r.project.Root, realPath(u.o.Dir))
	if err != nil {
		return err
	}
	chain, seq, _ := history.ParseID(id)
	u.rec = &history.Record{
		ID: id, Chain: chain, Seq: seq, Reason: history.Run, Status: history.StatusOpen, Description: u.o.Description,
		Command: u.o.Args, Cwd: filepath.ToSlash(cwd), Started: started, Actor: u.r.opt.Actor, Attempts: u.o.Spent + 1,
		Inside: u.x.activity.inside, Origin: u.r.origin(),
	}
	u.limits.record(u.rec)
	u.opened = &history.Opened{Record: u.rec, Since: u.x.w.Began(), Extra: map[string]json.RawMessage{}}
	if u.o.Outbox {
		u.opened.Extra[extraOutbox] = json.RawMessage("true")
	}
	if u.o.Label != "" {
		u.opened.Effects.Labels = map[string]string{u.o.Label: id}
		return history.CheckLabel(u.o.Label)
	}
	return nil
}

// describe makes the record, and what a recovery must know beside it.
func (u *run) describe(id string, started time.Time, res *capture.Result, manifestSum tree.Hash) error {
	r := u.r
	err := u.makeRecord(id, started)
	if err != nil {
		return err
	}
	u.before, u.unread = res.Tree, res.Unrecorded
	u.rec.Before, u.rec.Files, u.rec.Bytes, u.rec.ManifestSHA256, u.rec.Unrecorded = res.Tree, res.Files, res.Bytes, manifestSum, res.Unrecorded
	if err := r.noteMounts(u.rec); err != nil {
		return err
	}
	if err := u.outsideChanges.mark(u.rec); err != nil {
		return err
	}
	u.notedSpecial = res.Special
	u.opened.Rules = rules(res)
	if err = u.own.note(u.opened.Extra); err != nil {
		return err
	}
	if err = noteLeft(u.unrecorded, u.opened.Extra); err != nil {
		return err
	}
	if u.opened.Extra[extraModes], err = json.Marshal(u.modes); err != nil {
		return err
	}
	if u.opened.Extra[extraBeside], err = json.Marshal(besideIt{u.head, runner.Outputs()}); err != nil {
		return err
	}
	u.opened.Log, err = r.logOwn(id, u.own)
	return err
}

// open takes the lease and opens the record and its run directory, which gets the
// manifest plain.
func (u *run) open(ctx context.Context, plain history.RunFile) error {
	r, id := u.r, u.rec.ID
	if err := u.takeLease(); err != nil {
		return err
	}
	if err := r.history.Begin(u.opened); err != nil {
		return err
	}
	if err := u.openRun(plain); err != nil {
		return errors.Join(err, r.history.Abandon(id))
	}
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), r.history.Abandon(id))
	}
	return nil
}

// gitHead is where git's HEAD is. It is no part of the tree, so that an error costs no
// more than the word about it.
func (u *run) gitHead() project.GitHead {
	head, err := u.r.project.GitHead(u.r.opt.Where)
	if err != nil {
		u.say("git's HEAD cannot be read, so it will not be said whether the command moved it: %v", err)
	}
	return head
}

func (u *run) gitMoved() {
	moved, err := u.r.project.GitMoved(u.r.opt.Where, u.head)
	if err != nil {
		u.say("git's HEAD cannot be read, so it is not known whether the command moved it: %v", err)
	} else if moved != "" {
		u.say("%s", moved)
	}
	u.headMoved = moved != ""
}

// realPath is the path without links, so that it can be related to the root.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// heedSignals returns ctx, ended by the first signal that comes before begun is called,
// or, where warn is given, by the second, warn answering the first. What comes after that
// stays in the channel. end lets go of it all.
func heedSignals(ctx context.Context, signals <-chan os.Signal, warn func()) (heeding context.Context, begun, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-signals:
				if warn == nil {
					cancel(&Interrupted{s})
					return
				}
				warn()
				warn = nil
			case <-done:
				return
			}
		}
	}()
	begun = sync.OnceFunc(func() { close(done); <-ended })
	return ctx, begun, func() { begun(); cancel(nil) }
}

// finishing answers signals until stop is called: what is under way comes to its
// end, and no further attempt begins after it. heeding ends with the second signal.
func (u *run) finishing(ctx context.Context, what string) (heeding context.Context, stop func()) {
	heeding, cancel := context.WithCancelCause(ctx)
	began := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case s, ok := <-u.o.Signals:
				if !ok {
					return
				}
				if u.stopSignal != nil {
					cancel(&Interrupted{s})
				}
				u.stopSignal = s
				u.r.note("finishing, %d s: %s", int(time.Since(began).Seconds()), what)
			case <-done:
				return
			}
		}
	}()
	return heeding, func() { close(done); <-ended }
}

// Interrupted is in the chain of an error that a signal caused before the
// command was started.
type Interrupted struct{ Signal os.Signal }

func (e *Interrupted) Error() string { return "stopped by " + signalName(e.Signal) }

// signalName is the name of a signal that decree heeds.
func signalName(sig os.Signal) string {
	switch sig {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	}
	return sig.String()
}

// ExitCode is 128 and the signal's number.
func (e *Interrupted) ExitCode() int {
	if s, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 125
}

// openRun makes the run directory and remembers what a command may delete.
func (u *run) openRun(manifest history.RunFile) error {
	h := u.r.history
	files := u.outsideChanges.files(u.r, manifest, history.RunFile{Name: "run.json", Write: history.Bytes(u.rec.JSON(nil))})
	files = u.composedFiles(files)
	err := h.BuildRun(u.rec.ID, files)
	if err != nil {
		return err
	}
	if err := u.makeOutbox(); err != nil {
		return err
	}
	u.born = u.r.decreeBorn()
	if u.runs, err = u.r.project.Decree.Stat("runs"); err != nil {
		return err
	}
	u.packs, err = packsOf(u.r.project.Store)
	u.r.own.packs = u.packs
	return err
}

// attempts executes the command until it succeeds or the attempts are used up.
func (u *run) attempts(ctx context.Context) error {
	for n := u.o.Spent + 1; ; n++ {
		u.rec.Attempts = n
		if err := u.announce(n); err != nil {
			return err
		}
		if err := u.attempt(ctx, n); err != nil {
			return err
		}
		last := u.judgeEnding()
		if last.ExitCode == 0 && !last.TimedOut && last.Interrupted == nil {
			u.rec.Status = history.StatusSucceeded
			return nil
		}
		if n == u.o.Attempts || last.Interrupted != nil || last.NotStarted != nil {
			return u.giveUp(ctx)
		}
		if err := u.mend(); err != nil { // the next attempt may need a routine that this one deleted
			return u.unfinished("what it deleted of .decree is not written again", err)
		}
		if n == u.o.Attempts-1 {
			if err := u.cleanSlate(ctx, n); err != nil {
				return err
			}
		}
		stopped, err := u.delay(ctx)
		if err != nil {
			return u.unfinished("the next attempt is not begun", err)
		}
		if stopped {
			return u.giveUp(ctx)
		}
	}
}

// judgeEnding is how the last attempt ended. One that the same signal ended as asked decree to end, as when a service manager or a
// shutdown sends it to all processes, did not fail by itself: it was interrupted.
func (u *run) judgeEnding() runner.Result {
	last := &u.res.Last
	if u.o.Ending == nil || last.TimedOut || last.Interrupted != nil || last.NotStarted != nil {
		return *last
	}
	if asked := u.o.Ending(); asked != nil && asked.ExitCode() == last.ExitCode {
		last.Interrupted = asked.Signal
	}
	return *last
}

// delay is pause, with the lock free unless there is no time to wait for.
func (u *run) delay(ctx context.Context) (stopped bool, err error) {
	if u.o.Delay <= 0 {
		return u.pause(), nil
	}
	err = u.withoutLock(ctx, func() { stopped = u.pause() })
	return stopped, err
}

// pause waits between attempts; true when a signal came meanwhile.
func (u *run) pause() bool {
	if u.stopSignal == nil {
		timer := time.NewTimer(u.o.Delay)
		defer timer.Stop()
		select {
		case u.stopSignal = <-u.o.Signals:
		case <-timer.C:
			return false
		}
	}
	u.res.Last.Interrupted = u.stopSignal
	u.res.ExitCode = (&Interrupted{u.stopSignal}).ExitCode()
	return true
}

// attempt runs the command once and records what it did.
func (u *run) attempt(ctx context.Context, n int) error {
	if n > u.o.Spent+1 {
		if err := u.file(n - 1); err != nil {
			return u.unfinished("the earlier attempt is not kept", err)
		}
	}
	if err := u.openLog(); err != nil {
		return u.unfinished("routine.log", err)
	}
	res, err := u.r.executeInTree(ctx, u.command(n))
	if executed := err == nil && res.NotStarted == nil || res.Duration > 0; executed {
		u.begun, u.slateCleaned = true, false
	}
	u.ended = time.Now().UnixNano() // by the clock that files are stamped with
	u.closeLog()
	if err := u.takeLock(ctx); err != nil {
		return u.unfinished("what it changed is not recorded", err)
	}
	switch {
	case errors.Is(err, runner.ErrLog):
		u.say("%v", err)
	case err != nil && res.Duration == 0:
		return u.unfinished(fmt.Sprintf("attempt %d was not started", n), &NotMadeError{n, err})
	case err != nil:
		u.say("%v", err)
	}
	u.res.Last, u.res.ExitCode, u.stopSignal = res, res.ExitCode, res.Late
	u.noteOtherProcesses(res)
	if err := u.rejoin(); err != nil {
		return u.unfinished("the root is not found again", err)
	}
	for _, step := range []func() error{
		u.unseal,
		u.clearOwn,
		u.checkStore,
		func() error { return u.catchUp(ctx) },
		func() error { return u.recoverInside(ctx) },
		func() error { return u.examine(ctx, n) },
		func() error { return u.r.closeTurnsIn(ctx, u.x, u.rec.ID) },
	} {
		if err := step(); err != nil {
			return u.unfinished("what it changed is not recorded", err)
		}
	}
	return nil
}

// dirAsBegun is where the command works: where decree was called, by the path that it was called by as long as that leads there. An earlier attempt may
// have given a link in it another target.
func (u *run) dirAsBegun() string {
	begun := filepath.Join(u.r.project.Root, filepath.FromSlash(u.rec.Cwd))
	if realPath(u.o.Dir) == begun {
		return u.o.Dir
	}
	return begun
}

// command is the n-th attempt's.
func (u *run) command(n int) runner.Command {
	return runner.Command{
		Args: u.o.Args, Dir: u.dirAsBegun(), Env: u.env(n), Stdin: u.o.Stdin, Stdout: u.o.Stdout, Stderr: u.o.Stderr,
		Log: u.capped, Timeout: u.o.Timeout, Grace: u.o.Grace, Signals: u.o.Signals, Root: u.r.project.Root, Apart: u.o.Apart, Unread: u.o.Unread,
		Fence: u.fenceFor(u.r.project.Root),
		Starting: func(l runner.Leader) error {
			err := u.noteStarted(l)
			if err == nil {
				err = u.freeLock()
			}
			return err
		},
	}
}

// unseal makes decree's own in .decree writable again where the command took that away
// with chattr.
func (u *run) unseal() error {
	var queue []string
	if u.o.Task != "" { // its message is moved when it has ended
		queue = []string{path.Dir(u.o.Task), path.Join(path.Dir(u.o.Task), "done"), path.Join(path.Dir(u.o.Task), "dead"), u.o.Task}
	}
	if unsealed := u.r.project.Unseal(u.rec.ID, queue...); len(unsealed) > 0 {
		u.say("the command had made %s immutable or append-only; that was taken away again", some(unsealed))
	}
	return nil
}

// rejoin follows a command that deleted its own root.
func (u *run) rejoin() error {
	note, err := u.r.project.Rejoin()
	if err != nil || note == "" {
		return err
	}
	u.say("%s", note)
	u.r.tree = worktree.Open(u.r.project.Dir, worktree.Options{Store: u.r.store})
	return nil
}

func (u *run) say(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if !slices.Contains(u.res.Notes, note) { // some steps are made again
		u.res.Notes = append(u.res.Notes, note)
	}
}

func (u *run) sayAll(lines []string) {
	for _, line := range lines {
		u.say("%s", line)
	}
}

// noteOtherProcesses names processes that had to be ended, or that still work here, and says where output did not get.
func (u *run) noteOtherProcesses(res runner.Result) {
	if res.Output != nil {
		u.say("what the command printed could not be passed on, and is whole in its log alone: %v", res.Output)
	}
	names := func(list []runner.Process) string {
		out := ""
		for i, p := range list {
			if i > 0 {
				out += ", "
			}
			out += fmt.Sprintf("%s (%d)", tree.Quote(p.Name), p.PID)
		}
		return out
	}
	without := func(list, others []runner.Process) []runner.Process {
		return slices.DeleteFunc(slices.Clone(list), func(p runner.Process) bool {
			return slices.ContainsFunc(others, func(o runner.Process) bool { return o.PID == p.PID })
		})
	}
	res.Outside = without(res.Outside, res.Stragglers)
	if ended := without(res.Stragglers, res.Survivors); len(ended) > 0 {
		u.say("ended, because they were still running when the command had ended: %s", names(ended))
	}
	if len(res.Survivors) > 0 {
		u.say("could not be ended and may still write: %s", names(res.Survivors))
	}
	if len(res.Outside) > 0 {
		where := "tree"
		if u.rec.Isolated != "" {
			where = "clone"
		}
		u.say("left the command's process group and are still running in the %s: %s", where, names(res.Outside))
	}
	if res.NoPTY != nil {
		u.say("no pseudo-terminal: %v", res.NoPTY)
	}
}

// env is the command's environment for attempt n.
func (u *run) env(n int) []string {
	dir := filepath.Join(u.r.project.Root, ".decree", "runs", u.rec.ID)
	out := append(append([]string(nil), u.o.Env...),
		"DECREE_RUN_ID="+u.rec.ID, "DECREE_RUN_DIR="+dir, "DECREE_ROOT="+u.r.project.Root,
		fmt.Sprintf("DECREE_ATTEMPT=%d", n), fmt.Sprintf("DECREE_ATTEMPTS=%d", u.o.Attempts))
	if u.o.Outbox {
		out = append(out, "DECREE_OUTBOX="+filepath.Join(dir, project.OutboxDir))
	}
	if n > 1 && n == u.o.Attempts {
		out = append(out, "DECREE_FAILURE_CONTEXT="+filepath.Join(dir, failureFile))
	}
	return out
}
