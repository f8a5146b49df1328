package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/project"
	"decree/recorder"
	"decree/retention"
	"decree/view"
)

// pruneOptions are prune's flags; the numbers stay texts until it is known that
// they were given.
type pruneOptions struct {
	dryRun   bool
	last     map[string]*string // by reason
	maxStore string
}

func (s *session) pruneVerb() verb {
	o := pruneOptions{last: map[string]*string{}}
	flags := []cli.Flag{boolFlag(&o.dryRun, "list what would be removed and what would stay, and why; change nothing", "dry-run", "n")}
	for _, reason := range project.Reasons {
		o.last[reason] = new(string)
		flags = append(flags, stringFlag(o.last[reason], "of the reason "+reason+", keep the last `N` instead of what the config says", "keep-"+reason))
	}
	flags = append(flags, stringFlag(&o.maxStore, "if the store and .decree/runs are larger than `SIZE` (10GiB, 0: no cap) together, remove more records until they fit", "max-store"))
	return verb{
		name: "prune", category: keepCategory, interruptible: true,
		usage: "remove the records that retention does not keep",
		about: `Removes records by the policies of the config ("decree help config", retention and max_store), then frees the space that only they needed. This happens by itself after each successful record; "prune" does it now, with other numbers if you like.

The newest record, the newest publish and the newest restore stay in any case, and so do labelled records, open ones with what was made inside them, runs that did not succeed and have messages in their outbox, undos that "redo" can still take back, and what a record that stays needs to be undone. Ages count from the newest record, not from the clock; days are local, weeks ISO weeks, and each keeps its newest record; a record stays if any rule of its policy keeps it. Under a cap on the size of the store and .decree/runs more are removed: automatic checkpoints first, then runs, reverts, applies and restores, then manual checkpoints, then published states, of each group the oldest first.

The size of each record is what no other record needs; what several of those that go share is only part of the total. On a terminal it asks before it removes checkpoints of your own; --yes removes them without a question. Automatic pruning never asks.`,
		examples: []example{
			{"decree prune --dry-run", "what would be removed, and why"},
			{"decree prune --keep-run 100 --keep-auto 0", "the last 100 runs, and no automatic checkpoint"},
			{"decree prune --max-store 2GiB", "until the store fits 2 GiB"},
		},
		exits:  []exit{{"0", "done, or nothing to do"}, {"4", "another decree is working on this tree, or you said no; nothing was changed"}},
		flags:  s.writing(flags...),
		action: func(ctx context.Context) error { return s.prune(ctx, o) },
	}
}

// options reads the numbers.
func (o pruneOptions) options() (recorder.PruneOptions, error) {
	out := recorder.PruneOptions{Last: map[string]int{}}
	for _, reason := range project.Reasons {
		text := *o.last[reason]
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 30)
		if err != nil {
			return out, usagef("--keep-%s %s: not a number of records", reason, quoteWord(text)).Hintf("for example --keep-%s 50", reason)
		}
		out.Last[reason] = int(n)
	}
	if o.maxStore != "" {
		most, err := project.ParseSize(o.maxStore)
		if err != nil {
			return out, usagef("--max-store: %v", err).Hintf("for example --max-store 10GiB")
		}
		out.MaxStore = &most
	}
	return out, nil
}

func (s *session) prune(ctx context.Context, o pruneOptions) error {
	options, err := o.options()
	if err != nil {
		return err
	}
	if o.dryRun {
		return s.wouldPrune(options)
	}
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	if s.canAsk() && !s.global.yes {
		options.Confirm = func(p *recorder.Pruned) (bool, error) { return s.confirmPrune(rec.Reader, p) }
	}
	p, err := rec.Prune(ctx, options)
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printJSON(view.PrunedOf(p, false))
	}
	gone := p.Gone()
	s.tell("%s", s.fitted(fmt.Sprintf("%s removed, %s freed; %s, the store has %s, .decree/runs %s",
		count(len(gone), "record"), size(p.Freed), stayIn(len(p.Verdicts)-len(gone)), size(p.Store), size(p.Runs)), s.env.Stdout))
	s.tellAboveCap(p)
	return nil
}

func (s *session) wouldPrune(o recorder.PruneOptions) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	p, err := rec.WouldPrune(o)
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printJSON(view.PrunedOf(p, true))
	}
	if err := s.printVerdicts(rec, s.env.Stdout, p.Verdicts); err != nil {
		return err
	}
	gone := p.Gone()
	s.tell("%s", s.fitted(fmt.Sprintf("%s would be removed, %s would stay; of %s in the store and .decree/runs about %s would be freed",
		count(len(gone), "record"), count(len(p.Verdicts)-len(gone), "record"), size(p.Total()), size(p.Freed)), s.env.Stdout))
	s.tellAboveCap(p)
	return nil
}

func (s *session) tellAboveCap(p *recorder.Pruned) {
	if !p.Fits {
		s.say("decree: note: the store and .decree/runs are still above the cap: what is always kept is larger")
	}
}

// confirmPrune shows what goes, and asks.
func (s *session) confirmPrune(rec *recorder.Reader, p *recorder.Pruned) (bool, error) {
	s.meter.stop()
	gone, manual := p.Gone(), 0
	for _, v := range gone {
		if v.Reason == "manual" {
			manual++
		}
	}
	newest := gone[max(0, len(gone)-planLines):]
	if err := s.printVerdicts(rec, s.env.Stderr, newest); err != nil {
		return false, err
	}
	if n := len(gone) - len(newest); n > 0 {
		s.say("and %d older ones; 'decree prune --dry-run' lists all", n)
	}
	question := fmt.Sprintf("remove %s, of which you made %s yourself, and free about %s? [y/N]", count(len(gone), "record"), count(manual, "checkpoint"), size(p.Freed))
	return s.ask(question, 'n') == 'y', nil
}

// stayIn is "3 records stay".
func stayIn(n int) string {
	if n == 1 {
		return "1 record stays"
	}
	return count(n, "record") + " stay"
}

// printVerdicts lists records, the newest first, with what only each of them needs.
func (s *session) printVerdicts(rec *recorder.Reader, out *os.File, list []retention.Verdict) error {
	if len(list) == 0 {
		return nil
	}
	own, err := rec.Own()
	if err != nil {
		return err
	}
	return s.printOn(out, func(w io.Writer) error { return s.writeVerdicts(w, s.fits(&table{}, out), list, own) })
}

func (s *session) writeVerdicts(w io.Writer, t *table, list []retention.Verdict, own map[string]int64) error {
	for i := range list {
		v := &list[len(list)-1-i]
		word := "remove"
		if v.Keep {
			word = "keep"
		}
		t.add(word, s.shortID(v.ID), size(own[v.ID]), s.ago(v.Started), v.Reason, strings.Join(v.Why, ", "))
	}
	return t.write(w)
}
