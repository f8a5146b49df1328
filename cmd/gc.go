package cmd

import (
	"context"

	"decree/view"
)

func (s *session) gcVerb() verb {
	return verb{
		name: "gc", category: keepCategory, interruptible: true,
		usage: "free the space that no record needs",
		about: `Frees the space of contents that no record needs any more. A pack of which half or more is unused is rewritten without the unused part; commands that are reading meanwhile are not disturbed. It runs by itself now and then; without it, nothing is lost but space.

On a full disk it works even before interrupted operations are finished, and so does "prune": the store keeps a file of 1 MiB, "reserve", which both delete first and make again at the end. Half of it is given to what moves the tree and to "recover", where the disk is nearly full. Interrupted operations keep all that they need.`,
		examples: []example{
			{"decree gc", "say how much was freed"},
			{"decree prune --keep-auto 10 && decree gc", "remove records first"},
		},
		exits:  []exit{{"0", "done, or nothing to do"}, {"4", "another decree is working on this tree, or something of the store's cannot be read; nothing was freed"}},
		flags:  s.writing(),
		action: s.gc,
	}
}

func (s *session) gc(ctx context.Context) error {
	rec, err := s.forChanging(ctx)
	if err != nil {
		return err
	}
	c, err := rec.Gc(ctx)
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printJSON(view.CollectedOf(c))
	}
	s.tell("%s freed; the store has %s", size(c.Freed), size(c.Store))
	if len(c.Damaged) > 0 {
		s.say("decree: note: %s kept, because parts of them are damaged: %s", count(len(c.Damaged), "pack"), list(c.Damaged))
	}
	return nil
}
