package recorder

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/tree"
)

// What somebody edits while an isolated run works is known from before the edit where the run's
// process has looked there first: beside the command it walks what the stat cache has of the
// tree, once, and reads nothing. Who publishes, or moves files otherwise, waits for that, so that a walk that
// has not ended when the run has the lock again is needed no more.

// openSights opens the cache before the layer is made: what it has is older. A publish beside the
// run changes directories, and what stood in these is known from the cache alone. The tree is captured where messages are done beside each other
// and that knows nothing, and where times are too coarse to tell what was changed before the command from what is changed beside it, so that contents
// decide.
func (u *isolatedRun) openSights(ctx context.Context) (err error) {
	if err := u.reopenSights(); err != nil {
		return err
	}
	coarse := u.place.Coarse()
	if !coarse && (!u.i.Queued || !u.r.opt.Beside || !u.sights.Blind()) {
		return nil
	}
	if err := u.r.captureForRuns(ctx, u.x); err != nil {
		return ctx.Err() // what cannot be captured keeps no isolated run from working
	}
	if err = u.reopenSights(); err == nil && coarse {
		u.sights.Recall()
	}
	return err
}

// awaitTick waits where files were moved just now: what was moved in the tick of the file system's clock in which the layer is made would count as
// changed by somebody since.
func (u *isolatedRun) awaitTick() error {
	var moved time.Time
	asked := 0
	err := u.r.history.Newest(func(rec *history.Record) bool {
		isOver := rec.Isolated == "" && rec.Status != history.StatusOpen
		if isOver {
			moved = rec.Ended
		}
		asked++
		return !isOver && asked < mostAsked
	})
	time.Sleep(min(moved.Sub(u.r.opt.Clock())+2*disk.FineTick, 2*disk.FineTick))
	return err
}

// mostAsked is how many records awaitTick looks at: after so many the last move is long over.
const mostAsked = 100

// captureForRuns has the stat cache know the tree as it is, for the isolated runs that begin later.
func (r *Recorder) captureForRuns(ctx context.Context, x *writeSession) error {
	res, err := r.observe(ctx, x, captureOptions{phase: "recording", unlimited: true, skipUnreadable: true})
	if err == nil {
		err = errors.Join(r.keep(x, res), res.Close())
	}
	return err
}

func (u *isolatedRun) reopenSights() (err error) {
	if u.sights != nil {
		_ = u.sights.Close()
	}
	u.sights, err = capture.OpenSightings(u.r.project.Dir, u.r.project.Store)
	return err
}

// lookBeside gives what begins the walk, and what ends it once the run has the lock again.
func (u *isolatedRun) lookBeside(ctx context.Context) (begin func() error, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var walk sync.WaitGroup
	var err error
	begin = func() error {
		done, lerr := u.layer.Look()
		if lerr != nil {
			return lerr
		}
		walk.Go(func() {
			err = errors.Join(u.sights.Look(ctx, u.layer.Settled()), done())
			if u.r.looked != nil {
				u.r.looked()
			}
		})
		return nil
	}
	return begin, func() {
		cancel()
		if walk.Wait(); err != nil {
			u.say("what is edited beside the command may have no base, as the tree could not be looked at: %v", err)
		}
	}
}

// maxLook is how long who changes the tree waits for a run that looks at it: one that was stopped looks for ever.
const maxLook = 10 * time.Second

// awaitLooks waits until no isolated run that has just begun looks at the tree. What cannot be asked is not waited for: then the
// run may take what is changed now for an edit beside it.
func (r *Recorder) awaitLooks(ctx context.Context) {
	now, err := r.currentActivity() // of a lock that is held for several operations some have begun since
	if err != nil || !slices.ContainsFunc(now.leases, func(l project.Lease) bool { return l.Holder.Isolated }) {
		return
	}
	ctx, end := context.WithTimeout(ctx, maxLook)
	defer end()
	_ = r.eachLayer(func(place *layer.Place, name string) error {
		if !now.live(name) {
			return nil
		}
		if l, err := place.Open(name); err == nil {
			l.AwaitLook(ctx)
			l.Close()
		}
		return nil
	})
}

// seenBefore is the entry that path had when the run began, if a capture beside the command saw it. The store has its content.
func (u *isolatedRun) seenBefore(path tree.Path) (*tree.Entry, bool) {
	if u.sights == nil {
		return nil, false
	}
	e, known := u.sights.Was(path)
	if e == nil || e.Type == tree.Dir {
		return e, known
	}
	if e.Type == tree.Symlink { // captures do not store what a link that they know points to
		_, err := u.x.w.PutBytes([]byte(e.Target))
		return e, err == nil
	}
	return e, u.r.store.Has(e.SHA256)
}

// isUnchanged says whether path is known to be as it was when the run began, though its times lie in the future.
func (u *isolatedRun) isUnchanged(path tree.Path) bool {
	return u.sights != nil && u.sights.Stands(path, u.layer.Settled())
}

// standsFrom tells what is as it was when a run began; nil knows nothing.
type standsFrom func(path tree.Path) bool

// basesFrom tells what a path was when a run began; nil knows nothing.
type basesFrom func(path tree.Path) (was *tree.Entry, known bool)
