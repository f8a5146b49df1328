package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// runIsolated is run --isolated.
func (s *session) runIsolated(ctx context.Context, rec *recorder.Recorder, o recorder.RunOptions, i recorder.IsolatedOptions) error {
	result, err := rec.RunIsolated(ctx, o, i)
	if err != nil {
		return err
	}
	s.code = result.ExitCode
	s.summary(result)
	if err := s.passOn(rec, o, result.Record, result.ExitCode == 0); err != nil {
		return err
	}
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
		about: `Lists the work of isolated runs ("decree run --isolated") that is neither published nor discarded, newest first: id, name, age, status, what it would change, how its run was isolated and what its layer takes, command. Then, for each, the paths that somebody has changed since its run began: with them a publish would be refused now.

A draft waits until it is published or discarded. Its layer, in which "decree enter" works on, goes before: see isolated.keep and isolated.max_age in "decree help config". A draft can be published without.

--json prints the records, as .decree/runs/<id>/run.json has them, with "conflicts", a list of "path" and "reason", and "layer_bytes", null where the layer is gone; "draft" says what became of each: its "state" is "waiting", or "partly" if only a part of it is published.`,
		examples: []example{
			{"decree drafts", "what waits"},
			{"decree drafts --json", "for programs"},
		},
		exits:  []exit{{"0", "listed, even if there was nothing to list"}},
		flags:  s.reading(),
		action: s.drafts,
	}
}

func (s *session) drafts(ctx context.Context) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	waiting, err := rec.WaitingDraftsNow(ctx)
	if err != nil {
		return err
	}
	if s.global.json {
		labels, err := s.allLabels()
		if err != nil {
			return err
		}
		return s.printJSON(view.WaitingDrafts(waiting, labels))
	}
	if len(waiting) == 0 {
		s.say("no drafts")
		return nil
	}
	return s.print(func(w io.Writer) error { return s.writeDrafts(w, waiting) })
}

// writeDrafts lists drafts, and what stands in the way of each.
func (s *session) writeDrafts(w io.Writer, waiting []recorder.WaitingDraft) error {
	t := s.fits(&table{}, s.env.Stdout, 6)
	for _, d := range waiting {
		state := string(d.Status)
		if d.Draft.State == history.DraftPartly {
			state += ", published in part"
		}
		if d.Judge != nil {
			state += ", judged " + view.Judged(d.Record)
		}
		layer := "no layer"
		if d.Layer >= 0 {
			layer = d.Isolated + ", " + size(d.Layer)
		}
		t.add(s.shortID(d.ID), cmp.Or(d.Draft.Name, "-"), s.ago(d.Started), state, changesInWords(d.Changes), layer, view.What(d.Record))
	}
	if err := t.write(w); err != nil {
		return err
	}
	for _, d := range waiting {
		if err := s.writeInTheWay(w, d); err != nil {
			return err
		}
	}
	return nil
}

// mostInTheWay is how many paths are listed that keep a draft from being published.
const mostInTheWay = 10

func (s *session) writeInTheWay(w io.Writer, d recorder.WaitingDraft) error {
	switch {
	case d.Unknown != nil:
		_, err := fmt.Fprintf(w, "\n%s cannot be compared with the tree: %s\n", nameOf(d.Record), oneLine(d.Unknown.Error()))
		return err
	case len(d.Conflicts) == 0:
		return nil
	}
	are := "are"
	if len(d.Conflicts) == 1 {
		are = "is"
	}
	fmt.Fprintf(w, "\n'decree publish %s' would be refused now: %s %s not as its run began with\n", nameOf(d.Record), count(len(d.Conflicts), "path"), are)
	t := s.fits(&table{}, s.env.Stdout, 0)
	for _, it := range d.Conflicts[:min(len(d.Conflicts), mostInTheWay)] {
		t.add("  "+shownPath(it.Path), itemReason(it))
	}
	if err := t.write(w); err != nil || len(d.Conflicts) <= mostInTheWay {
		return err
	}
	_, err := fmt.Fprintf(w, "  and %d more\n", len(d.Conflicts)-mostInTheWay)
	return err
}

func (s *session) publishVerb() verb {
	var o moveOptions
	var withGit bool
	return verb{
		name: "publish", category: draftCategory, args: "[DRAFT] [PATH...]", words: refAndPathWords, most: anyWords, interruptible: true,
		usage: "bring the work of an isolated run into the tree",
		about: `Brings what an isolated run changed into the tree, all or nothing. Each path must still be as it was when the run began; if any was edited since, nothing is changed and all of them are listed. With --merge, text files that were edited since are merged line by line. With --force they are overwritten; it asks first, and what it overwrites is stored.

DRAFT is a record's id or the NAME of its run; without it the only draft that waits is meant. With PATHs only they, and what is below, are published, with -p the hunks that you say yes to, and the rest stays a draft. The publish is a record itself, with the tree before it: "decree revert last" takes it back, and the draft waits again.

With the last of a draft its layer goes. What could not be recorded of the run, such as a file above capture.max_file, is nowhere else: publish names it and asks first, or needs --yes.

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
			{"1", "the files are published, and not all that the run committed"},
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
	if opt.Ref, opt.Paths, err = s.publishWords(rec.Reader); err != nil {
		return err
	}
	if withGit && !o.patch && opt.Ref == "" && len(opt.Paths) == 1 {
		return &project.Error{Kind: project.NotFound, Msg: "no draft is called " + oneLine(s.line.words[0]), Advice: "'decree drafts' lists them; --with-git takes no PATHs"}
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
	if opt.Ref == "" && len(s.line.words) > 0 && project.KindOf(err) == project.NotFound { // it may have recorded the draft that the word names
		if opt.Ref, opt.Paths, err = s.publishWords(rec.Reader); err != nil {
			return err
		}
		result, err = rec.Publish(ctx, opt)
	}
	if err != nil {
		return namesNoDraft(err, opt.Ref, s.line.words)
	}
	what := opt.Ref
	if what == "" && result.Record != nil {
		what = result.Record.Parent
	}
	err = s.reportMove(moveReport{result: result, dryRun: o.dryRun, did: "published", what: what, paths: len(opt.Paths) > 0})
	if result.GitLeft && err == nil {
		err = &project.Error{Kind: project.Failed, Msg: "not all that the run committed was published", State: "the files are published, and the draft waits with the rest",
			Advice: "once the cause named above is gone: " + quoteWord("decree publish --with-git "+what)}
	}
	return err
}

// namesNoDraft has an error for want of a draft say that the first word, taken for a PATH, is none.
func namesNoDraft(err error, ref string, words []string) error {
	var e *project.Error
	if ref == "" && len(words) > 0 && errors.As(err, &e) && e.Kind == project.NotFound {
		e.Advice = oneLine(words[0]) + " is no draft: name one, and then the PATHs; 'decree drafts' lists them"
	}
	return err
}

// publishWords takes publish's words apart: the first is a DRAFT if it names a record, else
// a PATH, as all others are.
func (s *session) publishWords(rec *recorder.Reader) (ref string, paths []tree.Path, err error) {
	words := s.line.words
	if len(words) > 0 {
		is, err := s.isRef(rec, words[0])
		if err != nil {
			return "", nil, err
		}
		if is {
			ref, words = words[0], words[1:]
		}
	}
	paths, err = s.inTree(rec.Project().Root, slices.Concat(words, s.line.paths))
	return ref, paths, err
}
