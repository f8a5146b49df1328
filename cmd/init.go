package cmd

import (
	"context"

	"decree/view"
)

func (s *session) initVerb() verb {
	var examples bool
	return verb{
		name: "init", category: keepCategory,
		usage: "make .decree/ and the store",
		about: `Makes .decree/ in the root and the project's store outside of it. It may be called again at any time and then changes nothing. Every command that has to write does this on its own, so "init" is only needed to choose the root or the store before the first record.

The store lies in $DECREE_STORE, else where "store:" in .decree/config.yml says, else in $XDG_DATA_HOME/decree, else in ~/.local/share/decree. The config may have come with the tree, so its place is asked about first, or needs --yes. The place is decided once.

With --examples it also writes .decree/config.yml and .decree/routines/develop.sh, a routine with a coding agent and a test as its judge, both full of comments. A file that is there stays as it is.`,
		examples: []example{
			{"decree init", "use the tree you are in"},
			{"decree init --root ~", "your home directory, which is never taken as a root by itself"},
			{"decree init --examples", "a config and a routine to start with"},
		},
		flags:  s.writing(boolFlag(&examples, "write a commented config.yml and develop.sh, too", "examples")),
		action: func(ctx context.Context) error { return s.init(ctx, examples) },
	}
}

func (s *session) init(ctx context.Context, examples bool) error {
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	p := rec.Project()
	var written []string
	if examples {
		if written, err = writeExamples(p); err != nil {
			return err
		}
	}
	if s.global.json {
		return s.printJSON(view.PlaceOf(&p.Site))
	}
	s.tell("%s is a decree project; its store is %s", quoteWord(p.Root), quoteWord(p.StorePath))
	for _, path := range written {
		s.tell("wrote .decree/%s", path)
	}
	if examples && len(written) == 0 {
		s.say("decree: the examples are there already; nothing was written")
	}
	return nil
}
