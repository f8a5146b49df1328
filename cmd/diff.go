package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"decree/patch"
	"decree/recorder"
	"decree/tree"
)

// diffOptions are diff's flags.
type diffOptions struct {
	stat, nameOnly, raw, now, edits, exitCode bool
	color                                     string
	context                                   int
	loose                                     bool
}

// usualContext is how many lines of context a diff has.
const usualContext = 3

// drawn says whether hunks are to be made anew.
func (o diffOptions) drawn() bool { return o.loose || o.context != usualContext }

func (s *session) diffVerb() verb {
	o := diffOptions{context: usualContext}
	return verb{
		name: "diff", category: lookCategory, args: "[REF | A..B | A B] [PATH...]", words: refAndPathWords, most: anyWords,
		usage: "show what a record changed, or the difference between two records",
		about: `Shows the changes.diff of a record, of the newest one if no REF is given; of a checkpoint, which changes nothing, what was edited by hand since the record before it: its outside.diff. A..B, or A B, is the difference between the tree before A and the tree after B; with --now, between the tree that the record found and the tree as it is now. With PATHs, only what lies at or below them. A draft is no state of the tree: with --now, or beside a record, only the paths that it changed are compared, and two drafts at those that both changed.

On a terminal it is coloured, goes through a pager ($DECREE_PAGER, $PAGER, less), and leaves decree's own lines out. To a pipe or a file, and with --raw, it is byte for byte the changes.diff that "patch -p1" and "git apply" take.

The first word is a REF if it names a record, else a PATH, and so is the second; "--" before it makes it a PATH. A word that is neither is an error.`,
		examples: []example{
			{"decree diff", "what the newest record changed"},
			{"decree diff last~1 --stat", "the one before in a table"},
			{"decree diff good --now src/", "what became of src/ since the record labelled 'good'"},
			{"decree diff try --now", "what became of the paths of the draft 'try' since its run began"},
			{"decree diff last | patch -p1 -R", "take it back with another tool"},
			{"decree diff -w -U 10 good last", "without changes that are only white space, with ten lines of context"},
			{"decree diff --edits", "what you edited since the newest record"},
		},
		exits: []exit{{"0", "shown, changes or not"}, {"1", "with --exit-code: there are changes"}, {"3", "no such record or path"}, {"5", "changes.diff is not what was recorded"}},
		flags: s.reading(
			boolFlag(&o.stat, "a table: each file with its added and removed lines", "stat"),
			boolFlag(&o.nameOnly, "only the paths, one per line, quoted as in the manifest", "name-only"),
			boolFlag(&o.raw, "the bytes of changes.diff, also on a terminal", "raw"),
			boolFlag(&o.now, "from the record to the tree as it is now", "now"),
			boolFlag(&o.edits, "what was edited by hand before the record: its outside.diff; without a REF, since the newest record", "edits"),
			boolFlag(&o.exitCode, "exit with 1 if there are changes, 0 if there are none", "exit-code"),
			intFlag(&o.context, "show `N` lines of context", "unified", "U"),
			boolFlag(&o.loose, "leave out changes that are only white space; patch cannot apply the result", "ignore-all-space", "w"),
			stringFlag(&o.color, "colour the text `WHEN`: always, never or auto, which is on a terminal", "color"),
		),
		action: func(ctx context.Context) error { return s.diff(ctx, o) },
	}
}

func (s *session) diff(ctx context.Context, o diffOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	source, err := s.diffSource(ctx, rec, o)
	if err != nil {
		return err
	}
	if source.note != "" {
		s.note(source.note)
	}
	view := s.diffView(rec, o)
	if o.exitCode {
		view.out = io.Discard
		if err := source.read(func(r io.Reader) error {
			n, err := view.show(r, source.paths)
			s.code = min(n, 1)
			return err
		}); err != nil {
			return err
		}
	}
	switch {
	case o.stat || s.global.json && !o.nameOnly:
		return s.diffStat(source)
	case o.nameOnly:
		return s.diffNames(source)
	case o.raw || !isTerminal(s.env.Stdout) && o.color != "always" && !o.drawn():
		return s.print(func(w io.Writer) error { return source.copy(w) })
	}
	return s.page(func(w io.Writer) error {
		view.out = w
		return source.read(func(r io.Reader) error {
			n, err := view.show(r, source.paths)
			if err == nil && n == 0 {
				_, err = fmt.Fprintln(w, "no changes")
			}
			return err
		})
	})
}

func (o diffOptions) check() error {
	n := 0
	for _, set := range []bool{o.stat, o.nameOnly, o.raw} {
		if set {
			n++
		}
	}
	if n > 1 {
		return usagef("--stat, --name-only and --raw cannot be used together").Hintf("choose one")
	}
	if o.context < 0 {
		return usagef("--unified %d: not a number of lines", o.context).Hintf("the default is 3")
	}
	if o.drawn() && (n > 0) {
		return usagef("-U and -w exclude --stat, --name-only and --raw").Hintf("choose one")
	}
	if o.edits && o.now {
		return usagef("--edits and --now cannot be used together").Hintf("'decree diff --edits' without a REF compares with the tree as it is now")
	}
	if !slices.Contains([]string{"", "always", "never", "auto"}, o.color) {
		return usagef("--color %s: unknown value", quoteWord(o.color)).Hintf("use always, never or auto")
	}
	return nil
}

// diffView is how a diff is shown to people.
func (s *session) diffView(rec *recorder.Reader, o diffOptions) diffView {
	view := diffView{paint: s.paint(s.env.Stdout)}
	if o.color != "" && o.color != "auto" {
		view.paint = o.color == "always"
	}
	if o.drawn() {
		view.redraw = func(sec *patch.Section) ([]patch.Hunk, error) { return redrawn(rec, sec, o) }
	}
	return view
}

// redrawn are the hunks of a file that was modified with another context. Where the store
// does not have what it was before, they stay as they are.
func redrawn(rec *recorder.Reader, sec *patch.Section, o diffOptions) ([]patch.Hunk, error) {
	if len(sec.Hunks) == 0 || sec.Old == nil || sec.New == nil || sec.Old.Type != tree.Regular {
		return sec.Hunks, nil
	}
	f, err := rec.OpenContent(sec.Old.SHA256)
	if err != nil {
		return sec.Hunks, nil //nolint:nilerr // forgotten, or another store's: three lines are at hand
	}
	defer f.Close()
	old, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return sec.Redraw(old, o.context, o.loose), nil
}

func (s *session) diffStat(source *diffSource) error {
	stat, err := source.stat()
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printJSON(stat)
	}
	return s.page(func(w io.Writer) error { return s.writeStat(w, stat) })
}

func (s *session) diffNames(source *diffSource) error {
	names := []string{}
	err := source.read(func(r io.Reader) error {
		return patch.EachSection(r, source.paths, func(sec *patch.Section) error {
			name := manifestPath(sec.Path)
			// A path that changed its kind has two sections.
			if n := len(names); n == 0 || names[n-1] != name {
				names = append(names, name)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printJSON(names)
	}
	return s.print(func(w io.Writer) error {
		for _, name := range names {
			if _, err := fmt.Fprintln(w, shownQuoted(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// diffSource is a diff that can be had, and the paths that are wanted of it.
type diffSource struct {
	// write writes the whole diff, or that of paths where it can be made for them alone.
	write func(w io.Writer) error
	paths []tree.Path
	note  string // for people, if there is something to say about it
}

// read gives the diff to use as a stream.
func (d *diffSource) read(use func(io.Reader) error) error {
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := d.write(w)
		w.CloseWithError(err)
		done <- err
	}()
	err := use(r)
	r.CloseWithError(errEnough)
	if werr := <-done; werr != nil && !errors.Is(werr, errEnough) {
		return werr
	}
	return err
}

// stat counts what the diff changes.
func (d *diffSource) stat() (stat diffstat, err error) {
	err = d.read(func(r io.Reader) (err error) {
		stat, err = readStat(r, d.paths)
		return err
	})
	return stat, err
}

// has says whether the diff has something at or below one of paths; none: at all.
func (d *diffSource) has(paths []tree.Path) (found bool, err error) {
	err = d.read(func(r io.Reader) error {
		return patch.EachSection(r, paths, func(*patch.Section) error {
			found = true
			return errEnough
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

// errEnough stops the writer of a diff whose reader has failed.
var errEnough = errors.New("nobody reads on")

// copy writes the diff as it is, or its wanted sections.
func (d *diffSource) copy(w io.Writer) error {
	if len(d.paths) == 0 {
		return d.write(w)
	}
	begun := false
	return d.read(func(r io.Reader) error {
		return patch.EachSection(r, d.paths, func(sec *patch.Section) error {
			if !begun {
				begun = true
				if _, err := io.WriteString(w, diffVersion); err != nil {
					return err
				}
			}
			_, err := w.Write(sec.Raw)
			return err
		})
	})
}

// diffVersion is the first line of every changes.diff that is not empty.
const diffVersion = patch.VersionLine + "\n"
