package cmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"decree/project"
	"decree/queue"
	"decree/recorder"
)

// processOptions are process's flags.
type processOptions struct {
	limit int
	routineFlags
}

func (s *session) processVerb() verb {
	o := processOptions{routineFlags: routineFlags{grace: 2 * time.Second, jobs: 1}}
	return verb{
		name: "process", category: messageCategory,
		usage: "process the waiting specs and messages, then end",
		about: `Takes the specs (specs/*.spec.md) that processed-spec.md does not list, in order of name, and then the messages in .decree/inbox, the oldest first. Each is done by its routine (.decree/routines/NAME.sh under bash, or NAME.ipynb) as a recorded run, tried up to max_attempts times. A message that is done goes to inbox/done; for one that fails for good every file is put back, and it goes to inbox/dead with the reason in NAME.error.txt. Either way the next one begins.

A routine leaves follow-ups by writing files into the directory $DECREE_OUTBOX, under any names, or by "decree send"; they join the chain of its message in natural order of their names, if its run succeeds, and come before older messages. Other commands can run between two messages. If the process dies, the next "process" or "daemon" takes the message up again: its files are put back, and the attempt counts.

With "isolated: true" in a message, in a comment at the head of its routine ("# isolated: true"; in a notebook a line of its first cell), or with "isolated.queue" in the config, the routine works in a layer of its own, as "decree run --isolated" does, and success publishes what it did; only then are its follow-ups and what it put into the inbox taken over. An attempt that fails leaves nothing to put back. One whose work cannot be published, because the tree has changed meanwhile, counts as failed; the next one begins with the tree as it is then, and $DECREE_FAILURE_CONTEXT tells it why. After the last one the message is dead, and its draft is left for you. Where something else keeps the work out of the tree, such as a file above capture.max_file there, a file to be changed that another program has open for writing, or a draft in which somebody works, that costs no attempt: the message keeps its place, "decree inbox" and "decree status" say why it waits, what else waits is done, and the publishing is tried again. So does one that cannot begin since no run can be isolated here, as where something is mounted below the root, or, done in the tree itself, since a file of the tree cannot be read or goes on changing; or whose routine is gone since the command began, as while "git stash -u" has it. What is written in .decree there, but for messages, stays in the layer and is named, and what is deleted there is gone with it. Who takes the message's file out of the inbox meanwhile keeps its work from being published.

--jobs N does up to N isolated messages at once, but of one chain never two. They are published one after the other, in the order in which they began where two are ready, behind one that makes its last attempt after it could not be published, and not before the end of a run that changes the tree itself. A message that is not isolated waits for the end of the others and is done alone, and those after it wait for it.

What the routines print goes to stdout and stderr (with --json all of it to stderr); with more than one job it is only in their records' routine.log. INT, TERM, HUP or QUIT ends the routine, puts its changes back and leaves the message in the inbox.`,
		examples: []example{
			{"decree process", "everything that is waiting"},
			{"decree process --limit 1", "the next one"},
			{"decree process --jobs 4", "four isolated messages at once"},
			{"decree process --json", "one JSON object on stdout for each message that has ended"},
		},
		exits: []exit{
			{"0", "all were done, or there was nothing to do"},
			{"1", "a message went to inbox/dead, the work of one cannot be published yet, its routine is gone, or decree itself failed"},
			{"128+n", "signal n ended it; the message is still in the inbox"},
		},
		flags:  s.writing(append([]cli.Flag{intFlag(&o.limit, "at most `N` messages (0: all)", "limit")}, o.flags()...)...),
		action: func(ctx context.Context) error { return s.process(ctx, o) },
	}
}

// routineFlags are the flags of what runs routines.
type routineFlags struct {
	timeout, grace time.Duration
	jobs           int
}

func (t *routineFlags) flags() []cli.Flag {
	return []cli.Flag{
		intFlag(&t.jobs, "process up to `N` messages at once, if they are isolated", "jobs", "j"),
		durationFlag(&t.timeout, "end an attempt that takes longer than `D` (30s, 20m); it counts as failed", "timeout"),
		durationFlag(&t.grace, "give processes `D` to end before they are killed", "grace"),
	}
}

func (t *routineFlags) check() error {
	if t.jobs < 1 {
		return usagef("--jobs %d: at least one is needed", t.jobs).Hintf("1 is the default")
	}
	return checkTimes(t.timeout, t.grace)
}

// checkTimes refuses durations below zero.
func checkTimes(d ...time.Duration) error {
	for _, t := range d {
		if t < 0 {
			return usagef("a negative duration").Hintf("give one like 30s or 5m")
		}
	}
	return nil
}

func (s *session) process(ctx context.Context, o processOptions) error {
	if o.limit < 0 {
		return usagef("--limit %d: not a number of messages", o.limit)
	}
	if err := o.check(); err != nil {
		return err
	}
	ctx, signals, stop := signalled(ctx, 1) // each signal goes to the routine, and the first ends the taking of messages
	defer stop()
	q, done, err := s.openQueue(ctx, queue.Options{Timeout: o.timeout, Grace: o.grace, Signals: signals, Jobs: o.jobs})
	if err != nil {
		return err
	}
	defer done()
	t := &tally{}
	var interrupted *queue.Result
	err = q.Work(ctx, queue.WorkOptions{Limit: o.limit, Wait: s.global.wait, Specs: true, Ended: func(res *queue.Result) {
		t.add(res)
		if res.Outcome == queue.Interrupted {
			interrupted = res
		}
	}})
	if err != nil {
		return s.stopped(ctx, err)
	}
	if interrupted != nil {
		s.code = interrupted.Run.ExitCode
		return nil
	}
	for _, name := range q.Writing() {
		s.note(quoteWord(name) + " is still being written, and was left in the inbox")
	}
	t.stuck = q.Stuck()
	lacking := q.Lacking()
	if lacking == nil || t.done+t.dead+t.stuck > 0 {
		s.tallied(t)
	}
	if lacking != nil {
		return lacking
	}
	if t.dead > 0 || t.stuck > 0 || q.Passed() > 0 {
		return errFound{project.Failed}
	}
	return nil
}

// stopped is an error of the queue; a signal between two messages is none.
func (s *session) stopped(ctx context.Context, err error) error {
	var sig *recorder.Interrupted
	switch {
	case errors.As(err, &sig), errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &sig):
		s.code = sig.ExitCode()
	case errors.Is(err, context.Canceled):
		s.code = 128 + int(syscall.SIGINT)
	default:
		return err
	}
	if state := project.StateOf(err); state != "" && state != project.NotStarted { // a run has ended, and what follows it has not
		s.say("decree: %v; 'decree process' goes on with it", err)
		return nil
	}
	s.say("decree: interrupted between two messages; nothing is under way")
	return nil
}

// signalled ends ctx at the first signal, which is its cause, and hands on the signals from the nth on.
func signalled(ctx context.Context, from int) (context.Context, <-chan os.Signal, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	in, out := make(chan os.Signal, 8), make(chan os.Signal, 8)
	stop := heed(in, endings...)
	over := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case sig := <-in:
				if n >= from {
					select {
					case out <- sig:
					default:
					}
				}
				cancel(&recorder.Interrupted{Signal: sig})
			case <-over:
				return
			}
		}
	}()
	return ctx, out, func() { stop(); close(over); cancel(nil) }
}

// openQueue opens the project's queue with what all its commands have in common.
// Routines that are not told otherwise have an empty stdin and print on ours.
func (s *session) openQueue(ctx context.Context, o queue.Options) (*queue.Queue, func(), error) {
	s.beside = o.Jobs > 1
	rec, err := s.forWriting(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s.queueOver(ctx, rec, o)
}

// queueOver is openQueue over a recorder that is open.
func (s *session) queueOver(ctx context.Context, rec *recorder.Recorder, o queue.Options) (*queue.Queue, func(), error) {
	o.Another = func() (*recorder.Recorder, error) { return recorder.Open(ctx, s.writer) }
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	o.Recorder, o.Clock, o.Location, o.Host, o.Environ = rec, s.env.Now, s.env.Location, s.env.Host, s.env.Environ
	o.Yes = s.global.yes
	if o.Stdin == nil {
		o.Stdin = null
	}
	switch {
	case o.Jobs > 1 && !o.Poll: // what several print at once is in their logs
		o.Stdout, o.Stderr = null, null
	case o.Poll: // a daemon
		o.Stdout, o.Stderr, o.Poll = null, null, s.env.get("DECREE_POLL") != ""
	case s.global.json:
		o.Stdout, o.Stderr = s.env.Stderr, s.env.Stderr
	default:
		o.Stdout, o.Stderr = s.env.Stdout, s.env.Stderr
	}
	if o.Tell == nil {
		o.Tell = s.messageHappened
	}
	return queue.Open(o), func() { null.Close() }, nil
}

// messageName is a word as a message's file name: with or without the suffix, or
// as a path into the inbox.
func messageName(word string) string {
	name := filepath.Base(word)
	if !strings.HasSuffix(name, ".md") {
		name += ".md"
	}
	return name
}
