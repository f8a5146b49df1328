package cmd

import (
	"context"
	"fmt"
	"strings"

	"decree/project"
	"decree/recorder"
	"decree/view"
)

func (s *session) doctorVerb() verb {
	var repair bool
	return verb{
		name: "doctor", category: keepCategory, interruptible: true,
		usage: "check that everything is in its place",
		about: `Runs small checks, each with the result ok, info, warning or error, and says what to do about those that are not ok. --repair does it: among other things it brings back a deleted .decree/runs from the store. The last of them try whether isolated runs, "run --fence" and "run --no-net" work on this machine, and say what would help where they do not.`,
		examples: []example{
			{"decree doctor", "look"},
			{"decree doctor --repair", "check and repair"},
		},
		exits:  []exit{{"0", "no errors, or all were repaired"}, {"1", "at least one error"}},
		flags:  s.writing(boolFlag(&repair, "repair what can be repaired", "repair")),
		action: func(ctx context.Context) error { return s.doctor(ctx, repair) },
	}
}

func (s *session) checks(ctx context.Context, repair bool) ([]recorder.Check, error) {
	if repair {
		rec, err := s.open(ctx, true)
		if err != nil {
			return nil, err
		}
		return rec.Repair(ctx)
	}
	rec, err := s.openReader(false)
	if err != nil {
		return nil, err
	}
	return rec.Doctor(ctx)
}

func (s *session) doctor(ctx context.Context, repair bool) error {
	checks, err := s.checks(ctx, repair)
	if err != nil {
		return err
	}
	if s.global.json {
		if err := s.printJSON(view.Checks(checks)); err != nil {
			return err
		}
	} else {
		s.tellChecks(checks)
	}
	for _, c := range checks {
		if c.Level == recorder.Error && !c.Fixed {
			return errFound{project.Failed}
		}
	}
	return nil
}

var levelColours = map[recorder.Level]string{recorder.OK: green, recorder.Info: plain, recorder.Warning: yellow, recorder.Error: red}

func (s *session) tellChecks(checks []recorder.Check) {
	p := s.paint(s.env.Stdout)
	for _, c := range checks {
		if s.global.quiet && (c.Level != recorder.Error || c.Fixed) {
			continue
		}
		level, colour := string(c.Level), levelColours[c.Level]
		if c.Fixed {
			level, colour = "mended", green
		}
		fmt.Fprintf(s.env.Stdout, "%s  %s: %s\n", p.in(colour, fmt.Sprintf("%-7s", level)), c.Name, oneLine(c.Text))
		if c.Hint != "" && !c.Fixed {
			fmt.Fprintf(s.env.Stdout, "         %s %s\n", p.in(cyan, "hint:"), oneLine(c.Hint))
		}
		if c.Profile != "" {
			fmt.Fprintf(s.env.Stdout, "\n%s\n", strings.TrimRight(c.Profile, "\n"))
		}
	}
}
