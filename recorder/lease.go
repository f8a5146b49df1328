package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"decree/history"
	"decree/project"
	"decree/runner"
)

// The lock guards decree's own work. While a run's command works the lock is free, and a lease
// says that the run's process lives, so that nobody recovers its open record. Meanwhile others
// may do what does not move the user's files. What moves them may only be done by a process that
// descends from the run's: it is a part of the run.

// lockMode says which runs may work while an operation has the lock.
type lockMode uint8

const (
	besideRuns lockMode = iota // it goes on while the command of somebody else's run works
	inLayer                    // so does an isolated run, several of which may begin at once: it waits for short work
	movesFiles                 // it waits for that run, or is refused
)

// activity is the runs whose commands work, and the turns that are open, during an operation.
type activity struct {
	leases  []project.Lease // of runs whose commands work, the oldest first
	inside  string          // the nearest of them, or of turns, that this process is part of, "" for none
	others  []project.Lease // those that it is no part of
	turns   []*openTurn     // of coding agents, the oldest first
	reports []agentReport   // what agents told, while turns are open
}

// live says whether the record id has a lease.
func (b activity) live(id string) bool {
	return slices.ContainsFunc(b.leases, func(l project.Lease) bool { return l.ID == id })
}

// inPlace says whether a command works that changes the tree itself.
func (b activity) inPlace() bool {
	return slices.ContainsFunc(b.leases, func(l project.Lease) bool { return !l.Holder.Isolated })
}

// othersInPlace says whether such a command works that this process is no part of.
func (b activity) othersInPlace() bool { return activity{leases: b.others}.inPlace() }

// refuseIsolated keeps what an isolated run's command calls out of the project's store:
// nothing that it records would be of the tree.
func (b activity) refuseIsolated() error {
	for _, l := range b.leases {
		if l.ID == b.inside && l.Holder.Isolated {
			return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("this is a part of the isolated run %s, which can look at the project's records and make none", l.ID),
				Advice: "its work is recorded when it ends"}
		}
	}
	return nil
}

// currentActivity finds the runs whose commands work now.
func (r *Recorder) currentActivity() (b activity, err error) {
	if b.leases, err = r.project.Leases(); err != nil {
		return b, err
	}
	for _, l := range b.leases {
		if r.descent(l.Holder) < 0 {
			b.others = append(b.others, l)
		}
	}
	b.inside = r.nearest(b)
	return b, nil
}

// addTurns adds the open turns. The caller has the lock, so that what
// stands in the place of the open records is moved away.
func (b *activity) addTurns(r *Recorder) (err error) {
	if b.turns, err = r.openTurns(); err != nil {
		return err
	}
	b.inside, b.reports = r.nearest(*b), nil
	if len(b.turns) > 0 {
		b.reports, err = r.readAgentReports()
	}
	return err
}

// nearest is the run, or the turn, whose process is the nearest that this one descends from,
// "" for none. Of the turns of one process the newest counts.
func (r *Recorder) nearest(b activity) (id string) {
	nearest := -1
	near := func(h project.Holder, of string) {
		if far := r.descent(h); far >= 0 && (nearest < 0 || far < nearest) {
			nearest, id = far, of
		}
	}
	for _, l := range b.leases {
		near(l.Holder, l.ID)
	}
	for _, t := range slices.Backward(b.turns) {
		near(t.note.Agent, t.Record.ID)
	}
	return id
}

// descent finds a process among those that this one descends from, and itself. What the
// environment says is no proof: it can be set by hand, and outlives the run. beside: its own
// runs do not count.
func descent(host string, beside bool) func(project.Holder) int {
	lineage := runner.Lineage()
	if beside && len(lineage) > 0 {
		lineage = lineage[1:]
	}
	return func(h project.Holder) int {
		if h.PID == 0 || h.Host != host || h.Boot != runner.BootID() {
			return -1
		}
		return slices.IndexFunc(lineage, func(a runner.Ancestor) bool { return a.PID == h.PID && a.StartTime == h.Born })
	}
}

// Holder is this process, for whoever waits.
func (r *Recorder) Holder() project.Holder {
	h := project.Holder{PID: os.Getpid(), Host: r.opt.Actor.Host, Start: r.opt.Clock(), Command: r.opt.CommandLine, Boot: runner.BootID()}
	if self := runner.Lineage(); len(self) > 0 {
		h.Born = self[0].StartTime
	}
	return h
}

const (
	leasePause = 50 * time.Millisecond
	// dyingWait is how long a lease may be held by a process that is gone: one that it
	// had just forked has it until it executes its own program.
	dyingWait = 2 * time.Second
	// shortWork is how long a part of a run, and an isolated run, wait for the lock in any case:
	// what others do with it is mostly short, and a script would not expect to be refused for it.
	shortWork = 30 * time.Second
	// sayWait is after how long a run that has to wait for the lock again says so.
	sayWait = 2 * time.Second
	forever = 100 * 365 * 24 * time.Hour
)

// lock takes the project's lock, when no run stands in the way, and sees what others
// wrote meanwhile.
func (r *Recorder) lock(ctx context.Context, k lockMode) (*writeSession, error) {
	begin := time.Now()
	for {
		b, err := r.awaitRuns(ctx, k, begin)
		if err != nil {
			return nil, &BeginError{err}
		}
		wait := r.opt.Wait
		if b.inside != "" || k == inLayer {
			wait = max(wait, shortWork)
		}
		unlock, err := r.project.Lock(ctx, r.Holder(), wait-time.Since(begin))
		if err != nil {
			return nil, &BeginError{r.BehindFence(err)}
		}
		x := &writeSession{unlock: r.leaving(unlock)}
		if err = r.finishSwap(); err == nil {
			x.activity, err = r.currentActivity()
		}
		if err == nil {
			err = x.activity.refuseIsolated()
		}
		if err == nil && r.blocker(x.activity, k, begin) != nil {
			x.close() // it began in between
			continue
		}
		if err == nil {
			err = r.project.RefuseSealed()
		}
		if err == nil {
			err = r.prepare(ctx, x)
		}
		if err == nil {
			err = x.activity.addTurns(r)
		}
		if err != nil {
			x.close()
			return nil, &BeginError{err}
		}
		return x, nil
	}
}

// leaving gives the lock back after it has put in order what only its holder may touch.
func (r *Recorder) leaving(unlock func()) func() {
	return func() {
		r.dropStaged()
		r.remakeReserve()
		unlock()
	}
}

// awaitRuns waits until no run stands in the way of an operation that began to wait at
// begin, and returns what goes on then.
func (r *Recorder) awaitRuns(ctx context.Context, k lockMode, begin time.Time) (activity, error) {
	for {
		b, err := r.currentActivity()
		if err != nil {
			return b, err
		}
		l := r.blocker(b, k, begin)
		if l == nil {
			return b, nil
		}
		if waited := time.Since(begin); waited >= r.opt.Wait && (l.Holder.Working(r.opt.Actor.Host) || waited > dyingWait) {
			return b, &project.HeldError{Holder: l.Holder}
		}
		select {
		case <-ctx.Done():
			return b, ctx.Err()
		case <-time.After(leasePause):
		}
	}
}

// blocker is a run that stands in the way of an operation; nil: none. One that has just
// died stands in the way of all: what it left comes first.
func (r *Recorder) blocker(b activity, k lockMode, begin time.Time) *project.Lease {
	for i := range b.others {
		l := &b.others[i]
		dying := l.Holder.PID != 0 && !l.Holder.Working(r.opt.Actor.Host) && time.Since(begin) < dyingWait
		if k == movesFiles && !l.Holder.Isolated || dying {
			return l
		}
	}
	return nil
}

// unfinished are the open records whose processes are gone, those without a lease that are
// no open turn of a coding agent, and the damaged ones of them. goesOn is nil where the caller does not have the lock.
func (r *Reader) unfinished(goesOn *activity) (open []*history.Opened, damaged []history.Damage, err error) {
	if open, damaged, err = r.history.ListOpen(); err != nil {
		return nil, nil, err
	}
	var b activity
	if goesOn != nil {
		b = *goesOn
	} else if b.leases, err = r.project.Leases(); err != nil { // after the list: a lease is taken before the record is opened
		return nil, nil, err
	}
	open = slices.DeleteFunc(open, func(o *history.Opened) bool {
		if b.live(o.Record.ID) || o.Record.Reason != history.Turn {
			return b.live(o.Record.ID)
		}
		recorded, rerr := r.history.Recorded(o.Record.ID)
		err = errors.Join(err, rerr)
		return !recorded // else its process died between the log's line and the open record's end
	})
	damaged = slices.DeleteFunc(damaged, func(d history.Damage) bool { return b.live(d.ID) })
	return open, damaged, err
}

// takeLease makes it known that the run's process lives. It is given back by close.
func (u *run) takeLease() (err error) {
	h := u.r.Holder()
	h.Run, h.Isolated = u.rec.ID, u.rec.Isolated != ""
	u.release, err = u.r.project.Lease(u.rec.ID, h)
	return err
}

// freeLock gives back the lock while a command works, or a person decides. The caller then calls
// takeLock before it touches anything, and catchUp before it writes.
func (u *run) freeLock() error {
	if err := u.nameAlone(); err != nil {
		return err
	}
	u.lockWasFree = true
	u.x.release()
	if u.o.Freed != nil {
		u.o.Freed()
	}
	return nil
}

// withoutLock lets others work while do waits for something. Before that, the open record names
// what an attempt left, so that nobody frees it.
func (u *run) withoutLock(ctx context.Context, do func()) error {
	if err := u.r.saveDraft(u.opened, u.rec); err != nil {
		return err
	}
	if err := u.freeLock(); err != nil {
		return err
	}
	do()
	if err := u.takeLock(ctx); err != nil {
		return err
	}
	return u.catchUp(ctx)
}

// takeLock takes the lock again: the others' work is short, so it is waited for as long
// as need be. A lock that was never given back stays.
func (u *run) takeLock(ctx context.Context) error {
	if u.x.unlock != nil {
		return nil
	}
	if u.o.Back != nil {
		u.o.Back()
	}
	if err := u.r.storeThere(); err != nil {
		return err // the lock is in it
	}
	u.r.spareReserve()
	ctx, h := context.WithoutCancel(ctx), u.r.Holder()
	h.Run = u.rec.ID
	unlock, err := u.r.project.Lock(ctx, h, sayWait)
	if held, ok := errors.AsType[*project.HeldError](err); ok {
		if !u.o.Apart || held.Holder.PID != os.Getpid() { // else it is another candidate
			u.r.note("run %s waits for the lock to go on: %v", u.rec.ID, held)
		}
		for errors.As(err, &held) {
			unlock, err = u.r.project.Lock(ctx, h, forever)
		}
	}
	if err == nil {
		u.x.unlock = u.r.leaving(unlock)
	}
	return err
}

// catchUp sees what others wrote while the lock was free: records and packs. Where space
// was freed it sees to it that what the run needs has stayed.
func (u *run) catchUp(ctx context.Context) error {
	if u.x.w != nil {
		return nil // it was not
	}
	r := u.r
	if err := r.prepare(ctx, u.x); err != nil {
		return err
	}
	if collected, err := r.project.Collected(u.rec.ID); err != nil || !collected {
		return err
	}
	return r.history.Closure(u.rec.ID, history.Once(), func(p *history.Part) error {
		if p.Kind == history.Noted || p.Err == nil && (p.Object.IsZero() || r.store.Has(p.Object)) {
			return nil // what a command noted may be nothing of this store
		}
		return storeGone(r.project, "has lost "+cmp.Or(string(p.Path), "a tree"), p.Err)
	})
}
