package cmd

import "context"

func (s *session) initVerb() verb {
	return verb{
		name: "init", category: keepCategory,
		usage: "make .decree/ and the store",
		about: `Makes .decree/ in the root and the project's store outside of it. It may be called again at any time and then changes nothing. Every command that has to write does this on its own, so "init" is only needed to choose the root or the store before the first record.

The store lies in $DECREE_STORE, else where "store:" in .decree/config.yml says, else in $XDG_DATA_HOME/decree, else in ~/.local/share/decree. The place is decided once.`,
		examples: []example{
			{"decree init", "use the tree you are in"},
			{"decree init --root ~", "your home directory, which is never taken as a root by itself"},
		},
		flags:  s.writing(),
		action: s.init,
	}
}

// placeJSON is what init and status say about where things are.
type placeJSON struct {
	Root  string `json:"root"`
	Store string `json:"store"`
	ID    string `json:"id"`
}

func (s *session) init(ctx context.Context) error {
	if err := s.noWords(); err != nil {
		return err
	}
	rec, err := s.forWriting(ctx)
	if err != nil {
		return err
	}
	p := rec.Project()
	if s.global.json {
		return s.printJSON(placeJSON{p.Root, p.StorePath, p.ID})
	}
	s.tell("%s is a decree project; its store is %s", quoteWord(p.Root), quoteWord(p.StorePath))
	return nil
}
