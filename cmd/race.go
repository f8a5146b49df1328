package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// raceOptions are race's flags.
type raceOptions struct {
	runOptions
	candidates, jobs int
	judge            string
}

func (s *session) raceVerb() verb {
	o := raceOptions{runOptions: usualRun, jobs: runtime.GOMAXPROCS(0)}
	return verb{
		name: "race", category: draftCategory, args: "-n N [--] COMMAND [ARG...]", stops: true, words: commandWords, most: anyWords,
		missing: usagef("a command is missing").Hintf("for example 'decree race -n 3 -- ./agent.sh'"),
		usage:   "run a command several times at once, each in a layer of its own, and compare",
		about: `Runs COMMAND N times as "decree run --isolated" does, on the same tree, at most J at a time: several agents at one task, or one agent that is tried several times. The tree stays as it is. Each candidate works in a layer of its own, knows its number from $DECREE_CANDIDATE, has no terminal, and leaves a draft: NAME.1, NAME.2 and so on.

Nothing that the candidates print reaches the terminal. It goes to their logs: "decree show --log NAME.1" prints what one has printed, and "tail -f .decree/runs/ID/routine.log" follows one that works.

With --judge each candidate is judged once its command has ended: LINE is run by sh in the candidate's layer, with its environment, and exit status 0 means good. What the judge writes is no part of the draft; what it prints is kept ("decree show --judge NAME.1"), and the candidate's record says how it was judged. Without a judge a candidate is good if its command succeeds.

At the end a table tells of each candidate: its exit status, the judgement, how long the command took, how many files and lines it changed, and how many of these files others changed too. "decree diff NAME.1" shows a candidate's work, "decree publish NAME.1" brings it into the tree, "decree publish NAME.2 PATH" a part of it; what you do not want "decree discard" gives up. With --auto the best draft is published at once: a good one, of these the one with the fewest changed lines, of these the first.

A first Ctrl-C ends all commands, and what they have done so far stays as drafts: they get the signal, and --grace later they are killed, or with a second Ctrl-C at once.`,
		examples: []example{
			{"decree race -n 3 --judge 'make test' -- ./agent.sh", "three tries; those are good whose tests pass"},
			{"decree race -n 4 -j 2 --name fix --timeout 20m -- ./agent.sh", "two at a time; the drafts are fix.1 to fix.4"},
			{"decree race -n 3 --auto --judge 'make check' -- ./agent.sh", "publish the smallest good change"},
			{"decree race -n 2 -- sh -c './agent.sh model-$DECREE_CANDIDATE'", "something else for each candidate"},
		},
		exits: []exit{
			{"0", "a candidate was judged good, or, without a judge, succeeded"},
			{"1", "none was"},
			{"125", "decree itself failed or refused, or --auto could not publish; the message says in which state things are"},
			{"128+n", "decree got signal n"},
		},
		flags: slices.Concat([]cli.Flag{
			intFlag(&o.candidates, "run `N` candidates", "candidates", "n"),
			intFlag(&o.jobs, "at most `J` of them at a time (default: as many as there are processors)", "jobs", "j"),
			stringFlag(&o.isolation.Name, "call the drafts `NAME`.1, NAME.2 and so on (default: race, or race2 and so on where that is in use)", "name"),
			stringFlag(&o.judge, "judge each candidate by the exit status of `LINE`, which sh runs in its layer", "judge"),
			boolFlag(&o.isolation.Auto, "publish the best", "auto"),
		}, o.tryFlags(), []cli.Flag{
			stringFlag(&o.description, "`TEXT` that says what this is", "description", "d"),
			boolFlag(&o.isolation.Clone, "work in clones of the tree, at other paths", "clone"),
			boolFlag(&o.isolation.Copy, "work in full copies of the tree, at other paths", "copy"),
		}, o.limitFlags(), s.writing()),
		action: func(ctx context.Context) error { return s.race(ctx, o) },
	}
}

// mostCandidates bounds a slip of the keyboard: each candidate takes memory and disk.
const mostCandidates = 1000

func (o raceOptions) check() error {
	switch {
	case o.candidates == 0:
		return usagef("-n is missing: how many candidates?").Hintf("for example 'decree race -n 3 -- ./agent.sh'")
	case o.candidates < 0 || o.candidates > mostCandidates:
		return usagef("-n %d: not a number of candidates", o.candidates).Hintf("it is 1 to %d", mostCandidates)
	case o.jobs < 1:
		return usagef("-j %d: at least one candidate has to work", o.jobs).Hintf("leave it out for as many as there are processors")
	}
	return o.runOptions.check()
}

func (s *session) race(ctx context.Context, o raceOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	signals, stop := commandSignals()
	defer stop()
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	lanes := s.newLanes(o.judge != "")
	run := recorder.RunOptions{
		Args: s.words(), Dir: s.env.Cwd, Env: s.env.Environ, Signals: signals,
		Attempts: o.attempts, Delay: o.delay, Timeout: o.timeout, Grace: o.grace,
		Description: o.description, Yes: s.global.yes, Fence: o.fence.FenceMode, NoNet: o.noNet,
	}
	s.giveOutbox(rec, &run)
	result, err := rec.Race(ctx, recorder.RaceOptions{
		Run: run, Isolated: o.isolation, Candidates: o.candidates, Jobs: o.jobs, Judge: o.judge, Moved: lanes.moved,
	})
	lanes.close()
	if err != nil {
		return err
	}
	s.code = result.ExitCode
	for _, c := range result.Candidates {
		if c.Result == nil {
			continue
		}
		if err := s.passOn(rec, run, c.Result.Record, result.Published != nil && c == result.Best); err != nil {
			return err
		}
	}
	return s.tellRace(result, o.judge != "")
}

// tellRace prints how a race ended.
func (s *session) tellRace(result *recorder.RaceResult, judged bool) error {
	if s.global.json {
		labels, err := s.allLabels()
		if err != nil {
			return err
		}
		return s.printJSON(view.RaceOf(result, judged, labels))
	}
	s.meter.stop()
	if err := s.print(func(w io.Writer) error { return s.writeRace(w, result, judged) }); err != nil {
		return err
	}
	for _, c := range result.Candidates {
		if c.Err != nil {
			s.mind(c.Name + ": " + c.Err.Error())
		}
	}
	for _, n := range result.Notes {
		s.mind(n)
	}
	if result.Published != nil {
		return s.reportMove(moveReport{result: result.Published, did: "published", what: result.Best.Name})
	}
	s.sayNextOfRace(result)
	return nil
}

// mind tells of what went wrong, also to who asked for quiet.
func (s *session) mind(text string) {
	if s.global.events {
		s.say("%s", oneLine(text))
		return
	}
	fmt.Fprintf(s.env.Stderr, "decree race: %s\n", oneLine(text))
}

// writeRace is a race's table.
func (s *session) writeRace(w io.Writer, result *recorder.RaceResult, judged bool) error {
	p := s.paint(s.env.Stdout)
	t := s.fits(&table{}, s.env.Stdout)
	t.add("CANDIDATE", "EXIT", "JUDGE", "TIME", "FILES", "LINES", "SHARED")
	for _, c := range result.Candidates {
		if c.Result == nil {
			t.add(c.Name, "-", "-", "-", "-", "-", "-")
			continue
		}
		n, colour := c.Result.Record.Changes, red
		if c.Good(judged) {
			colour = green
		}
		t.add(p.in(colour, c.Name), strconv.Itoa(c.Result.ExitCode), cmp.Or(view.Judged(c.Result.Record), "-"), cmp.Or(took(c.Result.Record), span(c.Result.Last.Duration)),
			strconv.Itoa(n.Created+n.Modified+n.Deleted), fmt.Sprintf("+%d -%d", n.AddedLines, n.RemovedLines), strconv.Itoa(len(c.Shared)))
	}
	if err := t.write(w); err != nil {
		return err
	}
	return s.writeShared(w, result)
}

// writeShared names the first paths that several candidates changed.
func (s *session) writeShared(w io.Writer, result *recorder.RaceResult) error {
	by := map[tree.Path][]string{}
	var paths []tree.Path
	for _, c := range result.Candidates {
		for _, path := range c.Shared {
			if by[path] = append(by[path], c.Name); len(by[path]) == 1 {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	t := s.fits(&table{}, s.env.Stdout, 0)
	for _, path := range paths[:min(len(paths), summaryFiles)] {
		names := strings.Join(by[path], ", ")
		if n := len(by[path]); n > 2 && n == len(result.Candidates) {
			names = "all"
		}
		t.add("  "+shownPath(path), names)
	}
	if n := len(paths) - summaryFiles; n > 0 {
		t.add("  and " + count(n, "path") + " more")
	}
	fmt.Fprintln(w, "changed by several:")
	return t.write(w)
}

// sayNextOfRace says which commands come next.
func (s *session) sayNextOfRace(result *recorder.RaceResult) {
	var drafts []string
	for _, c := range result.Candidates {
		if c.Draft() {
			drafts = append(drafts, c.Name)
		}
	}
	if len(drafts) == 0 || s.global.events {
		return
	}
	one, bring := drafts[0], "bring it into the tree"
	if best := result.Best; best != nil {
		one, bring = best.Name, "bring the best into the tree: good, with the fewest changed lines"
	}
	next := []example{
		{"decree diff " + one, "see what it changed"},
		{"decree show --log " + one, "see what it printed"},
		{"decree publish " + one, bring},
		{"decree discard " + strings.Join(drafts, " "), "give up all of them"},
	}
	s.sayNext(next, 0)
}
