package cmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"decree/patch"
	"decree/tree"

	"decree/view"
)

// diffView shows a changes.diff to people: no "# " lines, coloured by hunk, one
// line for a binary file or a directory. Control characters become visible: a
// recorded file must not be able to talk to the terminal.
type diffView struct {
	out   io.Writer
	paint paint
	// redraw makes the hunks of a section anew; nil: they are shown as they are.
	redraw func(*patch.Section) ([]patch.Hunk, error)
}

// show writes all sections of diff that wanted lets through.
func (v diffView) show(diff io.Reader, wanted []tree.Path) (sections int, err error) {
	err = patch.EachSection(diff, wanted, func(sec *patch.Section) error {
		if v.redraw != nil {
			hunks, err := v.redraw(sec)
			if err != nil {
				return err
			}
			if len(hunks) == 0 && len(sec.Hunks) > 0 && sec.Op == patch.OpModify && sec.Old.Mode == sec.New.Mode {
				return nil // nothing but white space
			}
			sec.Hunks = hunks
		}
		sections++
		return v.section(sec)
	})
	return sections, err
}

func (v diffView) section(sec *patch.Section) error {
	if sec.Binary || isDirOp(sec.Op) {
		_, err := fmt.Fprintln(v.out, v.paint.in(bold, sectionTitle(sec)))
		return err
	}
	head, _, _ := bytes.Cut(sec.Raw, []byte("\n@@ "))
	for line := range strings.SplitSeq(strings.TrimRight(string(head), "\n"), "\n") {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		if _, err := fmt.Fprintln(v.out, v.paint.in(bold, visible(line))); err != nil {
			return err
		}
	}
	for _, h := range sec.Hunks {
		if err := v.hunk(h); err != nil {
			return err
		}
	}
	return nil
}

func (v diffView) hunk(h patch.Hunk) error {
	title := fmt.Sprintf("@@ -%s +%s @@", lineRange(h.OldStart, h.OldLines), lineRange(h.NewStart, h.NewLines))
	if _, err := fmt.Fprintln(v.out, v.paint.in(cyan, title)); err != nil {
		return err
	}
	for line := range bytes.Lines(h.Body) {
		text := visible(strings.TrimSuffix(string(line), "\n"))
		switch line[0] {
		case '+':
			text = v.paint.in(green, text)
		case '-':
			text = v.paint.in(red, text)
		}
		if _, err := fmt.Fprintln(v.out, text); err != nil {
			return err
		}
	}
	return nil
}

// lineRange is one side of a hunk's header: a count of 1 is left out.
func lineRange(start, lines int) string {
	if lines == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, lines)
}

// visible is line with its control characters, but for tabs, made visible.
func visible(line string) string {
	if !strings.Contains(line, "\t") {
		return oneLine(line)
	}
	parts := strings.Split(line, "\t")
	for i, p := range parts {
		parts[i] = oneLine(p)
	}
	return strings.Join(parts, "\t")
}

func isDirOp(op patch.Op) bool {
	return op == patch.OpMkdir || op == patch.OpRmdir || op == patch.OpDirMode
}

// sectionTitle is a section in one line, for those that have no text to show.
func sectionTitle(sec *patch.Section) string {
	return view.OpWord(sec.Op) + " " + shownPath(sec.Path) + ": " + sectionFacts(sec)
}

// sectionFacts is what changed, where it is not lines.
func sectionFacts(sec *patch.Section) string {
	switch {
	case sec.Op == patch.OpMode || sec.Op == patch.OpDirMode:
		return "mode " + tree.FormatMode(sec.Old.Mode) + " -> " + tree.FormatMode(sec.New.Mode)
	case sec.Op == patch.OpMkdir || sec.Op == patch.OpRmdir:
		return "directory"
	case !sec.Binary:
		return ""
	case sec.Old == nil:
		return "binary, " + size(sec.New.Size)
	case sec.New == nil:
		return "binary, " + size(sec.Old.Size)
	}
	return "binary, " + size(sec.Old.Size) + " -> " + size(sec.New.Size)
}
