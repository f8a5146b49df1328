package queue

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"decree/recorder"
)

// WorkOptions are for several messages. The zero value does all that waits, one by one.
type WorkOptions struct {
	Limit int           // at most so many messages; 0: all
	Wait  time.Duration // for the lock, until the first message; then it is waited for
	Specs bool          // the specs that are not processed come before the inbox
	// Ended is called with each message that has ended, one after the other.
	Ended func(*Result)
}

// Work does messages until none waits, up to Options.Jobs of them at once, until ctx ends; those
// under way are done to their ends. After one that a signal has interrupted, or an error,
// no other is begun.
func (q *Queue) Work(ctx context.Context, o WorkOptions) error {
	w := q.newWork(o)
	defer w.close()
	for w.wanted(ctx) {
		switch {
		case w.full() || w.idle && w.running > 0:
			w.over(<-w.ends)
		case w.idle:
			return nil
		default:
			w.begin(ctx)
		}
	}
	return w.finish(ctx)
}

// worker does several messages, each by a goroutine with a job of its own.
type worker struct {
	q       *Queue
	o       WorkOptions
	ends    chan jobEnd
	running int                  // goroutines that have not sent their ending
	begun   int                  // messages that have begun, or are being looked for
	idle    bool                 // nothing was found, and nothing has ended since
	stopped bool                 // a signal has interrupted one
	failed  error                // the first error
	held    string               // the record of the run that the last one of *inTreeError was about, and what was told of it
	free    []*recorder.Recorder // that no goroutine uses
	signals signals
}

// jobEnd is how a job has ended; without a result it found no message.
type jobEnd struct {
	job *job
	res *Result
	err error
}

func (q *Queue) newWork(o WorkOptions) *worker {
	w := &worker{q: q, o: o, ends: make(chan jobEnd), free: []*recorder.Recorder{q.o.Recorder}}
	w.signals.spread(q.o.Signals)
	return w
}

func (w *worker) wanted(ctx context.Context) bool {
	return w.failed == nil && !w.stopped && ctx.Err() == nil && (w.o.Limit == 0 || w.begun < w.o.Limit)
}

func (w *worker) full() bool { return w.running >= max(w.q.o.Jobs, 1) }

// begin looks for a message, and returns when its command works beside what comes, or when
// it has ended.
func (w *worker) begin(ctx context.Context) {
	rec, err := w.recorder()
	if err != nil {
		w.failed = err
		return
	}
	j := w.q.job(rec, w.signals.listen())
	working := make(chan struct{})
	j.working = sync.OnceFunc(func() { close(working) })
	wait := w.o.Wait
	if w.begun > 0 {
		wait = -1 // other commands are let in between, and waited for
	}
	w.begun++
	w.running++
	w.idle = false
	go func() {
		res, err := j.take(ctx, wait, Pick{Specs: w.o.Specs})
		w.ends <- jobEnd{j, res, err}
	}()
	for others := false; ; others = true {
		select {
		case <-working:
			return
		case e := <-w.ends:
			w.over(e)
			if e.job == j {
				w.idle = w.idle && !others // what has ended may have made room since it looked
				return
			}
		}
	}
}

// recorder is one that nobody uses.
func (w *worker) recorder() (*recorder.Recorder, error) {
	if n := len(w.free); n > 0 {
		rec := w.free[n-1]
		w.free = w.free[:n-1]
		return rec, nil
	}
	return w.q.o.Another()
}

// over takes note of an ending.
func (w *worker) over(e jobEnd) {
	w.running--
	w.idle = e.res == nil && e.err == nil
	w.free = append(w.free, e.job.rec)
	w.signals.leave(e.job.signals)
	if e.res == nil {
		w.begun--
	}
	w.failed = joinErrors(w.failed, e.err)
	if e.res != nil && e.res.Outcome != Waits {
		w.stopped = w.stopped || e.res.Outcome == Interrupted
		if w.o.Ended != nil {
			w.o.Ended(e.res)
		}
	}
}

// joinErrors joins two errors. Beside another error it leaves out that a context has ended, as after a signal.
func joinErrors(a, b error) error {
	switch {
	case a == nil || b != nil && errors.Is(a, context.Canceled):
		return b
	case b == nil || errors.Is(b, context.Canceled):
		return a
	}
	return errors.Join(a, b)
}

// finish waits for the ends of those under way. An error that is the end of ctx is ctx's.
func (w *worker) finish(ctx context.Context) error {
	for w.running > 0 {
		w.over(<-w.ends)
	}
	if w.failed == nil && !w.stopped {
		return ctx.Err()
	}
	return w.failed
}

// close lets go of what begin has opened. Nothing is running any more.
func (w *worker) close() {
	w.signals.stop()
	for _, rec := range w.free {
		if rec != w.q.o.Recorder {
			_ = rec.Close()
		}
	}
}

// signals gives each signal to all jobs, also to those that begin after it came.
type signals struct {
	mu   sync.Mutex
	seen []os.Signal
	to   []chan os.Signal
	done chan struct{}
}

// spread begins to read from a channel; nil: there are none.
func (s *signals) spread(from <-chan os.Signal) {
	s.done = make(chan struct{})
	go func() {
		for {
			select {
			case sig, ok := <-from:
				if !ok {
					return
				}
				s.mu.Lock()
				s.seen = append(s.seen, sig)
				for _, c := range s.to {
					send(c, sig)
				}
				s.mu.Unlock()
			case <-s.done:
				return
			}
		}
	}()
}

func (s *signals) stop() { close(s.done) }

// listen is a channel of a job's own.
func (s *signals) listen() <-chan os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan os.Signal, 8)
	for _, sig := range s.seen {
		send(c, sig)
	}
	s.to = append(s.to, c)
	return c
}

func (s *signals) leave(job <-chan os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = slices.DeleteFunc(s.to, func(c chan os.Signal) bool { return (<-chan os.Signal)(c) == job })
}

// send leaves out what nobody has read for long.
func send(c chan<- os.Signal, sig os.Signal) {
	select {
	case c <- sig:
	default:
	}
}
