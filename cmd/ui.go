package cmd

import (
	"cmp"
	"context"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/tui"
)

func (s *session) uiVerb() verb {
	var plainly bool
	return verb{
		name: "ui", category: lookCategory, args: "[FILTER...]", most: anyWords,
		usage: "look at the records on the whole terminal, and choose there what is taken back",
		about: `Shows the timeline and, beside it, the files and the diff of a record. What can be done with it is a key away: revert (r), apply (a), restore (R), publish (p), discard (x), undo (u), redo (U), checkpoint (c), label (l). Each shows first what it would do, path by path, and the command that does the same; y or enter does it, esc leaves everything as it is.

j, k and the arrows move, enter goes in and esc out, tab goes from the timeline to the files and the diff. "/" filters: words, reason:run, path:src/, since:yesterday; FILTER on the command line is the same. Space marks the file at the cursor, or in the diff the hunk, or takes the mark away; the cursor stays. Where something is marked only that is taken back, brought again, published or restored. Where a file was edited since, m merges, hunk by hunk, o goes on with the other paths, f overwrites. < and > show the rest of long lines. b shows who brought each line, o opens the file in $VISUAL or $EDITOR, h shows space over time, runs a day, time and changes a run as small bars, Y copies the command by way of the terminal, ? lists all keys, q ends. The mouse does it too. New records appear by themselves.

It needs 60 columns; from 100 on the timeline and the record stand side by side. It keeps to NO_COLOR and to a light or dark background. --plain, which TERM=dumb or DECREE_PLAIN=1 mean too, is the same as a numbered dialogue: a line for each thing, nothing redrawn, answers read from stdin.

While a draft waits nothing is restored from here and no checkpoint made, until it is published or discarded, unless drafts.block is false in .decree/config.yml.`,
		examples: []example{
			{"decree ui", "what happened here?"},
			{"decree ui since:yesterday reason:turn", "what did the agents do since yesterday?"},
			{"decree ui --plain", "the same, line by line"},
		},
		exits: []exit{{"0", "ended by q, or by the end of the input"}, {"2", "FILTER is not understood, or there is no terminal"}, {"3", "no project"}},
		flags: []cli.Flag{
			boolFlag(&plainly, "a numbered dialogue instead of a screen", "plain"),
			s.rootFlag(), s.quietFlag(),
		},
		action: func(ctx context.Context) error { return s.ui(ctx, plainly) },
	}
}

func (s *session) ui(ctx context.Context, plainly bool) error {
	plainly = plainly || s.env.get("TERM") == "dumb" || s.env.get("DECREE_PLAIN") == "1"
	if !plainly && (!isTerminal(s.env.Stdin) || !isTerminal(s.env.Stdout)) {
		return usagef("there is no terminal to draw on").Hintf("'decree ui --plain' reads answers from stdin, 'decree log' lists the records")
	}
	s.stay()
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	s.meter.stop()
	if !plainly {
		s.global.quiet = true // a note would be written across the screen
	}
	o := tui.Options{
		Read: rec, Change: s.changeTelling, Editor: s.editor(), Now: s.env.Now, Location: s.env.Location,
		Stdin: s.env.Stdin, Stdout: s.env.Stdout, Environ: s.env.Environ, Filter: strings.Join(s.words(), " "),
		Echo: !isTerminal(s.env.Stdin),
	}
	if plainly {
		return tui.Talk(ctx, o)
	}
	return tui.Run(ctx, o)
}

// editor is the user's, as a command that opens a file.
func (s *session) editor() func(path string) *exec.Cmd {
	editor := cmp.Or(s.env.get("VISUAL"), s.env.get("EDITOR"), "vi")
	return func(path string) *exec.Cmd {
		c := exec.Command("sh", "-c", editor+` "$1"`, "sh", path)
		c.Dir, c.Env = s.env.Cwd, s.env.Environ
		return c
	}
}
