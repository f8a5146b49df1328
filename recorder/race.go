package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// A race is one command run by several candidates, each in a layer of its own. All layers are
// made before the first command is started: what changes in the tree from then on is part of
// nobody's base. Each candidate has a Recorder of its own, as another process would have, and
// shares nothing with the others but the store, which the lock guards.

// RaceOptions are a race's.
type RaceOptions struct {
	// Run is each candidate's; its streams, ID, Named and Apart are not looked at. Signals
	// end all of them.
	Run RunOptions
	// Isolated is each candidate's. Name is the race's: "" is race, or race2 and so on where
	// that is in use; Auto publishes the best.
	Isolated   IsolatedOptions
	Candidates int
	Jobs       int    // how many work at once; 0: all
	Judge      string // a line for sh; "": who succeeds is good
	// Moved is called when a candidate has come to another state, by one goroutine at a time.
	Moved func(Candidate)
}

// CandidateState is how far a candidate has come.
type CandidateState uint8

// The states of a candidate.
const (
	Waits CandidateState = iota
	Works
	Judged // its judge works
	Ended
)

// Candidate is one of a race.
type Candidate struct {
	Number int // from 1
	Name   string
	ID     string // of its record
	State  CandidateState
	Result *RunResult // nil: its command was not executed, or Err says why there is no record
	Err    error
	// Shared are the paths, directories left out, that others changed too.
	Shared []tree.Path
}

// Good says whether the candidate was judged good, or, where nobody judges, has succeeded.
func (c *Candidate) Good(judged bool) bool {
	if c.Result == nil {
		return false
	}
	if judged {
		return c.Result.Record.Judge.Good()
	}
	return c.Result.Record.Status == history.StatusSucceeded
}

// Draft says whether there is something to publish.
func (c *Candidate) Draft() bool { return c.Result != nil && c.Result.Record.Draft != nil }

// RaceResult says how a race ended.
type RaceResult struct {
	Name       string
	Candidates []*Candidate // by number
	Best       *Candidate   // the good draft with the fewest changed lines; nil: there is none
	Published  *MoveResult  // of the best; nil: it was not asked for, or Notes say why not
	Notes      []string
	ExitCode   int // what decree exits with
}

// race is a race on its way.
type race struct {
	r      *Recorder
	o      RaceOptions
	limits limits
	res    RaceResult
	racers []*racer

	mu      sync.Mutex // guards the states of candidates, and:
	stopped os.Signal  // the first signal
	told    []string   // notes
}

// racer is a candidate on its way.
type racer struct {
	*isolatedRun
	c       *Candidate
	signals chan os.Signal
}

// Race runs a command by several candidates. An error means that none of them was begun.
func (r *Recorder) Race(ctx context.Context, o RaceOptions) (*RaceResult, error) {
	if r.project.InLayer {
		return nil, notStarted(nestedLayer())
	}
	limits, err := r.checkRun(o.Run)
	if err != nil {
		return nil, err
	}
	rc := &race{r: r, o: o, limits: limits}
	beginning, begun, end := heedSignals(ctx, o.Run.Signals, nil)
	defer end()
	err = rc.begin(beginning)
	begun()
	if err != nil {
		if errors.As(err, new(*BeginError)) {
			return nil, err
		}
		r.auditFailure(opRecord, err)
		return nil, notStarted(err)
	}
	rc.run(ctx)
	if err := rc.noneBegun(); err != nil {
		return nil, err
	}
	rc.conclude(ctx)
	return &rc.res, nil
}

// begin opens the records of all candidates, or of none.
func (rc *race) begin(ctx context.Context) error {
	if name := rc.o.Isolated.Name; name != "" {
		return rc.beginAs(ctx, name)
	}
	const usual = "race"
	err := rc.beginAs(ctx, usual)
	for n := 2; errors.As(err, new(*nameTaken)); n++ {
		err = rc.beginAs(ctx, usual+strconv.Itoa(n))
	}
	return err
}

func (rc *race) beginAs(ctx context.Context, name string) error {
	rc.res = RaceResult{Name: name}
	for n := 1; n <= rc.o.Candidates; n++ {
		c := &Candidate{Number: n, Name: fmt.Sprintf("%s.%d", name, n)}
		u, err := rc.enter(ctx, c)
		if err == nil && ctx.Err() != nil {
			rc.racers = append(rc.racers, u)
			err = context.Cause(ctx)
		}
		if err != nil {
			for _, u := range rc.racers {
				err = errors.Join(err, u.giveUp(ctx))
			}
			rc.racers = nil
			return err
		}
		rc.racers, rc.res.Candidates = append(rc.racers, u), append(rc.res.Candidates, c)
	}
	return nil
}

// enter opens a candidate's record, and leaves the lock free.
func (rc *race) enter(ctx context.Context, c *Candidate) (_ *racer, err error) {
	opt := rc.r.opt
	opt.Note, opt.Beside = rc.noteOnce, true
	r, err := Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	r.execute, r.machine = rc.r.execute, rc.r.machine
	u := &racer{c: c, signals: make(chan os.Signal, 2)}
	u.isolatedRun = &isolatedRun{run: &run{r: r, o: rc.o.Run, limits: rc.limits}, i: rc.o.Isolated}
	u.o.Attempts, u.o.Apart, u.o.Signals = max(1, u.o.Attempts), true, u.signals
	u.o.Stdin, u.o.Stdout, u.o.Stderr, u.o.ID, u.o.Named = nil, nil, nil, "", nil
	u.o.Env = append(slices.Clone(u.o.Env), "DECREE_CANDIDATE="+strconv.Itoa(c.Number))
	u.i.Name, u.i.Auto = c.Name, false
	if len(rc.racers) > 0 {
		u.how = rc.racers[0].layer.Mechanism()
	}
	if rc.o.Judge != "" {
		by := u.judgeBy(rc.o.Judge)
		u.judge = func(ctx context.Context, files map[string]tree.Hash) (time.Duration, error) {
			rc.moved(c, Judged)
			return by(ctx, files)
		}
	}
	defer func() {
		if err != nil {
			u.leave()
		}
	}()
	if u.x, err = r.enterFor(ctx, opRecord, inLayer); err != nil {
		return nil, err
	}
	if err := u.begin(ctx); err != nil {
		return nil, err
	}
	c.ID = u.rec.ID
	return u, u.freeLock()
}

// noteOnce tells what any of the candidates has come upon.
func (rc *race) noteOnce(text string) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if !slices.Contains(rc.told, text) {
		rc.told = append(rc.told, text)
		rc.r.note("%s", text)
	}
}

// leave lets go of all that the candidate holds.
func (u *racer) leave() {
	u.close() // the lease goes before the lock
	if u.x != nil {
		u.x.close()
	}
	_ = u.r.Close()
}

// giveUp takes back a candidate whose command was not started.
func (u *racer) giveUp(ctx context.Context) error {
	defer u.leave()
	if err := u.takeLock(ctx); err != nil {
		return err // the next command that writes does it
	}
	return u.drop()
}

// run has the candidates work, so many at a time, and waits until all have ended.
func (rc *race) run(ctx context.Context) {
	done, heard := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		rc.forwardSignals(done)
	}()
	for _, u := range rc.racers {
		rc.moved(u.c, Waits)
	}
	jobs := rc.o.Jobs
	if jobs < 1 {
		jobs = len(rc.racers)
	}
	var g errgroup.Group
	g.SetLimit(jobs)
	for _, u := range rc.racers {
		g.Go(func() error {
			rc.compete(ctx, u)
			return nil
		})
	}
	_ = g.Wait()
	close(done)
	<-heard
}

// compete is one candidate's part.
func (rc *race) compete(ctx context.Context, u *racer) {
	defer rc.moved(u.c, Ended)
	if rc.signal() != nil {
		u.c.Err = u.giveUp(ctx)
		return
	}
	defer u.leave()
	rc.moved(u.c, Works)
	err := u.takeLock(ctx)
	if err == nil {
		err = u.catchUp(ctx)
	}
	if err != nil {
		u.c.Err = notStarted(err) // what was made for it the next command that writes removes
		return
	}
	u.rec.Started = u.r.now(u.rec.Started)
	if u.c.Err = u.attempts(ctx); u.c.Err == nil {
		u.c.Result = &u.res
	}
}

// noneBegun is why no candidate's command was started; nil: some were, or a signal came.
func (rc *race) noneBegun() error {
	for _, c := range rc.res.Candidates {
		if project.StateOf(c.Err) != project.NotStarted {
			return nil
		}
	}
	return rc.res.Candidates[0].Err
}

// moved tells that a candidate has come to another state.
func (rc *race) moved(c *Candidate, state CandidateState) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	c.State = state
	if rc.o.Moved != nil {
		rc.o.Moved(*c)
	}
}

func (rc *race) signal() os.Signal {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return rc.stopped
}

// forwardSignals passes signals on to all commands: a second one, or the end of the grace, kills what
// is left of them.
func (rc *race) forwardSignals(done <-chan struct{}) {
	var grace <-chan time.Time
	for {
		select {
		case s, ok := <-rc.o.Run.Signals:
			if !ok {
				return
			}
			if rc.signal() == nil {
				grace = time.After(rc.o.Run.Grace)
				rc.r.note("all candidates are ended; what is left of them in %s, or at another signal, is killed", rc.o.Run.Grace)
			}
			rc.forwardSignal(s)
		case <-grace:
			rc.forwardSignal(rc.signal())
		case <-done:
			return
		}
	}
}

// forwardSignal gives a signal to every candidate that has not had two already.
func (rc *race) forwardSignal(s os.Signal) {
	rc.mu.Lock()
	if rc.stopped == nil {
		rc.stopped = s
	}
	rc.mu.Unlock()
	for _, u := range rc.racers {
		select {
		case u.signals <- s:
		default:
		}
	}
}

// compare finds the best candidate, and the paths that several have changed.
func (rc *race) compare() {
	changed := map[tree.Path]int{}
	each := func(c *Candidate, do func(path tree.Path)) {
		if c.Result == nil {
			return
		}
		for _, ch := range c.Result.Changes {
			if ch.Old != nil && ch.Old.Type != tree.Dir || ch.New != nil && ch.New.Type != tree.Dir {
				do(ch.Path)
			}
		}
	}
	for _, c := range rc.res.Candidates {
		each(c, func(path tree.Path) { changed[path]++ })
	}
	lines := func(c *Candidate) int {
		n := c.Result.Record.Changes
		return n.AddedLines + n.RemovedLines
	}
	for _, c := range rc.res.Candidates {
		each(c, func(path tree.Path) {
			if changed[path] > 1 {
				c.Shared = append(c.Shared, path)
			}
		})
		if best := rc.res.Best; c.Draft() && c.Good(rc.o.Judge != "") && (best == nil || lines(c) < lines(best)) {
			rc.res.Best = c
		}
	}
}

// recovered takes a candidate's record from the recovery where its own end found no room on the
// disk, as others were still writing to it.
func (rc *race) recovered() {
	for _, u := range rc.racers {
		if !disk.Full(u.c.Err) {
			continue
		}
		rec, err := rc.r.history.Get(u.c.ID)
		if err != nil || rec.Status == history.StatusOpen {
			continue
		}
		if u.res.Changes, err = rc.r.history.DiffChanges(rec); err != nil {
			continue
		}
		u.res.Record, u.c.Result, u.c.Err = rec, &u.res, nil
	}
}

// conclude finds the best, prunes, publishes the best where that was asked for, and says how
// decree exits. What a full disk has kept from being recorded it recovers first: now no
// candidate fills the disk any more.
func (rc *race) conclude(ctx context.Context) {
	rc.r.spareReserve()
	x, err := rc.r.enterFor(ctx, opRecord, inLayer)
	rc.recovered()
	rc.compare()
	res := &rc.res
	res.ExitCode = 1
	if slices.ContainsFunc(res.Candidates, func(c *Candidate) bool { return c.Good(rc.o.Judge != "") }) {
		res.ExitCode = 0
	}
	if err == nil {
		defer x.close()
		rc.r.retain(ctx, x, history.Run)
	} else {
		rc.say("older records are not pruned: %v", err)
	}
	if s := rc.signal(); s != nil {
		res.ExitCode = (&Interrupted{s}).ExitCode()
		return
	}
	if !rc.o.Isolated.Auto || res.Best == nil {
		return
	}
	if err == nil {
		res.Published, err = rc.r.publishUnasked(ctx, x, res.Best.ID)
	}
	if err != nil {
		res.ExitCode = 125
		rc.say("%s is not published: %v%s", res.Best.Name, err, NamedIn(err))
		rc.say("its draft waits: 'decree publish %s' tries again", res.Best.Name)
	}
}

func (rc *race) say(format string, args ...any) {
	rc.res.Notes = append(rc.res.Notes, fmt.Sprintf(format, args...))
}
