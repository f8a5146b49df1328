package backup

import (
	"context"
	"errors"
	"time"

	"decree/backup/target"
)

// heldLock is the lock of a project's directory in a target that is held until all that a backup does there is done.
type heldLock struct {
	name    string // "": nobody has taken it yet
	release func() error
}

func (l *heldLock) end() {
	if l.release != nil {
		_ = l.release()
	}
}

// openPlace finds the project's directory and makes sure that nobody else writes there, where
// the target can.
func (o Options) openPlace(ctx context.Context) (*Place, func(), error) {
	return o.openPlaceOf(ctx, false)
}

// openStanding is openPlace for who works on generations: where none stands nothing is made, the lock neither.
func (o Options) openStanding(ctx context.Context) (*Place, func(), error) {
	return o.openPlaceOf(ctx, true)
}

func (o Options) openPlaceOf(ctx context.Context, standing bool) (*Place, func(), error) {
	p := o.Recorder.Project()
	find := func() (*Place, error) {
		place, err := FindOwn(ctx, o.Target, &p.Site, o.Where, o.Host)
		if err == nil {
			err = place.goneForWriter(&p.Site)
		}
		return place, err
	}
	place, err := find() // before anything is made there, the lock too
	if err != nil {
		return nil, nil, err
	}
	unlock := func() {}
	if standing && place.Manifest == nil {
		return place, unlock, nil
	}
	if l, ok := o.Target.(target.Locker); ok && (o.held == nil || o.held.name != place.Name) {
		release, err := o.lockIn(ctx, l, place.Name)
		if errors.Is(err, target.ErrLocked) { // it may be of a new project that is called alike
			return nil, nil, refused("repeat it when that has ended, or wait for it with --wait 5m", "%s/%s: another backup is under way there", o.Target, place.Name)
		}
		if err != nil {
			return nil, nil, err
		}
		unlock = func() { _ = release() }
		now, err := find() // it may have changed until the lock was ours
		if err == nil && now.Name != place.Name {
			err = faster(o.Target, place.Name)
		}
		if err != nil {
			unlock()
			return nil, nil, err
		}
		place = now
		if o.held != nil && o.held.name == "" {
			o.held.name, o.held.release, unlock = place.Name, release, func() {}
		}
	}
	place.noteWrites(&p.Site)
	if place.Apart != "" {
		o.Tell(place.Apart)
	}
	return place, unlock, nil
}

// lockIn locks a project's directory in the target, and waits for that as long as the command may.
func (o Options) lockIn(ctx context.Context, l target.Locker, name string) (func() error, error) {
	const pause = 20 * time.Millisecond
	left := o.Recorder.Wait()
	if o.under {
		left = 0
	}
	for ; ; left -= pause {
		release, err := l.Lock(ctx, name)
		if !errors.Is(err, target.ErrLocked) || left <= 0 {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(pause, left)):
		}
	}
}

// hold takes the lock of the project's directory in the target before the project's own lock, in the order in which a
// backup takes them: two commands that took them in different orders would wait for each other.
func (o Options) hold(ctx context.Context) error {
	o.Tell = func(string) {} // it is said when the directory is used
	_, _, err := o.openPlace(ctx)
	return err
}
