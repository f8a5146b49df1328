package page

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"decree/patch"
	"decree/tree"
	"decree/view"
)

// DiffOptions say how a diff is drawn.
type DiffOptions struct {
	Split bool   // old and new side by side
	Marks bool   // a check box before each file and each hunk; see Mark
	Begin Place  // where the page begins
	Rows  int    // how many lines a page has; 0: all
	Plain int    // how many lines are drawn as a table; the rest is plain text, folded. 0: all
	Name  string // what the ids of its sections begin with, where a page has several diffs
	// Link gives the address of a file's own page; nil: there is none.
	Link func(tree.Path) string
}

// Place is a line in a diff: lines count within their section, both from 0. The zero Place
// is the beginning.
type Place struct{ Section, Line int }

// String is the place as an address has it: "12.300".
func (p Place) String() string { return fmt.Sprintf("%d.%d", p.Section, p.Line) }

// ParsePlace is the inverse of String; what it does not know is the beginning.
func ParsePlace(text string) Place {
	a, b, _ := strings.Cut(text, ".")
	section, err := strconv.Atoi(a)
	line, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || section < 0 || line < 0 {
		return Place{}
	}
	return Place{section, line}
}

// Mark is the value of the check box, named "mark", of a hunk of a path, which counts from 1;
// 0 is the whole path.
func Mark(path tree.Path, hunk int) string {
	return strconv.Itoa(hunk) + ":" + url.QueryEscape(string(path))
}

// ParseMark is the inverse of Mark.
func ParseMark(value string) (path tree.Path, hunk int, err error) {
	number, escaped, _ := strings.Cut(value, ":")
	hunk, err = strconv.Atoi(number)
	text, err2 := url.QueryUnescape(escaped)
	if err != nil || err2 != nil || hunk < 0 || text == "" {
		return "", 0, fmt.Errorf("%s: not a mark of a file or hunk", view.OneLine(tree.Clip(value)))
	}
	return tree.Path(text), hunk, nil
}

// SectionID is the id of the section with that index in a diff of that name.
func SectionID(name string, index int) string { return name + "file-" + strconv.Itoa(index) }

// Diff draws a diff, a section of HTML for each path, while it reads it. It returns where
// the next page begins, or nil, and how many lines it drew. Errors are those of the
// diff, whose beginning has been drawn then, and of w.
func Diff(w io.Writer, diff io.Reader, o DiffOptions) (next *Place, lines int, err error) {
	d := &drawer{w: bufio.NewWriterSize(w, 64<<10), o: o}
	err = d.draw(NewScanner(diff))
	if errors.Is(err, errFull) {
		err = nil
	}
	return d.next, d.lines, errors.Join(err, d.w.Flush())
}

// errFull says that a page has its lines.
var errFull = errors.New("the page is full")

// The bounds of a block, lines that are drawn together.
const (
	blockRows  = 2000
	blockBytes = 192 << 10
)

// row is a line of a hunk, or its head.
type row struct {
	kind     byte
	old, new int
	text     string
	left     int
	noEnd    bool
	head     string
	hunk     int
}

type drawer struct {
	w       *bufio.Writer
	o       DiffOptions
	colours Colours
	lines   int    // drawn or in block
	next    *Place // of the next page

	sec     *patch.Section // that is being read; nil: it is before the page
	index   int
	line    int // of the section: those passed over and those in block
	block   []row
	size    int  // bytes in block
	begun   bool // its head is drawn
	table   bool // a table is open,
	folded  bool // or the plain rest
	hunk    int  // of the newest line
	headOf  string
	headDue bool // the hunk's head is not in the block yet
}

func (d *drawer) draw(s *Scanner) error {
	for {
		l, err := s.Next()
		if errors.Is(err, io.EOF) {
			return d.end()
		}
		if err != nil {
			return errors.Join(d.end(), err)
		}
		if l.Kind == SectionLine {
			if err := errors.Join(d.end(), d.begin(l)); err != nil {
				return err
			}
		} else if d.sec != nil {
			if err := d.add(l); err != nil {
				return err
			}
		}
	}
}

// begin notes the section.
func (d *drawer) begin(l *Line) error {
	d.sec, d.index, d.line, d.begun, d.headDue = nil, l.Index, 0, false, false
	switch {
	case l.Index < d.o.Begin.Section:
		return nil
	case d.o.Rows > 0 && d.lines >= d.o.Rows:
		d.next = &Place{Section: l.Index}
		return errFull
	}
	d.sec = l.Section
	return nil
}

func (d *drawer) add(l *Line) error {
	if l.Kind == HunkLine {
		d.hunk, d.headOf, d.headDue = l.Number, l.Hunk.Header(), true
		return nil
	}
	passed := l.Index == d.o.Begin.Section && d.line < d.o.Begin.Line
	if d.o.Rows > 0 && d.lines >= d.o.Rows && !passed {
		d.next = &Place{l.Index, d.line}
		return errors.Join(d.end(), errFull)
	}
	d.line++
	if passed {
		return nil
	}
	d.lines++
	if d.headDue {
		d.headDue = false
		d.block = append(d.block, row{kind: HunkLine, head: d.headOf, hunk: d.hunk})
	}
	d.block = append(d.block, row{l.Kind, l.Old, l.New, string(l.Text), l.Left, l.NoEnd, "", d.hunk})
	if d.size += len(l.Text); len(d.block) >= blockRows || d.size >= blockBytes {
		return d.flush(false)
	}
	return nil
}

// end ends the section at hand.
func (d *drawer) end() error {
	if d.sec == nil {
		return nil
	}
	if err := d.flush(true); err != nil {
		return err
	}
	d.close()
	d.write("</section>\n")
	d.sec = nil
	return nil
}

// write writes text; Flush has what goes wrong.
func (d *drawer) write(text string) { _, _ = d.w.WriteString(text) }

// close ends the table or the plain rest that is open.
func (d *drawer) close() {
	switch {
	case d.table:
		d.write("</tbody></table>\n")
	case d.folded:
		d.write("</pre></details>\n")
	}
	d.table, d.folded = false, false
}

// flush draws the block; last says that the section ends with it.
func (d *drawer) flush(last bool) error {
	if !d.begun {
		d.begun = true
		if err := d.head(last && d.next == nil); err != nil {
			return err
		}
	}
	rows := d.block
	d.block, d.size = d.block[:0], 0
	switch {
	case len(rows) == 0:
		return nil
	case d.o.Plain > 0 && d.lines > d.o.Plain:
		return d.plain(rows)
	}
	return d.draws(rows)
}

// head draws what stands above a section's lines. Counts are known only of a section that
// is whole in the block.
func (d *drawer) head(whole bool) error {
	sec, id := d.sec, SectionID(d.o.Name, d.index)
	b := []byte(`<section class="file" aria-labelledby="` + id + `">` + "\n" + `<h3 id="` + id + `">`)
	word := view.OpWord(sec.Op)
	if d.o.Marks {
		b = append(b, `<label class="mark"><input type="checkbox" name="mark" data-file value="`+Mark(sec.Path, 0)+`"><span class="hidden">all of `...)
		b = append(append(b, Path(sec.Path)...), "</span></label> "...)
	}
	b = append(b, `<span class="op `+word+`">`+word+`</span> `...)
	b = appendPath(b, sec.Path, d.o.Link)
	if d.index == d.o.Begin.Section && d.o.Begin.Line > 0 {
		b = append(b, ` <small>continued</small>`...)
	}
	if added, removed := counts(d.block); whole && added+removed > 0 {
		b = appendCounts(append(b, ' '), added, removed)
	}
	b = append(b, "</h3>\n"...)
	if note := sectionNote(sec); note != "" {
		b = append(append(appendText(append(b, `<p class="note">`...), note), "</p>"...), '\n')
	}
	_, err := d.w.Write(b)
	return err
}

func counts(rows []row) (added, removed int64) {
	for _, r := range rows {
		switch r.kind {
		case Added:
			added++
		case Removed:
			removed++
		}
	}
	return added, removed
}

func appendCounts(b []byte, added, removed int64) []byte {
	b = append(b, `<span class="counts">`...)
	if added > 0 || removed == 0 {
		b = fmt.Appendf(b, `<span class="plus">+%d</span> `, added)
	}
	if removed > 0 {
		b = fmt.Appendf(b, `<span class="minus">&minus;%d</span>`, removed)
	}
	return append(b, "</span>"...)
}

func appendPath(b []byte, path tree.Path, link func(tree.Path) string) []byte {
	if link != nil {
		b = append(appendAttribute(append(b, `<a href="`...), link(path)), `">`...)
		return append(append(b, Path(path)...), "</a>"...)
	}
	return append(append(append(b, "<span class=\"path\">"...), Path(path)...), "</span>"...)
}

// sectionNote says what changed where it is not lines.
func sectionNote(sec *patch.Section) string {
	var notes []string
	old, new := sec.Old, sec.New
	if old != nil && new != nil && old.Mode != new.Mode {
		notes = append(notes, "mode "+tree.FormatMode(old.Mode)+" → "+tree.FormatMode(new.Mode))
	}
	side := new
	if side == nil {
		side = old
	}
	kind := "binary, "
	if sec.Stored { // it may have been a text
		kind = ""
	}
	switch {
	case side.Type == tree.Dir && (old == nil || new == nil):
		notes = append(notes, "directory")
	case side.Type == tree.Symlink:
		notes = append(notes, "symbolic link")
	case (sec.Binary || sec.Stored) && old != nil && new != nil:
		notes = append(notes, kind+view.Size(old.Size)+" → "+view.Size(new.Size))
	case sec.Binary || sec.Stored:
		notes = append(notes, kind+view.Size(side.Size))
	case side.Type == tree.Regular && (old == nil || new == nil) && side.Size == 0:
		notes = append(notes, "empty file")
	}
	if sec.Stored {
		notes = append(notes, "its contents are not in the diff: they are large, or were forgotten")
	}
	if sec.Shared {
		notes = append(notes, "others changed it in the same time")
	}
	return strings.Join(notes, "; ")
}

// plain draws rows as text.
func (d *drawer) plain(rows []row) error {
	if !d.folded {
		d.close()
		d.folded = true
		d.write("<details class=\"rest\"><summary>The lines that follow, as plain text</summary><pre>\n")
	}
	var b []byte
	for _, r := range rows {
		if r.kind == HunkLine {
			b = append(append(b, r.head...), '\n')
			continue
		}
		b = append(b, r.kind)
		b = append(r.appendEnd(appendText(b, r.text)), '\n')
	}
	_, err := d.w.Write(b)
	return err
}

// appendEnd says what a line has beside its text.
func (r row) appendEnd(b []byte) []byte {
	if r.left > 0 {
		b = append(b, `<span class="esc"> … `+view.Size(int64(r.left))+` more</span>`...)
	}
	if r.noEnd {
		b = append(b, `<span class="esc" title="no newline at the end of the file"> ⏎̸</span>`...)
	}
	return b
}
