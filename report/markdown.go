package report

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"decree/history"
	"decree/page"
	"decree/timeline"
	"decree/view"
)

// The bounds of the Markdown: a comment holds some 64,000 characters.
const (
	commentFiles = 100
	commentDiff  = 30 << 10 // bytes of all diffs
	commentLine  = 500      // bytes of a line of a diff
	commentParts = 20       // records of a session or a race
)

// Markdown writes a summary for a comment: what it was, the files, the proof and the beginning of the
// diff. Texts of the tree stand in code alone, where no name is called and nothing is linked.
func Markdown(ctx context.Context, w io.Writer, s *Subject, o Options) error {
	c := &comment{Options: o, w: bufio.NewWriter(w), left: commentDiff, files: commentFiles}
	c.line("### %s", c.heading(s))
	c.line("")
	if s.ranged() {
		c.changes(o.between(ctx, s), command(s))
		return errors.Join(c.err, c.w.Flush())
	}
	shown := s.Records[:min(len(s.Records), commentParts)]
	for _, r := range shown {
		if len(s.Records) > 1 {
			c.line("#### %s %s", timeline.Badge(r), code(clip(view.Called(r))))
			c.line("")
		}
		c.summary(r)
		c.changes(o.changesOf(r), "decree diff "+r.ID)
	}
	if more := len(s.Records) - len(shown); more > 0 {
		c.line("and %s more", view.Count(more, "record"))
	}
	return errors.Join(c.err, c.w.Flush())
}

type comment struct {
	Options
	w     *bufio.Writer
	left  int // bytes of diffs that still fit
	files int // files that are still listed
	err   error
}

func (c *comment) line(format string, args ...any) {
	if _, err := fmt.Fprintf(c.w, format+"\n", args...); c.err == nil {
		c.err = err
	}
}

func (c *comment) time(t time.Time) string {
	return t.In(c.Clock.Location).Format("2006-01-02 15:04 -07:00")
}

func (c *comment) heading(s *Subject) string {
	first := s.Records[0]
	switch {
	case s.ranged(), s.Kind == timeline.Race, s.Kind == timeline.Session:
		return code(title(s))
	}
	return timeline.Badge(first) + " " + code(clip(named(first)))
}

// summary is a record in a line or two.
func (c *comment) summary(r *history.Record) {
	parts := []string{view.StatusWords(r)}
	if r.ExitCode != nil && *r.ExitCode != 0 {
		parts = append(parts, fmt.Sprintf("exit status %d", *r.ExitCode))
	}
	if judged := view.Judged(r); judged != "" {
		parts = append(parts, "judged "+judged)
	}
	if took := view.Took(r); took != "" {
		parts = append(parts, took)
	}
	if !view.IsCheckpoint(r) && r.Status != history.StatusOpen {
		parts = append(parts, view.ChangesInWords(r.Changes))
	}
	c.line("%s; began %s; record %s", strings.Join(parts, "; "), c.time(r.Started), code(r.ID))
	c.line("")
}

// changes lists files, proof and the beginning of a diff; whole is the command that shows all of it.
func (c *comment) changes(s source, whole string) {
	if s.none != "" {
		c.line("%s", s.none)
		c.line("")
		return
	}
	list, total, err := s.files(max(1, c.files))
	if c.err = errors.Join(c.err, err); c.err != nil {
		return
	}
	if total.All() == 0 {
		c.line("Nothing differs.")
		return
	}
	for _, f := range list {
		c.line("- %s %s%s", f.Word, code(view.ShownPath(f.Path)), counted(f))
	}
	c.files -= len(list)
	if more := total.All() - len(list); more > 0 {
		c.line("- and %s more", view.Count(more, "path"))
	}
	begin, cut, err := beginning(s, c.left)
	if c.err = errors.Join(c.err, err); c.err != nil {
		return
	}
	c.left -= len(begin)
	c.line("")
	c.line("%s, verified by hash %s: %s.", total, c.time(c.Clock.Now), s.proof)
	c.line("")
	if begin != "" {
		fence := strings.Repeat("`", max(3, longestRun(begin)+1))
		c.line("%sdiff\n%s%s", fence, begin, fence)
	}
	if cut {
		c.line("\nThe diff goes on: %s", code(whole))
	}
	c.line("")
}

func counted(f page.File) string {
	switch {
	case f.Added+f.Removed > 0:
		return fmt.Sprintf(" +%d -%d", f.Added, f.Removed)
	case f.Note != "":
		return " (" + f.Note + ")"
	}
	return ""
}

// beginning is the first lines of a diff, as a terminal shows it; all of it is read, so that its hash is
// compared.
func beginning(s source, most int) (text string, cut bool, err error) {
	var b bytes.Buffer
	add := func(format string, args ...any) {
		line := fmt.Sprintf(format+"\n", args...)
		if cut = cut || b.Len()+len(line) > most; !cut {
			b.WriteString(line)
		}
	}
	err = s.read(func(r io.Reader) error {
		scan := page.NewScanner(r)
		for {
			l, err := scan.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			switch l.Kind {
			case page.SectionLine:
				add("%s %s", view.OpWord(l.Section.Op), view.ShownPath(l.Section.Path))
			case page.HunkLine:
				add("%s", l.Hunk.Header())
			default:
				part := l.Text[:min(len(l.Text), commentLine)]
				more := ""
				if l.Left > 0 || len(part) < len(l.Text) {
					more = " …"
				}
				add("%c%s%s", l.Kind, visible(string(part)), more)
			}
		}
	})
	return b.String(), cut, err
}

// visible is a line with its controls, but for tabs, as escapes.
func visible(line string) string {
	parts := strings.Split(line, "\t")
	for i, p := range parts {
		parts[i] = view.OneLine(p)
	}
	return strings.Join(parts, "\t")
}

// code is text as code of Markdown, whatever is in it.
func code(text string) string {
	text = view.OneLine(text)
	fence := strings.Repeat("`", longestRun(text)+1)
	if text == "" || strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || strings.TrimSpace(text) == "" {
		text = " " + text + " "
	}
	return fence + text + fence
}

// longestRun is the longest run of backticks.
func longestRun(text string) (most int) {
	n := 0
	for _, r := range text {
		if n++; r != '`' {
			n = 0
		}
		most = max(most, n)
	}
	return most
}
