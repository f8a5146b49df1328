package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"decree/project"
	"decree/queue"
	"decree/recorder"
)

// runFailed is run's exit status when decree itself failed or refused: all
// others may be the command's.
const runFailed = 125

// runOptions are run's flags.
type runOptions struct {
	attempts              int
	delay, timeout, grace time.Duration
	keep                  bool
	label, description    string
	skipUnreadable, full  bool
	message, idFile       string
	isolated, inPlace     bool
	isolation             recorder.IsolatedOptions
	fence                 fenceMode
	noNet                 bool
}

func skipUnreadableFlag(dst *bool) cli.Flag {
	return boolFlag(dst, "go on when a file cannot be read, and list it in the record as unrecorded", "skip-unreadable")
}

func fullFlag(dst *bool) cli.Flag {
	return boolFlag(dst, "hash every file again instead of trusting unchanged times and sizes", "full")
}

var usualRun = runOptions{attempts: 1, grace: 2 * time.Second}

// tryFlags say how often and how long a command is tried.
func (o *runOptions) tryFlags() []cli.Flag {
	return []cli.Flag{
		intFlag(&o.attempts, "try up to `N` times in all", "attempts"),
		durationFlag(&o.delay, "wait `D` (30s, 5m) between attempts", "delay"),
		durationFlag(&o.timeout, "end an attempt that takes longer than `D`; it counts as failed", "timeout"),
		durationFlag(&o.grace, "give processes `D` to end before they are killed", "grace"),
	}
}

// limitFlags say what a command is kept from.
func (o *runOptions) limitFlags() []cli.Flag {
	return []cli.Flag{
		fenceFlag(&o.fence),
		boolFlag(&o.noNet, "keep COMMAND from the network, but for a localhost of its own; refuse where the system does not let decree", "no-net"),
	}
}

func (s *session) runVerb() verb {
	o := usualRun
	return verb{
		name: "run", category: recordCategory, args: "[--] COMMAND [ARG...] | -m NAME", stops: true, words: commandWords, most: anyWords,
		usage: "record a command; put its changes back if it fails",
		about: `Records the tree, runs COMMAND in the directory you are in, and writes what it changed to .decree/runs/<id>/changes.diff. If the command succeeds its changes stay. If it fails every file is put back as it was, and the diff is kept: "decree apply ID" brings the work back. On a terminal decree asks before it puts anything back.

Everything from the first word that is not a flag, or after "--", is the command's. No shell is started; if you need one, use 'decree run -- sh -c "a | b"'. A summary is printed on stderr; stdout carries only the command's output.

With --attempts N a failing command is tried again: each attempt sees the changes of the one before, but the last one starts from the recorded tree, with an account of the failures in $DECREE_FAILURE_CONTEXT.

While COMMAND runs, "decree checkpoint", "label", "send" and all that only looks work beside it; what moves files ("revert", "apply", "restore", another "run") waits with --wait, or is refused. Inside COMMAND every decree command works: what it does is a part of this run, in its diff, and is taken back with it; its records say so. A "decree run" inside that fails goes back to its own start.

With --isolated COMMAND sees the same tree, at the same path, but what it writes goes to a private layer: the tree stays as it is, whether COMMAND succeeds or fails, until "decree publish" brings the work in. Until then it is a draft, a record like any other to "diff", "show" and "log". Several isolated runs can go on at once. Of several attempts the last starts in a fresh layer. A decree inside COMMAND looks at the project's records; from the first "checkpoint" or "run" on it has records of its own, in the layer, which go with it. Without namespaces of its own COMMAND works in a clone of the tree at another path, or not at all. With "isolated: always" in the config every run is isolated but one with --in-place.

With --fence COMMAND can write only below the root, in the temporary directory, and in the places that fence.write of the config names, among them the caches of common tools; it reads what it likes. With --no-net it has no network but a localhost of its own. Both need no privilege, hold for all that COMMAND starts, and keep accidents in, not attackers; set-user-ID programs such as sudo gain nothing under them. "decree doctor" says whether they work here.

With -m NAME there is no COMMAND: one message of .decree/inbox is processed by its routine at once, as "decree process" would do it, with max_attempts from the config. The exit status is the routine's.`,
		examples: []example{
			{"decree run -- make generate", "record a build"},
			{"decree run --keep -d 'try the new linter' -- golangci-lint run --fix", "keep the changes even if it fails"},
			{"decree run --attempts 3 --timeout 20m -- ./agent.sh", "three tries of at most twenty minutes each"},
			{"decree run --isolated --name spike -- ./agent.sh", "the tree stays as it is; 'decree publish spike' brings the work in"},
			{"decree run --isolated --fence --no-net -- ./agent.sh", "and it can neither write elsewhere nor reach the network"},
			{"decree run -m fix-login", "process the message .decree/inbox/fix-login.md now"},
			{"decree run --id-file id.txt -- make && decree show \"$(cat id.txt)\"", "a script finds its record again"},
			{"decree run vim notes.txt", "an interactive program works as without decree"},
		},
		exits: []exit{
			{"n", "the command's own exit status"},
			{"128+n", "signal n ended the command, or decree got it"},
			{"124", "the command took longer than --timeout"},
			{"125", "decree itself failed or refused; the message says in which state the tree is"},
			{"126", "the command could not be executed"},
			{"127", "the command was not found"},
		},
		flags: slices.Concat(o.tryFlags(), []cli.Flag{
			boolFlag(&o.keep, "keep the changes of a failed command", "keep"),
			stringFlag(&o.label, "give the record the label `L`", "label"),
			stringFlag(&o.description, "`TEXT` that says what this is", "description", "d"),
			stringFlag(&o.message, "process the message `NAME` from the inbox instead of running a COMMAND", "message", "m"),
			stringFlag(&o.idFile, "write the record's id into `FILE` before the command is started", "id-file"),
			skipUnreadableFlag(&o.skipUnreadable), fullFlag(&o.full),
			boolFlag(&o.isolated, "run COMMAND in a layer of its own: the tree stays as it is until \"decree publish\"", "isolated"),
			boolFlag(&o.inPlace, "change the tree itself, also where the config says that runs are isolated", "in-place"),
			stringFlag(&o.isolation.Name, "with --isolated: call the draft `NAME`", "name"),
			boolFlag(&o.isolation.Auto, "with --isolated: publish if the command succeeds", "auto"),
			boolFlag(&o.isolation.Clone, "with --isolated: work in a clone of the tree, at another path", "clone"),
			boolFlag(&o.isolation.Copy, "with --isolated: work in a full copy of the tree, at another path", "copy"),
		}, o.limitFlags(), []cli.Flag{s.eventsFlag(), s.yesFlag(), s.waitFlag(), s.rootFlag(), s.quietFlag()}),
		action: func(ctx context.Context) error { return s.run(ctx, o) },
	}
}

// check refuses flags that make no sense.
func (o runOptions) check() error {
	if o.attempts < 1 {
		return usagef("--attempts %d: at least one attempt is needed", o.attempts).Hintf("1 is the default")
	}
	if o.isolated && o.inPlace {
		return usagef("--isolated and --in-place cannot be used together").Hintf("--isolated leaves the tree as it is, --in-place changes it")
	}
	return checkTimes(o.delay, o.timeout, o.grace)
}

// isolate has the run isolated where the config says so, and refuses the flags of an isolated
// run in place.
func (o *runOptions) isolate(config project.Isolation) error {
	flagged := o.isolation != recorder.IsolatedOptions{}
	if !o.isolated && !o.inPlace && config.Always {
		o.isolated, o.isolation.ByConfig = true, true
	}
	if !o.isolated && flagged {
		return usagef("--name, --auto, --clone and --copy need --isolated")
	}
	return o.check()
}

func (s *session) run(ctx context.Context, o runOptions) error {
	command := s.words()
	if o.message != "" {
		return s.runMessage(ctx, o, command)
	}
	if len(command) == 0 {
		return usagef("a command is missing").Hintf("for example 'decree run -- make generate'")
	}
	if err := o.check(); err != nil {
		return err
	}
	signals, stop := commandSignals()
	defer stop()
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	s.noteLeftOut(ctx, rec.Reader)
	if err := o.isolate(rec.Project().Config.Isolated); err != nil {
		return err
	}
	options := recorder.RunOptions{
		Args: command, Dir: s.env.Cwd,
		Stdin: s.env.Stdin, Stdout: s.env.Stdout, Stderr: s.env.Stderr, Env: s.env.Environ,
		Attempts: o.attempts, Delay: o.delay, Timeout: o.timeout, Grace: o.grace,
		Keep: o.keep, Label: o.label, Description: o.description,
		SkipUnreadable: o.skipUnreadable, Full: o.full, Yes: s.global.yes,
		Signals: signals, Fence: o.fence.FenceMode, NoNet: o.noNet,
	}
	s.giveOutbox(rec, &options)
	if o.idFile != "" {
		options.Named = func(id string) error { return writeID(s.absolute(o.idFile), id) }
	}
	if s.canAsk() && !s.global.yes {
		options.Confirm = s.confirmPutBack
	}
	if o.isolated {
		return s.runIsolated(ctx, rec, options, o.isolation)
	}
	result, err := rec.Run(ctx, options)
	if s.allowed(err, "record it anyway? [y/N]") {
		options.Yes = true
		result, err = rec.Run(ctx, options)
	}
	if err != nil {
		return err
	}
	s.code = result.ExitCode
	s.summary(result)
	return s.passOn(rec, options, result.Record, result.ExitCode == 0)
}

// writeID writes the id of a run that begins; of one that does not, no file is left.
func writeID(path, id string) error {
	if id == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(path, []byte(id+"\n"), 0o644)
}

// runMessage is run -m: one message, at once.
func (s *session) runMessage(ctx context.Context, o runOptions, words []string) error {
	switch {
	case len(words) > 0:
		return usagef("-m cannot be combined with a COMMAND: unexpected argument %s", quoteWord(words[0])).Hintf("a message is done by its routine")
	case o.attempts != 1 || o.delay != 0 || o.keep || o.label != "" || o.description != "" || o.idFile != "" || o.skipUnreadable || o.full || o.noNet || o.fence.FenceMode != recorder.NoFence:
		return usagef("-m can be combined only with --timeout and --grace").Hintf("max_attempts in .decree/config.yml says how often a message is tried")
	}
	if o.isolated || o.inPlace || o.isolation != (recorder.IsolatedOptions{}) {
		return usagef("-m cannot be combined with --isolated, --in-place, --name, --auto, --clone or --copy").Hintf(
			"'isolated: true' or 'isolated: false' in the message or at the head of its routine says so")
	}
	if err := checkTimes(o.timeout, o.grace); err != nil {
		return err
	}
	ctx, signals, stop := signalled(ctx, 1)
	defer stop()
	q, done, err := s.openQueue(ctx, queue.Options{Timeout: o.timeout, Grace: o.grace, Signals: signals, Stdin: s.env.Stdin})
	if err != nil {
		return err
	}
	defer done()
	res, err := q.Next(ctx, s.global.wait, queue.Pick{Name: messageName(o.message)})
	switch {
	case err != nil:
		return s.stopped(ctx, err)
	case res.Run != nil:
		s.code = res.Run.ExitCode
		if s.code == 0 && res.Outcome == queue.Dead { // it could not be published
			s.code = runFailed
		}
	case res.Record != nil && res.Record.ExitCode != nil: // another process had made the run
		s.code = *res.Record.ExitCode
	case res.Outcome != queue.Done:
		s.code = runFailed
	}
	return nil
}
