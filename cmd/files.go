package cmd

import (
	"context"
	"io"

	"decree/recorder"
	"decree/tree"
)

// filesOptions are files' flags.
type filesOptions struct{ null, ignored, after bool }

func (s *session) filesVerb() verb {
	var o filesOptions
	return verb{
		name: "files", category: lookCategory, args: "[REF] [PATH]", words: refAndPathWords, most: 2,
		usage: "list the tree as decree sees it",
		about: `Lists the files and symbolic links that decree records, one path a line, relative to the root and quoted as in manifest.json. With PATH only what is below it. With REF the tree is the one that the record found, with --after the one that it left; with a draft the paths that its run left. The first word is a REF if it names a record.`,
		examples: []example{
			{"decree files", "everything that would be recorded"},
			{"decree files --ignored src", "what the ignore rules leave out below src"},
			{"decree files good src", "what src held at the record labelled 'good'"},
			{"decree files -0 | xargs -0 ls -l", "raw names for another program"},
		},
		flags: s.reading(
			boolFlag(&o.null, "end each path with a NUL byte and do not quote it", "null", "0"),
			boolFlag(&o.ignored, "list the paths that are left out", "ignored"),
			boolFlag(&o.after, "with REF: the tree when the record ended", "after"),
		),
		action: func(ctx context.Context) error { return s.files(ctx, o) },
	}
}

func (s *session) files(ctx context.Context, o filesOptions) error {
	if o.null && s.global.json {
		return usagef("--null and --json cannot be used together").Hintf("choose one")
	}
	rec, err := s.forLooking()
	if err != nil {
		return err
	}
	point, words, err := s.filesWords(rec, o)
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, words)
	if err != nil {
		return err
	}
	prefix := tree.Path("")
	if len(paths) == 1 {
		prefix = paths[0]
	}
	each := func(visit func(path tree.Path) error) error {
		return rec.Files(ctx, recorder.FilesOptions{Ignored: o.ignored, Prefix: prefix}, visit)
	}
	switch {
	case point.Record != nil:
		each = func(visit func(path tree.Path) error) error { return filesAt(rec, point, prefix, visit) }
	case len(paths) == 1 && !exists(rec.Project().Root, prefix):
		return notFoundf("%s: no such path", quoteWord(words[0])).Hintf("PATHs are relative to the working directory")
	}
	return s.printPaths(o.null, each)
}

// filesWords takes files' words apart: a REF, if the first names a record, and PATHs.
func (s *session) filesWords(rec *recorder.Reader, o filesOptions) (point recorder.Point, words []string, err error) {
	words = s.words()
	is := false
	if len(s.line.words) > 0 && rec.HasProject() {
		if is, err = s.isRef(rec, words[0]); err != nil {
			return point, nil, err
		}
	}
	switch {
	case is && o.ignored:
		return point, nil, usagef("a REF and --ignored cannot be used together").Hintf("what a record left out is no longer known")
	case is:
		point, err = s.resolve(rec, words[0])
		point.After = point.After || o.after
		words = words[1:]
	case o.after:
		return point, nil, usagef("--after needs a REF").Hintf("for example 'decree files --after last'")
	}
	if err == nil && len(words) > 1 {
		err = notFoundf("%s: neither a record nor a label", quoteWord(words[0])).Hintf("'decree log' lists the records, 'decree label' the labels")
	}
	return point, words, err
}

// filesAt are the files and links that the tree at a point had at or below prefix.
func filesAt(rec *recorder.Reader, point recorder.Point, prefix tree.Path, visit func(path tree.Path) error) error {
	found := prefix == ""
	err := rec.Entries(point, prefix, func(path tree.Path, e tree.Entry) error {
		found = true
		if e.Type == tree.Dir {
			return nil
		}
		return visit(path)
	})
	if err == nil && !found {
		err = notFoundf("%s: not in the tree of %s", shownPath(prefix), point.Record.ID).Hintf("PATHs are relative to the working directory")
	}
	return err
}

func (s *session) printPaths(null bool, each func(visit func(path tree.Path) error) error) error {
	if s.global.json {
		found := []string{}
		err := each(func(path tree.Path) error {
			found = append(found, manifestPath(path))
			return nil
		})
		if err != nil {
			return err
		}
		return s.printJSON(found)
	}
	return s.print(func(w io.Writer) error {
		return each(func(path tree.Path) error {
			line := shownPath(path) + "\n"
			if null {
				line = string(path) + "\x00"
			}
			_, err := io.WriteString(w, line)
			return err
		})
	})
}
