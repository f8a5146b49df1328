package cmd

import (
	"context"
	"strings"

	"decree/recorder"
)

// restoreOptions are restore's flags.
type restoreOptions struct{ dryRun, keepExtra, after bool }

func (s *session) restoreVerb() verb {
	var o restoreOptions
	return verb{
		name: "restore", category: takeCategory, args: "REF [PATH...]", words: refAndPathWords, interruptible: true, most: anyWords,
		usage: "make the tree what it was at a record",
		about: `Makes the tree, or the PATHs, equal to what the record saw when it began, whatever happened since. Files that did not exist then are deleted, unless the ignore rules of now or of then leave them out; --keep-extra leaves them all. Everything that is overwritten or deleted is stored first: the restore is a record, and "decree revert last" takes it back.

It reads and hashes all that it needs before it changes anything. On a terminal it shows what will change and asks; elsewhere it needs --yes.`,
		examples: []example{
			{"decree restore last", "the whole tree as the newest record found it"},
			{"decree restore '@2 hours ago' src/ --dry-run", "what would change below src/"},
			{"decree restore good --keep-extra --yes", "bring files back, delete none, do not ask"},
		},
		exits: []exit{
			{"0", "done, or nothing to do"},
			{"3", "no such record"},
			{"4", "not confirmed, or something stands in the way; nothing was changed"},
			{"5", "a content is missing from the store or damaged; nothing was changed"},
		},
		flags: s.writing(
			boolFlag(&o.dryRun, "show what would be done, change nothing", "dry-run", "n"),
			boolFlag(&o.keepExtra, "do not delete files that the record lacks", "keep-extra"),
			boolFlag(&o.after, "the state when the record ended, not when it began", "after"),
		),
		action: func(ctx context.Context) error { return s.restore(ctx, o) },
	}
}

func (s *session) restore(ctx context.Context, o restoreOptions) error {
	if len(s.line.words) == 0 {
		return usagef("a REF is missing").Hintf("for example 'decree restore last'; 'decree log' lists the records")
	}
	ref := s.line.words[0]
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, s.words()[1:])
	if err != nil {
		return err
	}
	if strings.HasPrefix(ref, "@") {
		if _, err := s.resolve(rec.Reader, ref); err != nil && o.dryRun {
			return err // otherwise the recorder says it, and writes it down
		}
	}
	result, err := rec.Restore(ctx, recorder.RestoreOptions{
		Ref: ref, After: o.after, Paths: paths, KeepExtra: o.keepExtra,
		DryRun: o.dryRun, Yes: s.global.yes, Confirm: s.confirmRestore(ctx),
	})
	if err != nil {
		return err
	}
	return s.reportMove(moveReport{result: result, dryRun: o.dryRun, did: "restored", what: ref})
}
