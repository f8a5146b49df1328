package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/history"
	"decree/plan"
	"decree/recorder"
	"decree/view"
)

// undoOptions are the flags of undo and redo.
type undoOptions struct{ list, merge, force, skip, dryRun bool }

func (s *session) undoFlags(o *undoOptions, own ...cli.Flag) []cli.Flag {
	return s.writing(append(own,
		boolFlag(&o.merge, "merge text files that were edited since, line by line", "merge"),
		boolFlag(&o.force, "overwrite what was edited since", "force"),
		boolFlag(&o.skip, "pass over records that edited paths, or those of another user, are in the way of", "skip"),
		boolFlag(&o.dryRun, "show what would be done, change nothing", "dry-run", "n"),
	)...)
}

var undoExits = []exit{
	{"0", "done, or nothing to do"},
	{"3", "no such path"},
	{"4", "edited since, fewer records than that, or not confirmed; nothing was changed"},
	{"5", "a record's changes.diff is not what was recorded, or a file did not come out as it should; nothing was changed"},
}

func (s *session) undoVerb() verb {
	var o undoOptions
	return verb{
		name: "undo", category: takeCategory, args: "[N] [PATH...]", words: pathWords, most: anyWords, interruptible: true,
		usage: "take back the newest change, then the one before it",
		about: `Takes back the newest record that changed the tree and stands, whatever made it: a run, a turn of a coding agent, a publish, an apply, a revert or a restore. Said again it takes back the one before it, and so on; "decree redo" walks the other way. With N it takes back so many at once, all or none, as one record.

As "decree revert" does, it touches only the paths of the records, and only where they still are what the record left. If any was edited since, nothing is changed and all of them are listed: with --merge text files are merged line by line, with --force the edits are overwritten (it asks first), with --skip such a record is passed over and the one before it is taken, also where another user's directory keeps its files from being moved. With PATHs only these paths are taken back, of the newest records that changed them.

What was done inside a run belongs to the run. A revert by hand is a change like others: it is undone first, and then what it took back. A record of which nothing is in the tree any more is passed over, which is said; so is one that a revert took back which is passed over itself or was removed from the history.

--list shows what undo and redo have before them and changes nothing: the number is the N that reaches a record, and - stands before one that is passed over.`,
		examples: []example{
			{"decree undo", "take back what was done last"},
			{"decree undo 3", "the last three changes at once"},
			{"decree undo --list", "what could be undone, and redone"},
			{"decree undo --dry-run", "only show what would be done, path by path"},
			{"decree undo src/", "the last change below src/, and nothing else of it"},
			{"decree undo --merge", "keep what you edited since"},
		},
		exits:  undoExits,
		flags:  s.undoFlags(&o, boolFlag(&o.list, "show what can be undone and redone; N is how many", "list", "l")),
		action: func(ctx context.Context) error { return s.undo(ctx, o, (*recorder.Recorder).Undo) },
	}
}

func (s *session) redoVerb() verb {
	var o undoOptions
	return verb{
		name: "redo", category: takeCategory, args: "[N] [PATH...]", words: pathWords, most: anyWords, interruptible: true,
		usage: "bring again what undo took back",
		about: `Brings again what the last undo took back, then what the one before it did, and so on; with N so many records at once. It is there until a new record changes the tree. What you edit meanwhile does not end it, but where the same paths were edited since the undo nothing is changed and they are listed: --merge, --force and --skip do what they do for "decree undo".

Where all that one undo took back is brought again, the files are what they were before that undo, also where it had merged or overwritten edits.`,
		examples: []example{
			{"decree redo", "bring again what was undone last"},
			{"decree redo 3", "the last three"},
			{"decree undo --list", "what could be redone"},
		},
		exits:  undoExits,
		flags:  s.undoFlags(&o),
		action: func(ctx context.Context) error { return s.undo(ctx, o, (*recorder.Recorder).Redo) },
	}
}

// walker is Undo or Redo of a recorder.
type walker func(*recorder.Recorder, context.Context, recorder.UndoOptions) (*recorder.MoveResult, error)

func (s *session) undo(ctx context.Context, o undoOptions, walk walker) error {
	n, words, err := s.howMany()
	if err != nil {
		return err
	}
	if o.merge && o.force {
		return usagef("--merge and --force cannot be used together").Hintf("--merge keeps what was edited since, --force does not")
	}
	if o.list {
		return s.listChain(n, words)
	}
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, words)
	if err != nil {
		return err
	}
	result, err := walk(rec, ctx, recorder.UndoOptions{
		N: n, Paths: paths, Merge: o.merge, Force: o.force, Skip: o.skip, DryRun: o.dryRun, Yes: s.global.yes, Confirm: s.confirmMove(ctx),
	})
	if err != nil {
		return err
	}
	return s.reportWalk(result, o.dryRun)
}

// howMany are the N of undo and redo, 0 where there is none, and the PATHs.
func (s *session) howMany() (n int, paths []string, err error) {
	words := s.words()
	if len(s.line.words) == 0 || strings.Trim(words[0], "0123456789") != "" {
		return 0, words, nil
	}
	if n, err = strconv.Atoi(words[0]); err != nil || n == 0 {
		return 0, nil, usagef("%s is no number of records", words[0]).Hintf("'decree %s 1' is one; a file of this name is './%s'", s.line.verb, words[0])
	}
	return n, words[1:], nil
}

// reportWalk is what undo and redo say when they are done.
func (s *session) reportWalk(result *recorder.MoveResult, dryRun bool) error {
	m := moveReport{result: result, dryRun: dryRun}
	if s.global.json {
		labels, err := s.allLabels()
		if err != nil {
			return err
		}
		return s.printJSON(view.WalkOf(result, dryRun, m.notes(), labels))
	}
	for _, p := range result.Passed {
		s.note(fmt.Sprintf("%s is passed over: %s", linkWords(p.Link), p.Why))
	}
	m.sayNotes(s)
	verb, did, next := "undo", "undid", "redo"
	if s.line.verb == "redo" {
		verb, did, next = "redo", "redid", "undo"
	}
	p := result.Plan
	switch {
	case len(result.Walked) == 0:
		s.tell("nothing to %s", verb)
		s.left(p)
		return nil
	case dryRun:
		did = "would " + verb
	}
	what := "no file had to be changed, as what they did cancels out"
	if !p.Empty() {
		what = planWords(p)
	} else if len(p.Stay) > 0 {
		what = "no file was changed"
	}
	s.tellWalked(result.Walked, did, what)
	if dryRun && len(result.Walked) > 1 && !p.Empty() {
		s.tell("all in all this would change %s:", pathsIn(p.Changes()))
	}
	s.left(p)
	if dryRun && !s.global.quiet {
		return s.writePlan(s.env.Stdout, p, 0)
	}
	if result.Record != nil {
		if n := len(result.Walked); n > 1 {
			next += " " + strconv.Itoa(n)
		}
		if verb == "redo" && slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Verdict == plan.Forced }) {
			next = "revert " + result.Record.ID // undo knows nothing of the edits that were overwritten
		}
		s.tell("this is record %s; 'decree %s' is the way back", result.Record.ID, next)
	}
	return nil
}

// tellWalked says which records were undone or redone, and what that did.
func (s *session) tellWalked(walked []history.Link, did, what string) {
	if len(walked) == 1 {
		s.tell("%s %s: %s", did, linkWords(walked[0]), what)
		return
	}
	s.tell("%s %s: %s", did, count(len(walked), "record"), what)
	for _, l := range walked {
		s.tell("  %s", linkWords(l))
	}
}

// linkWords name a record of the chain and say what it was: "run 2026112107015900-0 (make
// generate)".
func linkWords(l history.Link) string {
	if l.Record == nil {
		return "record " + l.ID
	}
	return fmt.Sprintf("%s %s (%s)", l.Record.Reason, l.ID, oneLine(recorder.LinkTitle(l)))
}

// mostLinks is how much of the chain is listed where no N says otherwise.
const mostLinks = 20

// listChain shows what undo and redo have before them.
func (s *session) listChain(n int, words []string) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, words)
	if err != nil {
		return err
	}
	chain, err := rec.ListChain(paths)
	if err != nil {
		return err
	}
	n = cmp.Or(n, mostLinks)
	more := max(0, len(chain.Undo)-n)
	chain.Undo, chain.Redo = chain.Undo[:len(chain.Undo)-more], chain.Redo[:min(n, len(chain.Redo))]
	if s.global.json {
		labels, err := s.allLabels()
		if err != nil {
			return err
		}
		return s.printJSON(view.ChainOf(chain, labels))
	}
	if len(chain.Undo)+len(chain.Redo) == 0 {
		s.say("nothing to undo, nothing to redo")
		return nil
	}
	return s.page(func(w io.Writer) error { return s.writeChain(w, chain, more) })
}

func (s *session) writeChain(w io.Writer, chain *history.Chain, more int) error {
	t := s.fits(&table{}, s.env.Stdout, 5)
	row := func(step string, l history.Link) {
		if l.Record == nil {
			t.add(step, s.shortID(l.ID), "", "", "", "the record was removed")
			return
		}
		t.add(step, s.shortID(l.ID), s.ago(l.Record.Started), string(l.Record.Reason), changesOf(l.Record), view.What(l.Record))
	}
	for i := len(chain.Redo) - 1; i >= 0; i-- {
		row(fmt.Sprintf("redo %d", i+1), chain.Redo[i])
	}
	i := 0
	for _, l := range chain.Undo {
		step := "-" // it is passed over: a revert that was removed from the history took it back
		if l.By == "" {
			i++
			step = fmt.Sprintf("undo %d", i)
		}
		row(step, l)
	}
	err := t.write(w)
	if err == nil && more > 0 {
		_, err = fmt.Fprintf(w, "and %d older ones\n", more)
	}
	return err
}
