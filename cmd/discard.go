package cmd

import (
	"context"
	"fmt"

	"decree/history"
	"decree/project"
	"decree/recorder"
)

// discardOptions are discard's flags.
type discardOptions struct {
	failed bool
	older  string
}

func (s *session) discardVerb() verb {
	var o discardOptions
	return verb{
		name: "discard", category: draftCategory, args: "DRAFT... | --failed | --older-than D", words: refWords, most: anyWords,
		usage: "give up the work of isolated runs",
		about: `Gives up drafts: they can be published no more, and their layers are removed. Their records stay, with their diffs, as long as those of other runs. It asks first, since this work was never published; off a terminal it needs --yes.

What a run left in .git, such as commits, is in its layer alone and goes with it; the question says how much that is. "decree publish --with-git" brings it into the repository before.`,
		examples: []example{
			{"decree discard try", "give up the draft 'try'"},
			{"decree discard --failed --yes", "those whose command failed, or was interrupted"},
			{"decree discard --older-than 30d --yes", "those whose run ended more than 30 days ago"},
		},
		exits: []exit{{"0", "done, or no such draft waits"}, {"3", "no such draft"}, {"4", "no draft that waits, somebody works in its layer, or not confirmed; nothing was changed"}},
		flags: s.writing(
			boolFlag(&o.failed, "all drafts whose command did not succeed", "failed"),
			stringFlag(&o.older, "all drafts whose run ended more than `D` (12h, 3d, 1w) ago", "older-than"),
		),
		action: func(ctx context.Context) error { return s.discard(ctx, o) },
	}
}

func (s *session) discard(ctx context.Context, o discardOptions) error {
	opt := recorder.DiscardOptions{Refs: s.words(), Failed: o.failed, Yes: s.global.yes}
	if o.older != "" {
		var err error
		if opt.Older, err = project.ParseAge(o.older); err != nil || opt.Older == 0 {
			return usagef("--older-than %s: not an age", quoteWord(o.older)).Hintf("write 90s, 15m, 12h, 3d or 1w")
		}
	}
	chosen := o.failed || o.older != ""
	switch {
	case len(opt.Refs) == 0 && !chosen:
		return usagef("a DRAFT is missing").Hintf("'decree drafts' lists them; --failed and --older-than take many at once")
	case len(opt.Refs) > 0 && chosen:
		return usagef("DRAFTs and --failed or --older-than cannot be used together").Hintf("name the drafts, or say which kind")
	}
	if s.canAsk() {
		opt.Confirm = s.confirmDiscard
	}
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	gone, err := rec.Discard(ctx, opt)
	if err != nil {
		return err
	}
	if s.global.json {
		records := make([]*history.Record, len(gone))
		for i, d := range gone {
			records[i] = d.Record
		}
		return s.printJSON(records)
	}
	if len(gone) == 0 {
		s.tell("no draft that waits is among these; nothing was discarded")
	}
	for _, d := range gone {
		s.tell("discarded %s; its record stays", nameOf(d.Record))
		if lost := d.Lost(); lost != "" {
			s.note("gone with the layer: " + lost)
		}
	}
	return nil
}

// confirmDiscard shows what goes, and asks.
func (s *session) confirmDiscard(drafts []recorder.Discarded) (bool, error) {
	for _, d := range drafts {
		lost := d.Lost()
		if lost != "" {
			lost = "; and " + lost
		}
		s.say("  %s  %s, %s  %s%s", nameOf(d.Record), s.ago(d.Started), d.Status, changesInWords(d.Changes), lost)
	}
	return s.ask(fmt.Sprintf("give up %s for good? [y/N]", count(len(drafts), "draft")), 'n') == 'y', nil
}
