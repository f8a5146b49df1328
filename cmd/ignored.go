package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"decree/recorder"
	"decree/tree"
	"decree/view"
)

func (s *session) ignoredVerb() verb {
	return verb{
		name: "ignored", category: lookCategory, args: "PATH...", words: pathWords, most: anyWords,
		missing:  usagef("a PATH is missing").Hintf("for example 'decree ignored build/out.bin'"),
		usage:    "say which rule leaves a path out",
		about:    `Says of each PATH whether decree records it, and which rule in which file and line decides. The files are .gitignore and .decreeignore, in any directory; .git and .decree are always left out.`,
		examples: []example{{"decree ignored build/out.bin", "why is this file not in my records?"}},
		exits:    []exit{{"0", "answered, whatever the answer"}},
		flags:    s.reading(),
		action:   s.ignored,
	}
}

func (s *session) ignored(ctx context.Context) error {
	rec, err := s.forLooking()
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, s.words())
	if err != nil {
		return err
	}
	for i, word := range s.words() {
		if strings.HasSuffix(word, "/") && paths[i] != "" {
			paths[i] += "/" // a directory, even if nothing is there
		}
	}
	answers, err := rec.Ignored(ctx, paths)
	if err != nil {
		return err
	}
	out := view.IgnoredOf(answers)
	if s.global.json {
		return s.printJSON(out)
	}
	return s.print(func(w io.Writer) error {
		for _, v := range out {
			if _, err := fmt.Fprintln(w, oneLine(ignoredText(v))); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteLeftOut says where a rule leaves out the directory that decree was called from.
func (s *session) noteLeftOut(ctx context.Context, rec *recorder.Reader) {
	here, err := s.inTree(rec.Project().Root, []string{"."})
	if err != nil || here[0] == "" {
		return
	}
	answers, err := rec.Ignored(ctx, []tree.Path{here[0] + "/"})
	if err != nil { // which the capture tells
		return
	}
	if v := view.IgnoredOf(answers)[0]; v.Ignored && v.Source != "" {
		s.note(fmt.Sprintf("%s is left out by line %d of %s: nothing in it is recorded or put back; 'decree --root . checkpoint' makes it a project of its own", v.Path, v.Line, v.Source))
	}
}

func ignoredText(v view.Ignored) string {
	path := cmp.Or(v.Path, ".")
	text := path + ": recorded"
	if v.Ignored {
		text = path + ": left out"
	}
	switch {
	case v.Source != "":
		text += fmt.Sprintf(" by line %d of %s: %s", v.Line, v.Source, v.Rule)
	case v.Ignored && v.Reason == "always":
		text += ": .git and .decree are never recorded"
	case v.Ignored && v.Reason == "store":
		text += ": it is decree's own store"
	case v.Ignored:
		text += ": neither file, directory nor symbolic link"
	}
	if v.Decided != "" && v.Decided != v.Path {
		text += " (" + v.Decided + "/ is left out as a whole)"
	}
	if v.Missing {
		text += " (nothing is there now)"
	}
	return text
}
