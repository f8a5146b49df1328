package cmd

import (
	"context"
	"io"

	"decree/recorder"
)

// filesOptions are files' flags.
type filesOptions struct{ null, ignored bool }

func (s *session) filesVerb() verb {
	var o filesOptions
	return verb{
		name: "files", category: lookCategory, args: "[PATH]", words: pathWords,
		usage: "list the tree as decree sees it",
		about: `Lists the files and symbolic links that decree records, one path a line, relative to the root and quoted as in manifest.json. With PATH only what is below it.`,
		examples: []example{
			{"decree files", "everything that would be recorded"},
			{"decree files --ignored src", "what the ignore rules leave out below src"},
			{"decree files -0 | xargs -0 ls -l", "raw names for another program"},
		},
		flags: s.reading(
			boolFlag(&o.null, "end each path with a NUL byte and do not quote it", "null", "0"),
			boolFlag(&o.ignored, "list the paths that are left out", "ignored"),
		),
		action: func(ctx context.Context) error { return s.files(ctx, o) },
	}
}

func (s *session) files(ctx context.Context, o filesOptions) error {
	if err := s.atMost(1); err != nil {
		return err
	}
	if o.null && s.global.json {
		return usagef("--null and --json exclude each other").hint("choose one")
	}
	rec, err := s.forLooking(ctx)
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project(), s.words())
	if err != nil {
		return err
	}
	options := recorder.FilesOptions{Ignored: o.ignored}
	if len(paths) == 1 {
		options.Prefix = paths[0]
		if !exists(rec.Project().Root, paths[0]) {
			return notFoundf("%s: no such path", shownPath(s.words()[0])).hint("PATHs are relative to the working directory")
		}
	}
	if s.global.json {
		found := []string{}
		err := rec.Files(ctx, options, func(path string) error {
			found = append(found, manifestPath(path))
			return nil
		})
		if err != nil {
			return err
		}
		return s.printJSON(found)
	}
	return s.print(func(w io.Writer) error {
		return rec.Files(ctx, options, func(path string) error {
			line := shownPath(path) + "\n"
			if o.null {
				line = path + "\x00"
			}
			_, err := io.WriteString(w, line)
			return err
		})
	})
}
