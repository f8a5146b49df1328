package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
)

// runIsolated is run --isolated.
func (s *session) runIsolated(ctx context.Context, rec *recorder.Recorder, o recorder.RunOptions, i recorder.IsolatedOptions) error {
	result, err := rec.RunIsolated(ctx, o, i)
	if err != nil {
		return err
	}
	s.code = result.ExitCode
	s.summary(result)
	if p := result.Published; p != nil {
		return s.reportMove(moveReport{result: p, did: "published", what: nameOf(result.Record)})
	}
	return nil
}

// nextOfDraft are the commands that follow an isolated run.
func nextOfDraft(result *recorder.RunResult) []example {
	id := result.Record.ID
	if result.Published != nil {
		return nil
	}
	return []example{
		{"decree diff " + id, "see what it changed"},
		{"decree publish " + id, "bring it into the tree"},
		{"decree discard " + id, "give it up"},
	}
}

// nameOf is what a draft is called, or else its id.
func nameOf(rec *history.Record) string {
	if rec.Draft != nil && rec.Draft.Name != "" {
		return rec.Draft.Name
	}
	return rec.ID
}

func (s *session) draftsVerb() verb {
	return verb{
		name: "drafts", category: draftCategory, words: noWords,
		usage: "list the drafts that wait to be published",
		about: `Lists the work of isolated runs ("decree run --isolated") that is neither published nor discarded, newest first: id, name, time, status, command, and what it would change.

--json prints the whole records, as .decree/runs/<id>/run.json has them; "draft" says what became of each: its "state" is "waiting", or "partly" if only some of its paths are published.`,
		examples: []example{
			{"decree drafts", "what waits"},
		},
		exits:  []exit{{"0", "listed, even if there was nothing to list"}},
		flags:  s.reading(),
		action: s.drafts,
	}
}

func (s *session) drafts(context.Context) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	waiting, err := rec.WaitingDrafts()
	if err != nil {
		return err
	}
	if s.global.json {
		if waiting == nil {
			waiting = []*history.Record{}
		}
		return s.printJSON(waiting)
	}
	if len(waiting) == 0 {
		s.say("no drafts")
		return nil
	}
	return s.print(func(w io.Writer) error {
		var t table
		for _, r := range waiting {
			state := string(r.Status)
			if r.Draft.State == history.DraftPartly {
				state += ", published in part"
			}
			if r.Judge != nil {
				state += ", judged " + judgeWord(r.Judge)
			}
			t.add(s.shortID(r.ID), nameOf(r), r.Started.In(s.env.Location).Format("2006-01-02 15:04"), state, changesInWords(r.Changes), s.about(r))
		}
		return t.write(w)
	})
}

func (s *session) publishVerb() verb {
	var o moveOptions
	var withGit bool
	return verb{
		name: "publish", category: draftCategory, args: "[DRAFT] [PATH...]", words: refAndPathWords, most: anyWords, interruptible: true,
		usage: "bring the work of an isolated run into the tree",
		about: `Brings what an isolated run changed into the tree, all or nothing. Each path must still be as it was when the run began; if any was edited since, nothing is changed and all of them are listed. With --merge, text files that were edited since are merged line by line. With --force they are overwritten; it asks first, and what it overwrites is stored.

DRAFT is a record's id or the NAME of its run; without it the only draft that waits is meant. With PATHs only they, and what is below, are published, with -p the hunks that you say yes to, and the rest stays a draft. The publish is a record itself, with the tree before it: "decree revert last" takes it back, and the draft waits again.

What the run committed stays in the draft's layer. With --with-git it comes along: the objects, and then the branches and tags that the run has moved, and HEAD. If somebody has moved one of these meanwhile nothing is published. A revert takes back the files alone.`,
		examples: []example{
			{"decree publish", "the only draft"},
			{"decree publish try --dry-run", "only show what would be done"},
			{"decree publish try -p", "hunk by hunk"},
			{"decree publish try src/", "only what lies below src/"},
			{"decree publish try --with-git", "with the commits that it made"},
		},
		exits: []exit{
			{"0", "done, or nothing to do"},
			{"3", "no such draft, or several and none was named"},
			{"4", "edited since, or not confirmed; nothing was changed"},
			{"5", "a content is not what was recorded; nothing was changed"},
		},
		flags: s.writing([]cli.Flag{
			patchFlag(&o.patch),
			boolFlag(&o.merge, "merge text files that were edited since, line by line", "merge"),
			boolFlag(&o.force, "overwrite what was edited since", "force"),
			boolFlag(&withGit, "publish what the run committed, too", "with-git"),
			boolFlag(&o.dryRun, "show what would be done, change nothing", "dry-run", "n"),
		}...),
		action: func(ctx context.Context) error { return s.publish(ctx, o, withGit) },
	}
}

func (s *session) publish(ctx context.Context, o moveOptions, withGit bool) error {
	merging, err := o.merging()
	if err != nil {
		return err
	}
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	opt := recorder.PublishOptions{Merge: merging, Force: o.force, DryRun: o.dryRun, Yes: s.global.yes, WithGit: withGit}
	words := s.line.words
	if len(words) > 0 && (!s.line.dashed || len(words) > 1) {
		opt.Ref, words = words[0], words[1:]
	}
	if opt.Paths, err = s.inTree(rec.Project().Root, words); err != nil {
		return err
	}
	if withGit && (o.patch || len(opt.Paths) > 0) {
		return usagef("--with-git cannot be used with -p or PATHs").Hintf("a commit is of the whole tree")
	}
	if ask := s.confirmMove(ctx); ask != nil {
		opt.Confirm = func(p *plan.Plan) (bool, error) { return ask(p, nil) }
	}
	if opt.Choose, err = s.chooser(o.patch); err != nil {
		return err
	}
	result, err := rec.Publish(ctx, opt)
	if err != nil {
		return err
	}
	what := opt.Ref
	if what == "" && result.Record != nil {
		what = result.Record.Parent
	}
	return s.reportMove(moveReport{result: result, dryRun: o.dryRun, did: "published", what: what})
}

func (s *session) discardVerb() verb {
	return verb{
		name: "discard", category: draftCategory, args: "DRAFT...", words: refWords, most: anyWords,
		missing: usagef("a DRAFT is missing").Hintf("'decree drafts' lists them"),
		usage:   "give up the work of isolated runs",
		about:   `Gives up drafts: they can be published no more, and their layers are removed. Their records stay, with their diffs. It asks first; off a terminal it needs --yes.`,
		examples: []example{
			{"decree discard try", "give up the draft 'try'"},
		},
		exits:  []exit{{"0", "done"}, {"3", "no such draft"}, {"4", "no draft that waits, or not confirmed; nothing was changed"}},
		flags:  s.writing(),
		action: s.discard,
	}
}

func (s *session) discard(ctx context.Context) error {
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	if err := s.confirmDiscard(); err != nil {
		return err
	}
	gone, err := rec.Discard(ctx, s.line.words)
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printJSON(gone)
	}
	for _, r := range gone {
		s.tell("discarded %s; its record stays", nameOf(r))
	}
	return nil
}

func (s *session) confirmDiscard() error {
	what := count(len(s.line.words), "draft")
	switch {
	case s.global.yes:
		return nil
	case !s.canAsk():
		return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "this gives up work that was never published, and there is no terminal to ask on", Advice: "repeat it with --yes"}
	case s.ask(fmt.Sprintf("give up %s for good? [y/N]", what), 'n') != 'y':
		return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "not confirmed"}
	}
	return nil
}

// about is what a draft's run was: its description, or its command.
func (s *session) about(r *history.Record) string {
	if r.Description != "" {
		return oneLine(r.Description)
	}
	return oneLine(strings.Join(r.Command, " "))
}
