package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"decree/disk"
	"decree/project"
)

const (
	daemonDir  = "daemon"
	holderFile = "holder.json"
	// shortPause is the wait for a file that is still being written.
	shortPause = 100 * time.Millisecond
	// dyingWait is how long the lock of a daemon that was killed is waited for.
	dyingWait = time.Second
)

// ServeOptions are a daemon's.
type ServeOptions struct {
	Interval    time.Duration // of polling, and of looking at the cron jobs
	CommandLine []string      // of this process, for the message to a second one
	// Ready is called once the inbox was looked at and nothing found first that can be done: nothing but so many messages that
	// could not be gone on with yet.
	Ready func(stuck int)
	// Beside, if any, is called once this is the tree's one daemon, and goes on until ctx ends.
	Beside func(ctx context.Context)
}

// Serve does messages as they come, until ctx ends; the message under way is
// done to its end. An error means that decree itself failed: what is under way is
// as Next says.
//
// The system's file events wake it. They are only a hint: at every interval it
// looks by itself, so it works where there are none (a network's file system, no
// watch left), and after the inbox was deleted and made again.
func (q *Queue) Serve(ctx context.Context, o ServeOptions) error {
	if err := cmp.Or(RefuseInLayer(q.project()), q.project().HeldBack()); err != nil {
		return err
	}
	unlock, err := q.aloneAnyway(ctx, o)
	if err != nil {
		return err
	}
	defer unlock()
	q.serving = true
	// The directories are there before anybody looks at them.
	if err := q.prepare(ctx); err != nil {
		return ended(ctx, err)
	}
	jobs := newCron(q, func(text string) { q.note("%s", text) })
	var group sync.WaitGroup
	defer group.Wait()
	within, stop := context.WithCancel(ctx)
	defer stop()
	group.Go(func() { jobs.serve(within, o.Interval) })
	if o.Beside != nil {
		group.Go(func() { o.Beside(within) })
	}

	in := newWatch(q.o.Poll)
	defer in.close()
	w := q.newWork(WorkOptions{Wait: -1})
	defer w.close()
	for w.wanted(ctx) {
		if err := cmp.Or(q.project().AtItsPath(), q.project().HeldBack()); err != nil { // a restore may have come beside it
			w.failed = err
			break
		}
		in.on(filepath.Join(q.project().Root, ".decree", project.InboxDir)) // before the look, so that nothing falls in between
		switch {
		case w.full():
			w.over(<-w.ends)
		case !w.idle:
			w.begin(ctx)
			if w.triesAgainLater() {
				w.await(ctx, nil, o.Interval)
			} else if w.idle && len(q.Writing()) > 0 {
				w.await(ctx, nil, min(shortPause, o.Interval))
			} else if w.idle && q.anything(w.running) {
				w.await(ctx, nil, o.Interval) // nothing of it can be taken now
			}
		case q.anything(w.running), q.triesAgain():
			w.idle = false
		default:
			if o.Ready != nil && w.running == 0 {
				o.Ready(q.Stuck())
				o.Ready = nil
			}
			if err := q.inboxAgain(ctx, w.running); err != nil {
				w.failed = ended(ctx, err)
				break
			}
			w.await(ctx, in, o.Interval)
		}
	}
	return ended(ctx, w.finish(ctx))
}

// inboxAgain makes an inbox that somebody has deleted while nothing is done: what cron fires has to lie somewhere. Beside a message it may be
// its routine that moves it away and back.
func (q *Queue) inboxAgain(ctx context.Context, running int) error {
	_, err := os.Lstat(filepath.Join(q.project().Root, ".decree", project.InboxDir))
	if running > 0 || !isMissing(err) {
		return nil
	}
	return q.prepare(ctx)
}

// aloneAnyway is alone, also where something else is in the lock's place: whoever has the project's
// lock moves that away.
func (q *Queue) aloneAnyway(ctx context.Context, o ServeOptions) (unlock func(), err error) {
	unlock, err = q.alone(o)
	if !disk.OtherKind(err) {
		return unlock, err
	}
	if err := q.prepare(ctx); err != nil {
		return nil, ended(ctx, err)
	}
	return q.alone(o)
}

// ended is nil when it was the end of ctx that err is about.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// prepare makes the inbox's directories.
func (q *Queue) prepare(ctx context.Context) error {
	j := q.job(q.o.Recorder, nil)
	for {
		err := j.hold(ctx, lockPause, false, func() error {
			d, err := j.open()
			if err == nil {
				d.close()
			}
			return err
		})
		if _, ok := errors.AsType[*project.HeldError](err); !ok {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// anything says without the lock whether there is a message to look at beside those that
// are being done, and those that cannot be gone on with yet.
func (q *Queue) anything(running int) bool {
	list, err := Waiting(&q.project().Site, "")
	waiting := q.areStuck(list)
	list = slices.DeleteFunc(list, func(p Pending) bool { return slices.Contains(waiting, p.Name) })
	return err != nil || len(list) > running
}

// alone makes this process the tree's one daemon: by flock on a directory of the
// store, which ends with the process.
func (q *Queue) alone(o ServeOptions) (func(), error) {
	dir, err := makeDir(q.project().Store, daemonDir, project.PrivateDir)
	if err != nil {
		return nil, err
	}
	// A child that a killed daemon was just starting holds its lock until it is
	// another program: an instant, on a busy machine a long one.
	release, err := disk.LockWithin(context.Background(), dir, shortPause, dyingWait)
	if errors.Is(err, disk.ErrLocked) {
		defer dir.Close()
		return nil, heldBy(dir)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	holder := project.Holder{PID: os.Getpid(), Host: q.o.Host, Start: q.o.Clock(), Command: o.CommandLine}
	if err := project.ReplaceJSON(dir, holderFile, holder, project.PrivateFile, false); err != nil {
		_ = release()
		dir.Close()
		return nil, err
	}
	return func() {
		_ = dir.Remove(holderFile)
		_ = release()
		dir.Close()
	}, nil
}

// Daemon is the process that is the tree's daemon, zero where there is none. It
// takes no lock that lasts, and makes nothing.
func Daemon(p *project.Site) project.Holder {
	dir, err := p.Store.OpenDir(daemonDir)
	if err != nil {
		return project.Holder{}
	}
	defer dir.Close()
	if locked, _ := dir.Locked(); !locked {
		return project.Holder{}
	}
	return holder(dir)
}

// holder is what the daemon has written down of itself.
func holder(dir disk.Dir) (h project.Holder) {
	if data, err := project.ReadFile(dir, holderFile, maxState); err != nil || json.Unmarshal(data, &h) != nil {
		return project.Holder{}
	}
	return h
}

// heldBy says who is the daemon.
func heldBy(dir disk.Dir) error {
	text := "a daemon is already running on this tree"
	if h := holder(dir); h.PID != 0 {
		text += fmt.Sprintf(": process %d on %s since %s", h.PID, h.Host, h.Start.Format(time.RFC3339))
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: text, Advice: "it processes what arrives in the inbox; end it with TERM to start another one"}
}

// watch wakes when something comes into a directory. Without file events it only
// lets time pass.
type watch struct {
	w    *fsnotify.Watcher
	path string
	seen os.FileInfo
}

func newWatch(poll bool) *watch {
	if poll {
		return &watch{}
	}
	w, err := fsnotify.NewWatcher()
	if err != nil { // no watch left for this user: polling does
		return &watch{}
	}
	return &watch{w: w}
}

func (w *watch) close() {
	if w.w != nil {
		_ = w.w.Close()
	}
}

// on watches the directory that is at path now.
func (w *watch) on(path string) {
	if w.w == nil {
		return
	}
	now, err := os.Lstat(path)
	if err != nil || w.seen != nil && os.SameFile(w.seen, now) {
		return
	}
	if w.path != "" {
		_ = w.w.Remove(w.path)
	}
	if w.w.Add(path) == nil {
		w.path, w.seen = path, now
	}
}

// events are what wakes; nil: nothing does.
func (w *watch) events() (<-chan fsnotify.Event, <-chan error) {
	if w == nil || w.w == nil {
		return nil, nil
	}
	return w.w.Events, w.w.Errors
}

// await returns after d, when ctx ends, when a message has ended, and at an event of in, if
// one is given.
func (w *worker) await(ctx context.Context, in *watch, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	events, failures := in.events()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case e := <-w.ends:
		w.over(e)
	case <-events:
	case <-failures: //nolint:errcheck // an overflow, or what polling makes up for
	}
}
