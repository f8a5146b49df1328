package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/page"
	"decree/recorder"
	"decree/report"
)

// reportOptions are report's flags.
type reportOptions struct {
	out, format string
	force       bool
}

func (s *session) reportVerb() verb {
	var o reportOptions
	return verb{
		name: "report", category: lookCategory, args: "[REF | A..B | RACE | SESSION]", words: refWords, interruptible: true, most: 1,
		usage: "write what a record did as one page that needs no decree, or as a comment",
		about: `Writes a page for somebody who has no decree: a mail, a pull request, an artefact of a build. It is one file of HTML without scripts that loads nothing, with what a record was, its files, its diff, what its command printed, and what of that was compared with its hash. REF is the newest record if none is given. A..B is the difference between the tree before A and the tree after B; the name of a race gives all its candidates, and a session of a coding agent, by the beginning of its id, all its records ("decree turns" lists sessions).

With --format md, or a FILE that ends in .md, it is Markdown for a comment: what it was, the files, and the beginning of the diff.

A FILE that is there is replaced only with --force. It comes into being whole or not at all. What a page shows anyone who gets it can read: look at it before you hand it on.`,
		examples: []example{
			{"decree report last -o report.html", "the newest record as a page"},
			{"decree report good..last -o since-good.html", "all that changed since the record labelled 'good'"},
			{"decree report last --format md -o - | head -n 40", "for a comment on a pull request"},
		},
		exits: []exit{{"0", "written"}, {"3", "no such record, race or session"}, {"4", "FILE is there already"}, {"5", "the diff is not what was recorded"}},
		flags: []cli.Flag{
			stringFlag(&o.out, "write to `FILE`, - is stdout", "output", "o"),
			stringFlag(&o.format, "`FORMAT` is html or md; without it FILE's name decides", "format"),
			boolFlag(&o.force, "replace FILE if it is there", "force", "f"),
			s.rootFlag(), s.quietFlag(),
		},
		action: func(ctx context.Context) error { return s.writeReport(ctx, o) },
	}
}

func (s *session) writeReport(ctx context.Context, o reportOptions) error {
	if err := s.checkReport(&o); err != nil {
		return err
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	name := "last"
	if words := s.words(); len(words) > 0 {
		name = words[0]
	}
	subject, err := report.Find(ctx, rec, name, func(ref string) (recorder.Point, error) { return s.resolve(rec, ref) })
	if err != nil {
		return err
	}
	labels, err := s.allLabels()
	if err != nil {
		return err
	}
	options := report.Options{
		Reader: rec, Labels: labels, By: "decree " + Version(),
		Clock: page.Clock{Now: s.env.Now(), Location: s.env.Location},
	}
	write := report.HTML
	if o.format == "md" {
		write = report.Markdown
	}
	fill := func(w io.Writer) error { return write(ctx, w, subject, options) }
	if o.out == "-" {
		return s.print(fill)
	}
	if err := s.replaceFile(ctx, o.out, fill); err != nil {
		return err
	}
	s.say("wrote %s", quoteWord(o.out))
	return nil
}

// checkReport checks and completes the flags.
func (s *session) checkReport(o *reportOptions) error {
	if o.out == "" {
		return usagef("-o FILE is needed").Hintf("'-o -' writes to stdout")
	}
	if o.format == "" {
		o.format = "html"
		if strings.EqualFold(filepath.Ext(o.out), ".md") {
			o.format = "md"
		}
	}
	if o.format != "html" && o.format != "md" {
		return usagef("--format %s: unknown format", quoteWord(o.format)).Hintf("use html or md")
	}
	if o.out == "-" || o.force {
		return nil
	}
	name := o.out
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.env.Cwd, name)
	}
	there, err := os.Stat(name)
	switch {
	case err == nil && there.Mode().IsRegular():
		return refusedf("%s is there already; nothing was written", quoteWord(o.out)).Hintf("--force replaces it")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", quoteWord(o.out), err)
	}
	return nil
}
