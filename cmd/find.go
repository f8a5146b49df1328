package cmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"decree/history"
	"decree/patch"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

func (s *session) findVerb() verb {
	return verb{
		name: "find", category: lookCategory, args: "NAME", words: pathWords, most: 1,
		missing: usagef("a NAME is missing").Hintf("for example 'decree find notes.txt', or \"decree find '*.go'\""),
		usage:   "find files by name in all records",
		about:   `Finds the files and links of a name in the tree and in all records, also those that are gone, and says of each what happened to it last. NAME is a file's name or a pattern of one (*, ?, [a-z]); with a slash in it, it is compared with whole paths from the root.`,
		examples: []example{
			{"decree find notes.txt", "where is it, where was it?"},
			{"decree find '*.go'", "every file that ever had this ending"},
		},
		exits:  []exit{{"3", "no record has or had such a file"}},
		flags:  s.reading(),
		action: s.find,
	}
}

func (s *session) find(ctx context.Context) error {
	name := s.words()[0]
	if _, err := path.Match(name, ""); err != nil {
		return usagef("%s: not a pattern", quoteWord(name)).Hintf("put a backslash before a [ that is part of the name")
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	paths, dirs, err := s.everNamed(ctx, rec, name)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return noneNamed(name, dirs)
	}
	last, err := s.lastOf(rec, paths)
	if err != nil {
		return err
	}
	return s.printFound(rec, paths, last)
}

// noneNamed is the error for a name that no file has or had: with what to do instead if
// directories have it.
func noneNamed(name string, dirs []tree.Path) error {
	if len(dirs) > 0 {
		dir := shownPath(dirs[0])
		return notFoundf("%s: no file has or had this name, only a directory: %s", quoteWord(name), dir).
			Hintf("'decree log %s' lists what changed in it, and \"decree find '%s/*'\" its files", quoteWord(string(dirs[0])), dir)
	}
	e := notFoundf("%s: no such name, neither in the tree nor in any record", quoteWord(name))
	if strings.ContainsAny(name, "*?[") {
		return e.Hintf("'decree log -S TEXT' finds a text in the files of all records")
	}
	return e.Hintf("a pattern finds more: \"decree find '*%s*'\"", name)
}

// everNamed are the paths of files and links of that name, and of directories that have
// or had files, both sorted.
func (s *session) everNamed(ctx context.Context, rec *recorder.Reader, name string) (files, dirs []tree.Path, err error) {
	name = strings.TrimSuffix(name, "/")
	fits := func(p tree.Path) bool {
		subject := string(p)
		if !strings.Contains(name, "/") {
			subject = p.Name()
		}
		ok, err := path.Match(name, subject)
		return err == nil && ok || subject == name
	}
	found, above := map[tree.Path]bool{}, map[tree.Path]bool{}
	look := func(p tree.Path) {
		if fits(p) {
			found[p] = true
		}
		for dir := p.Parent(); dir != "" && !above[dir]; dir = dir.Parent() {
			above[dir] = true
		}
	}
	err = rec.History().EachEntry(func(p tree.Path, e tree.Entry) {
		if e.Type != tree.Dir {
			look(p)
		}
	})
	if err == nil {
		err = rec.Files(ctx, recorder.FilesOptions{}, func(p tree.Path) error { look(p); return nil })
	}
	maps.DeleteFunc(above, func(dir tree.Path, _ bool) bool { return !fits(dir) })
	return slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(above)), err
}

// lastMoment is what happened to a path last.
type lastMoment struct {
	history.Moment
	fact *patch.Section
}

func (s *session) lastOf(rec *recorder.Reader, paths []tree.Path) (map[tree.Path]lastMoment, error) {
	last := map[tree.Path]lastMoment{}
	warnings, err := rec.History().Past(history.PastOptions{Paths: paths}, func(m history.Moment) bool {
		if m.Record.Isolated != "" && !m.Outside { // it changed nothing in the tree
			return true
		}
		for _, f := range m.Facts {
			if _, known := last[f.Path]; !known {
				last[f.Path] = lastMoment{m, f}
			}
		}
		return true
	})
	for _, w := range warnings {
		s.note(w)
	}
	return last, err
}

func (s *session) printFound(rec *recorder.Reader, paths []tree.Path, last map[tree.Path]lastMoment) error {
	if s.global.json {
		out := []view.Found{}
		for _, p := range paths {
			f := view.Found{Path: manifestPath(p), Exists: exists(rec.Project().Root, p)}
			if m, ok := last[p]; ok {
				f.Change, f.Outside, f.Record = view.OpWord(m.fact.Op), m.Outside, m.Record.ID
			}
			out = append(out, f)
		}
		return s.printJSON(out)
	}
	return s.page(func(w io.Writer) error {
		t := s.fits(&table{}, s.env.Stdout, 0)
		t.add("PATH", "LAST", "WHEN", "RECORD")
		for _, p := range paths {
			m, ok := last[p]
			switch {
			case !ok:
				t.add(shownPath(p), "there since the first record", "", "")
			case m.Outside:
				t.add(shownPath(p), factInWords(m.fact), s.ago(m.Record.Started), "outside, found by "+s.shortID(m.Record.ID))
			default:
				t.add(shownPath(p), factInWords(m.fact), s.ago(m.Record.Started), s.shortID(m.Record.ID))
			}
		}
		if err := t.write(w); err != nil {
			return err
		}
		for _, p := range paths {
			if m, ok := last[p]; ok && m.fact.New == nil && !m.Outside {
				_, err := fmt.Fprintf(w, "\n'decree show %s:%s' prints it as it was\n", s.shortID(m.Record.ID), shownPath(p))
				return err
			}
		}
		return nil
	})
}
