package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"

	"decree/project"
	"decree/recorder"
	"decree/view"
)

// verifyOptions are verify's flags.
type verifyOptions struct{ all, tree bool }

func (s *session) verifyVerb() verb {
	var o verifyOptions
	return verb{
		name: "verify", category: keepCategory, args: "[REF]", words: refWords, most: 1,
		usage: "hash what is stored and compare",
		about: `Reads and hashes a record's manifest, its changes.diff and every stored content it names; of the newest record if no REF is given, of all with --all. With --tree it hashes the files of the tree, without trusting times and sizes, and compares them with the newest record.`,
		examples: []example{
			{"decree verify last", "can the newest record be restored?"},
			{"decree verify --all", "everything"},
			{"decree verify --tree", "which files differ from the newest record?"},
		},
		exits: []exit{{"0", "all hashes match"}, {"3", "no such record"}, {"5", "a hash does not match, or a content is missing"}},
		flags: s.reading(
			boolFlag(&o.all, "every record", "all"),
			boolFlag(&o.tree, "the files of the tree against the newest record", "tree"),
		),
		action: func(ctx context.Context) error { return s.verify(ctx, o) },
	}
}

func (s *session) verify(ctx context.Context, o verifyOptions) error {
	if o.all && o.tree || len(s.words()) == 1 && (o.all || o.tree) {
		return usagef("REF, --all and --tree cannot be used together").Hintf("choose one")
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	options := recorder.VerifyOptions{All: o.all, Tree: o.tree}
	if !o.all && !o.tree {
		if options.Record, err = s.oneRecord(rec, s.words()); err != nil {
			return err
		}
	}
	problems, err := rec.Verify(ctx, options)
	if err != nil {
		return err
	}
	if err := s.printProblems(problems); err != nil {
		return err
	}
	if !s.global.json && slices.ContainsFunc(problems, recorder.Problem.Deleted) {
		s.note("'decree doctor --repair' writes again what is missing from .decree/runs, from the store")
	}
	if len(problems) > 0 {
		return errFound{project.Integrity}
	}
	return nil
}

func (s *session) printProblems(problems []recorder.Problem) error {
	if s.global.json {
		return s.printJSON(view.Problems(problems))
	}
	if len(problems) == 0 {
		s.tell("all hashes match")
		return nil
	}
	return s.print(func(w io.Writer) error {
		for _, p := range problems {
			text := oneLine(p.Reason)
			if p.Path != "" {
				text = shownPath(p.Path) + ": " + text
			}
			if p.Record != "" {
				text = p.Record + ": " + text
			}
			if _, err := fmt.Fprintln(w, text); err != nil {
				return err
			}
		}
		return nil
	})
}
