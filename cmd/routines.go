package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"decree/message"
	"decree/project"
	"decree/queue"
	"decree/view"
)

func (s *session) routinesVerb() verb {
	return verb{
		name: "routines", category: messageCategory, args: "[NAME]", words: routineWords, most: 1,
		usage: "list the routines with their descriptions and parameters",
		about: `Lists the routines that messages can name: the scripts NAME.sh and the notebooks NAME.ipynb in .decree/routines, then those in "routine_source" of the config. With NAME all that is known of one.

A script's description is its first block of comments. Its parameters are the assignments name="${name:-default}" before the first other statement; a field of a message is given to the routine only if it declares it so. A notebook's description is its first markdown cell, and its parameters are what the cell tagged "parameters" assigns.

Each routine also gets, declared or not, message_file, message_id, message_dir, spec_file, input_file, chain and seq.`,
		examples: []example{
			{"decree routines", "what there is"},
			{"decree routines develop", "one in full"},
			{"decree routines --json", "for a program"},
			{"decree init --examples", "a routine to start with"},
		},
		exits:  []exit{{"3", "no such routine"}},
		flags:  s.reading(),
		action: s.routines,
	}
}

func (s *session) routines(ctx context.Context) error {
	rec, err := s.forLooking()
	if err != nil {
		return err
	}
	dirs := queue.OpenRoutines(rec.Project()).Dirs
	if words := s.words(); len(words) == 1 {
		return s.oneRoutine(words[0], dirs)
	}
	list, err := message.List(dirs...)
	if err != nil {
		return err
	}
	if s.global.json {
		out := []view.Routine{}
		for _, f := range list {
			out = append(out, view.RoutineOf(f))
		}
		return s.printJSON(out)
	}
	if len(list) == 0 {
		s.say("decree: there are no routines; 'decree init --examples' writes one into .decree/routines")
		return nil
	}
	return s.print(func(w io.Writer) error {
		t := s.fits(&table{}, s.env.Stdout, 2, 0)
		t.add("NAME", "KIND", "PARAMETERS", "WHAT")
		for _, f := range list {
			var names []string
			for _, p := range f.Own() {
				names = append(names, p.Name)
			}
			what, _, _ := strings.Cut(f.Description, "\n")
			if f.Err != nil {
				what = "cannot be used: " + f.Err.Error()
			}
			t.add(oneLine(f.Name), string(f.Kind), strings.Join(names, " "), oneLine(strings.TrimLeft(what, "# ")))
		}
		return t.write(w)
	})
}

func (s *session) oneRoutine(name string, dirs []message.Dir) error {
	f, err := message.Find(name, dirs...)
	if f.Dir == nil { // there is none
		return notFoundf("%s", err).Hintf("'decree routines' lists them")
	}
	f.Err = err
	if s.global.json {
		return s.printJSON(view.RoutineOf(f))
	}
	if err != nil {
		return err
	}
	return s.print(func(w io.Writer) error {
		fmt.Fprintf(w, "routine     %s (%s)\nfile        %s\n", oneLine(f.Name), f.Kind, quoteWord(filepath.Join(f.Dir.Path(), f.File)))
		for i, p := range f.Params {
			head := "parameters"
			if i > 0 {
				head = ""
			}
			fmt.Fprintf(w, "%-10s  %s=%s\n", head, p.Name, quoteWord(p.Value))
		}
		if f.HeadEnd > 0 {
			fmt.Fprintf(w, "head        ends at line %d: what is assigned from there on is not a parameter\n", f.HeadEnd)
		}
		if f.Description != "" {
			fmt.Fprintf(w, "\n%s\n", oneLines(f.Description))
		}
		return nil
	})
}

// oneLines is text whose lines are safe to print.
func oneLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = oneLine(lines[i])
	}
	return strings.Join(lines, "\n")
}

// checkSent says so where a message's routine is not there (yet), or does not take what
// the message sets. What a router or a spec will say is not known yet.
func (s *session) checkSent(p *project.Site, m *message.Message) {
	name := m.Routine
	if name == "" && (p.Config.Router != "" || strings.HasSuffix(m.InputFile, ".spec.md")) {
		return
	}
	if name == "" {
		name = p.Config.DefaultRoutine
	}
	found, err := message.Find(name, queue.OpenRoutines(p).Dirs...)
	if bad, ok := errors.AsType[*message.Error](err); ok {
		text := bad.Error()
		if m.Routine == "" && found.Dir == nil {
			text = "the message names no routine, and the default one, " + quoteWord(name) + ", does not exist; 'decree init --examples' writes one into .decree/routines"
		}
		s.note(text)
		return
	}
	if names := found.Undeclared(m); err == nil && len(names) > 0 {
		s.note(fmt.Sprintf("routine %s declares no parameter %s", name, strings.Join(names, ", ")))
	}
}
