package cmd

import (
	"context"
	"io"
	"maps"
	"slices"
)

func (s *session) labelVerb() verb {
	var remove bool
	return verb{
		name: "label", category: keepCategory, args: "[NAME [REF]]", words: labelWords, most: 2,
		usage: "list, set, move or delete labels",
		about: `A label is a name for a record that can be used as a REF. Without words all labels are listed; with only NAME it says which record has that label; with NAME and REF the label is set or moved there; --delete removes it. "latest" is the newest record, also an open turn of an agent, and needs no setting. A name is 1 to 64 letters, digits, ".", "_" and "-", and may not look like an id or a time; agents' hooks use "session" and "turn-7".`,
		examples: []example{
			{"decree label", "all labels"},
			{"decree label good last", "call the newest record 'good'"},
			{"decree label --delete good", "forget the name; the record stays"},
		},
		exits:  []exit{{"0", "done"}, {"2", "NAME cannot be a label"}, {"3", "no such label or record"}},
		flags:  s.writing(boolFlag(&remove, "delete the label NAME", "delete")),
		action: func(ctx context.Context) error { return s.label(ctx, remove) },
	}
}

func (s *session) label(ctx context.Context, remove bool) error {
	words := s.words()
	switch {
	case remove && len(words) != 1:
		return usagef("--delete takes one NAME").Hintf("for example 'decree label --delete good'")
	case remove:
		return s.setLabel(ctx, words[0], "")
	case len(words) == 2:
		return s.setLabel(ctx, words[0], words[1])
	}
	return s.listLabels(ctx, words)
}

func (s *session) listLabels(ctx context.Context, words []string) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	labels, err := rec.History().Labels()
	if err != nil {
		return err
	}
	if len(words) == 1 && (words[0] == "latest" || words[0] == "last") {
		newest, err := rec.History().Resolve(words[0], s.env.Location)
		if err != nil {
			return err
		}
		labels = map[string]string{words[0]: newest.ID}
	} else if len(words) == 1 {
		id, ok := labels[words[0]]
		if !ok {
			return notFoundf("no label %s", quoteWord(words[0])).Hintf("'decree label' lists the labels")
		}
		labels = map[string]string{words[0]: id}
	}
	if s.global.json {
		return s.printJSON(labels)
	}
	if len(labels) == 0 {
		s.say("no labels")
		return nil
	}
	return s.print(func(w io.Writer) error {
		var t table
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			t.add(name, s.shortID(labels[name]))
		}
		return t.write(w)
	})
}

// setLabel sets name to the record that ref names, or deletes it if ref is "".
func (s *session) setLabel(ctx context.Context, name, ref string) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	id, err := rec.SetLabel(ctx, name, ref)
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printJSON(map[string]string{name: id})
	}
	if id == "" {
		s.tell("label %s was deleted", quoteWord(name))
		return nil
	}
	s.tell("label %s is now on record %s", quoteWord(name), id)
	return nil
}
