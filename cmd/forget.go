package cmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"decree/backup"
	"decree/disk"
	"decree/recorder"
	"decree/view"
)

func (s *session) forgetVerb() verb {
	var dryRun bool
	return verb{
		name: "forget", category: keepCategory, args: "PATH...", words: pathWords, interruptible: true, most: anyWords,
		missing: usagef("a PATH is missing").Hintf("for example 'decree forget .env'"),
		usage:   "take a file's contents out of every record and the store",
		about: `For a secret that got in. Every content that a file at PATH, or below it, ever had is taken out of the store and out of the diffs of all records, along with every other copy that has the same hash. It does not come back.

What it does not do: manifests and diffs keep the path, the size and the hash (which is enough to check a guess); what a command printed (routine.log, failure-context.md), command lines and descriptions are not searched; the tree is not touched, so ignore the file (.decreeignore) or delete it, or the next record stores it again; backups stay as they are: their generations that this store remembers are named ("backups" with --json), without asking the targets. The diffs of the records it names no longer hold these contents: a revert, apply or restore that needs one is refused (exit code 5); the other paths can still be done ("-- PATH..."). "verify" reports what was forgotten and does not count it as damage.

It asks first; without a terminal it needs --yes.`,
		examples: []example{
			{"decree forget --dry-run .env", "which contents and records it concerns"},
			{"decree forget .env && echo .env >>.decreeignore", "and keep it out from now on"},
		},
		exits: []exit{
			{"0", "done, or nothing to do"},
			{"3", "no record has such a path"},
			{"4", "not confirmed, records consist of it (a copy of a diff), or another decree is working on this tree; nothing was changed"},
			{"5", "part of the store is damaged and may still hold it"},
		},
		flags:  s.writing(boolFlag(&dryRun, "say what would be forgotten, change nothing", "dry-run", "n")),
		action: func(ctx context.Context) error { return s.forget(ctx, dryRun) },
	}
}

func (s *session) forget(ctx context.Context, dryRun bool) error {
	if dryRun {
		return s.wouldForget()
	}
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, s.words())
	if err != nil {
		return err
	}
	o := recorder.ForgetOptions{Paths: paths, Yes: s.global.yes}
	if s.canAsk() {
		o.Confirm = s.confirmForget
	}
	f, err := rec.Forget(ctx, o)
	if err != nil {
		return err
	}
	return s.reportForget(f, rec.Project().Store, false)
}

func (s *session) wouldForget() error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, s.words())
	if err != nil {
		return err
	}
	f, err := rec.WouldForget(paths)
	if err != nil {
		return err
	}
	return s.reportForget(f, rec.Project().Store, true)
}

func (s *session) confirmForget(f *recorder.Forgetting) (bool, error) {
	s.meter.stop()
	if err := s.printOn(s.env.Stderr, func(w io.Writer) error { return writeForgetting(w, f) }); err != nil {
		return false, err
	}
	return s.ask(fmt.Sprintf("forget %s for good? [y/N]", count(len(f.Contents), "content")), 'n') == 'y', nil
}

func writeForgetting(w io.Writer, f *recorder.Forgetting) error {
	for _, c := range f.Contents {
		fmt.Fprintf(w, "%s  %.12s  %s\n", shownPath(c.Path), c.SHA256.String(), size(c.Size))
	}
	for _, p := range f.Also {
		fmt.Fprintf(w, "%s  has some of the same contents: they are forgotten there as well\n", shownPath(p))
	}
	for _, id := range f.Records {
		fmt.Fprintf(w, "%s  its diffs hold them: they are rewritten without them\n", id)
	}
	return nil
}

func (s *session) reportForget(f *recorder.Forgetting, store disk.Dir, dryRun bool) error {
	backups := []view.Backups{}
	if len(f.Contents) > 0 {
		backups = backupsWith(store)
	}
	if s.global.json {
		out := view.ForgettingOf(f, dryRun)
		out.Backups = backups
		return s.printJSON(out)
	}
	if len(f.Contents) == 0 {
		s.tell("nothing to forget: the store has no content of it")
		return nil
	}
	if !s.global.quiet {
		if err := s.print(func(w io.Writer) error { return writeForgetting(w, f) }); err != nil {
			return err
		}
	}
	if dryRun {
		s.tell("%s would be forgotten", count(len(f.Contents), "content"))
		return nil
	}
	s.tell("%s forgotten, %s freed", count(len(f.Contents), "content"), size(f.Freed))
	s.say("decree: note: routine.log, failure-context.md and command lines are not searched; hashes and sizes stay in the manifests")
	if len(f.Layers) > 0 {
		s.say("decree: note: the layers of isolated runs are not searched, and may have them still: %s; a layer goes with 'decree discard ID', or when its draft is published", list(f.Layers))
	}
	for _, p := range f.InTree {
		s.say("decree: note: %s is still in the tree with one of these contents: ignore or delete it, or the next record stores it again", shownPath(p))
	}
	s.nameBackups(backups)
	return nil
}

// backupsWith are the backups that may hold what is forgotten, as far as the store remembers them: a
// target is not asked, since it may be far away or locked by a key.
func backupsWith(store disk.Dir) []view.Backups {
	out := []view.Backups{}
	targets := backup.ReadMemory(store).Targets
	for _, at := range slices.Sorted(maps.Keys(targets)) {
		if standing := targets[at].Standing(); len(standing) > 0 {
			out = append(out, view.Backups{Target: at, Generations: standing})
		}
	}
	return out
}

func (s *session) nameBackups(backups []view.Backups) {
	for _, b := range backups {
		s.say("decree: note: %s is not changed: %s there may still hold these contents, and later generations share their packs; to be rid of them make a backup to an empty target and delete %s", quoteWord(b.Target), list(b.Generations), quoteWord(b.Target))
	}
}
