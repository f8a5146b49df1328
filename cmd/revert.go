package cmd

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
)

// moveOptions are the flags of revert and apply.
type moveOptions struct {
	dryRun, merge, markers, skip, force, patch bool

	exclude texts
	from    string
}

// mergeFlags are those of revert and apply.
func (o *moveOptions) mergeFlags() []cli.Flag {
	return []cli.Flag{
		boolFlag(&o.merge, "merge text files that were edited since, line by line", "merge"),
		boolFlag(&o.markers, "merge, and mark conflicts in the files", "markers"),
		boolFlag(&o.skip, "merge, and leave files with conflicts as they are", "skip-conflicts"),
		textsFlag(&o.exclude, "leave `PATH` out, and what is below it; can be repeated", "exclude"),
	}
}

// merging is what these flags say together.
func (o *moveOptions) merging() (plan.Merging, error) {
	switch {
	case o.markers && o.skip:
		return plan.Off, usagef("--markers and --skip-conflicts cannot be used together").Hintf("--markers writes conflicts into the files, --skip-conflicts leaves the files alone")
	case o.force && (o.merge || o.markers || o.skip):
		return plan.Off, usagef("--merge and --force cannot be used together").Hintf("--merge keeps what was edited since, --force does not")
	case o.markers:
		return plan.Mark, nil
	case o.skip:
		return plan.Skip, nil
	case o.merge:
		return plan.Refuse, nil
	}
	return plan.Off, nil
}

func (s *session) revertVerb() verb {
	var o moveOptions
	return verb{
		name: "revert", category: takeCategory, args: "REF|A..B|CHAIN... [PATH...]", words: refAndPathWords, most: anyWords, interruptible: true,
		usage: "take back what a record changed",
		about: `Takes back the changes of the records named, and nothing else: only the paths of their changes.diff are touched, and only where they still are what the record left. If any of them was edited since, nothing is changed and all of them are listed. Afterwards every touched file is hashed again and compared.

With --merge, text files that were edited since are merged line by line: your edits stay, the record's lines are taken out. Where both touch the same lines nothing is changed and the files are listed; --markers writes these places into the files between <<<<<<< and >>>>>>>, --skip-conflicts leaves such files alone, --exclude PATH leaves others out. With -p it asks about each hunk. With --force files are set to their state before the record, whatever they hold now; it asks first.

Several records are taken back newest first, all or none. The revert is a record itself: "decree revert last" undoes it.`,
		examples: []example{
			{"decree revert last", "take back the newest record"},
			{"decree revert last --dry-run", "only show what would be done"},
			{"decree revert 1700 src/", "of the record whose id ends so, take back what lies below src/"},
			{"decree revert -p last", "take back some of its hunks"},
			{"decree revert last --merge --exclude go.sum", "keep later edits, and go.sum as it is"},
			{"decree revert last~2..last", "take back the three newest records, newest first"},
		},
		exits: []exit{
			{"0", "done, or nothing to do"},
			{"3", "no such record"},
			{"4", "edited since, or not confirmed; nothing was changed"},
			{"5", "changes.diff is not what was recorded, or a file did not come out as it should; nothing was changed"},
		},
		flags: s.writing(append(o.mergeFlags(),
			boolFlag(&o.dryRun, "show what would be done, change nothing", "dry-run", "n"),
			boolFlag(&o.force, "overwrite what was edited since", "force"),
			patchFlag(&o.patch),
		)...),
		action: func(ctx context.Context) error {
			return s.moveRecords(ctx, o, "took back", (*recorder.Recorder).Revert)
		},
	}
}

func (s *session) applyVerb() verb {
	var o moveOptions
	return verb{
		name: "apply", category: takeCategory, args: "REF|A..B|CHAIN... [PATH...]", words: refAndPathWords, most: anyWords, interruptible: true,
		usage: "bring a record's changes back",
		about: `Does again what the records named did: the work of a run that was put back, of one that was reverted, or, with --from DIR, of a run in another copy of the tree. Only the paths of their changes.diff are touched, and only where they are as they were before the record; otherwise nothing is changed and all paths in the way are listed. With --merge, text files are merged line by line, as revert does; --markers, --skip-conflicts, --exclude and -p are the same too.

Of a draft it is its publish. Several records are applied oldest first, all or none. It is a record itself: "decree revert last" undoes it.`,
		examples: []example{
			{"decree apply last", "bring back what a failed run had done"},
			{"decree apply 1700 --merge", "put it on top of later edits"},
			{"decree apply last --from ../copy", "take over the work of a run in another copy"},
		},
		exits: []exit{
			{"0", "done, or nothing to do"},
			{"3", "no such record"},
			{"4", "paths in the way, or not confirmed; nothing was changed"},
			{"5", "changes.diff is not what was recorded, or a file did not come out as it should; nothing was changed"},
		},
		flags: s.writing(append(o.mergeFlags(),
			boolFlag(&o.dryRun, "show what would be done, change nothing", "dry-run", "n"),
			patchFlag(&o.patch),
			stringFlag(&o.from, "the records are those of the copy whose root is `DIR`", "from"),
		)...),
		action: func(ctx context.Context) error { return s.moveRecords(ctx, o, "applied", (*recorder.Recorder).Apply) },
	}
}

// mover is Revert or Apply of a recorder.
type mover func(*recorder.Recorder, context.Context, recorder.MoveOptions) (*recorder.MoveResult, error)

func (s *session) moveRecords(ctx context.Context, o moveOptions, did string, move mover) error {
	if len(s.line.words) == 0 {
		return usagef("a REF is missing").Hintf("for example 'decree %s last'; 'decree log' lists the records", s.line.verb)
	}
	merging, err := o.merging()
	if err != nil {
		return err
	}
	open := s.forChanging
	if o.from != "" {
		open = s.forWriting // the records are another copy's; this one may be new
	}
	rec, err := open(ctx)
	if err != nil {
		return err
	}
	refs, paths, err := s.splitRefs(rec.Reader, o.from != "")
	if err != nil {
		return err
	}
	without, err := s.inTree(rec.Project().Root, o.exclude)
	if err != nil {
		return err
	}
	choose, err := s.chooser(o.patch)
	if err != nil {
		return err
	}
	result, err := move(rec, ctx, recorder.MoveOptions{
		Refs: refs, Paths: paths, Exclude: without, DryRun: o.dryRun, Merge: merging, Force: o.force,
		Yes: s.global.yes, From: s.absolute(o.from), Confirm: s.confirmMove(ctx), Choose: choose,
	})
	if o.from != "" && len(refs) > 1 && errors.Is(err, history.ErrNoRecord) {
		err = (&project.Error{Kind: project.KindOf(err), Err: err}).Hintf("with --from a PATH stands behind '--': 'decree %s --from DIR REF -- PATH'", s.line.verb)
	}
	if err != nil {
		return err
	}
	if r := result.Record; r != nil && r.Reason == history.Publish {
		did = "published"
	}
	return s.reportMove(moveReport{result: result, dryRun: o.dryRun, did: did, what: list(refs), paths: len(paths) > 0, back: s.line.verb == "revert"})
}
