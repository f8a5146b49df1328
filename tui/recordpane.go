package tui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"
	"github.com/dustin/go-humanize"

	"decree/page"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// recordPane is the files and the diff of a row.
type recordPane struct {
	key    string // of the row; see key
	source source
	diffView
	inside insideMsg
	end    context.CancelFunc // of what reads the diff
}

// diffView is a diff that is scrolled and marked.
type diffView struct {
	doc     *document // nil: there is none
	file    int       // the section that the files' cursor is at
	fileTop int
	line    int // the row that the diff's cursor is at
	lineTop int
	left    int // the columns of long lines that are scrolled out of sight
	marks   marks
	noMarks bool // what it shows is only looked at
	read    bool // the document was read to its end
	checked bool // and is what was recorded
	problem string

	colours    page.Colours
	painted    map[int]string // rows as they are drawn
	paintedFor int            // columns, with those out of sight
}

// opened has the right side show the row at the cursor.
func (m *model) opened() tea.Cmd {
	row := m.current()
	if row == nil {
		m.closeRecord()
		return nil
	}
	if key := key(row) + " " + row.Status + row.Changed; key == m.record.key {
		return nil
	}
	m.closeRecord()
	p := &m.record
	p.key = key(row) + " " + row.Status + row.Changed
	var ctx context.Context
	ctx, p.end = context.WithCancel(m.ctx)
	if len(row.Inner) > 0 {
		return m.lookInside(ctx, row)
	}
	p.source = sourceOf(row)
	if p.source.none != "" {
		return nil
	}
	p.diffView = diffView{doc: p.source.document(m.history), marks: marks{}, noMarks: !actable(row)}
	return m.index(ctx, p.doc)
}

// index reads a document beside the screen.
func (m *model) index(ctx context.Context, doc *document) tea.Cmd {
	return func() tea.Msg {
		err := doc.index(ctx, func() { m.send(loadedMsg{}) })
		if err != nil && errors.Is(err, context.Canceled) {
			return nil
		}
		return loadedMsg{}
	}
}

// loaded looks at what more is known of the documents on the screen.
func (m *model) loaded() {
	m.record.settle(m.record.source.want)
	if m.sheet != nil {
		m.sheet.settle(tree.Hash{})
	}
}

func (m *model) closeRecord() {
	if m.record.end != nil {
		m.record.end()
	}
	if m.record.doc != nil {
		m.record.doc.close()
	}
	m.record = recordPane{}
}

// settle looks at what became of reading the document.
func (v *diffView) settle(want tree.Hash) {
	if v.doc == nil || v.read {
		return
	}
	_, _, all, err := v.doc.state()
	if !all {
		return
	}
	v.read = true
	switch {
	case err != nil:
		v.problem = sayError(err)
	case !want.IsZero() && v.doc.sum != want:
		v.problem = "This diff is not what was recorded: 'decree doctor --repair' writes it again from the store"
	default:
		v.checked = !want.IsZero()
	}
}

// moveFile moves the cursor of the files; the diff follows.
func (v *diffView) moveFile(by int) {
	if v.doc == nil {
		return
	}
	_, n := v.doc.size()
	if n == 0 {
		return
	}
	v.file = max(0, min(v.file+by, n-1))
	v.line = v.doc.section(v.file).row
	v.lineTop = v.line
}

// moveLine moves the cursor of the diff; the files follow.
func (v *diffView) moveLine(by int) {
	if v.doc == nil {
		return
	}
	rows, n := v.doc.size()
	if n == 0 {
		return
	}
	v.line = max(0, min(v.line+by, rows-1))
	v.file = v.doc.sectionAt(v.line)
}

// aside is how many columns a key scrolls long lines.
const aside = 20

// asideOf is how far a key goes sideways; 0: it is none that does.
func asideOf(name string) int {
	return map[string]int{">": aside, "shift+right": aside, "<": -aside, "shift+left": -aside}[name]
}

// moveAside scrolls long lines.
func (v *diffView) moveAside(by int) { v.left = max(0, min(v.left+by, longestRow)) }

// path is the file at the cursor; "" for none.
func (v *diffView) path() tree.Path {
	if v.doc == nil {
		return ""
	}
	if _, n := v.doc.size(); v.file >= n {
		return ""
	}
	return v.doc.section(v.file).path
}

// outsideMarks is said where somebody would mark what was changed outside of any record.
const outsideMarks = "What was changed outside of any record is only shown: there is nothing here that a mark could be for"

// mark marks what is at the cursor: in the files the file, in the diff the hunk.
func (v *diffView) mark(in pane) {
	path := v.path()
	if path == "" || v.noMarks {
		return
	}
	sec := v.doc.section(v.file)
	if in == inFiles {
		v.marks.toggle(v.doc, path, whole, sec.hunks)
		return
	}
	lines, err := v.doc.lines(v.line, 1)
	if err != nil || len(lines) == 0 {
		return
	}
	v.marks.toggle(v.doc, path, lines[0].hunk, sec.hunks)
}

// markWord is what a mark does at the cursor.
func (v *diffView) markWord(in pane) string {
	hunk := whole
	if in == inDiff && v.doc != nil {
		if lines, err := v.doc.lines(v.line, 1); err == nil && len(lines) > 0 {
			hunk = lines[0].hunk
		}
	}
	if on := v.marks.of(v.path()); hunk == whole && len(on) > 0 || v.marks.has(v.path(), hunk) {
		return "unmark"
	}
	return "mark"
}

// markedWords say how much is marked: "2 of 5 files marked".
func (v *diffView) markedWords() string {
	parts, dirs := 0, 0
	for path, on := range v.marks {
		if !on[whole] {
			parts++
		}
		if v.doc.isDir(path) {
			dirs++
		}
	}
	allFiles, allDirs := v.doc.counts()
	var of []string
	if len(v.marks) > dirs {
		of = append(of, humanize.Comma(int64(len(v.marks)-dirs))+" of "+view.Count(allFiles, "file"))
	}
	if dirs > 0 {
		of = append(of, humanize.Comma(int64(dirs))+" of "+view.Count(allDirs, "directory"))
	}
	text := view.List(of) + " marked"
	if parts > 0 {
		text += ", of " + humanize.Comma(int64(parts)) + " some hunks"
	}
	return text
}

// box is what stands before the head of a file, and of each of its hunks where there are several.
func (v *diffView) box(l diffLine) string {
	sec := v.doc.section(l.sec)
	switch {
	case v.noMarks:
		return ""
	case l.kind == 's':
		return v.marks.sign(sec.path) + " "
	case l.kind != '@' || sec.hunks < 2:
		return ""
	case v.marks.has(sec.path, l.hunk):
		return "[x] "
	}
	return "[ ] "
}

// markAll marks all files, or none where some are marked.
func (v *diffView) markAll() {
	if v.doc == nil || v.noMarks {
		return
	}
	if len(v.marks) > 0 {
		clear(v.marks)
		return
	}
	_, n := v.doc.size()
	for i := range n {
		v.marks[v.doc.section(i).path] = map[int]bool{whole: true}
	}
}

// nextHunk moves the diff's cursor to the next hunk, or the one before.
func (v *diffView) nextHunk(by int) {
	if v.doc == nil {
		return
	}
	rows, _ := v.doc.size()
	for at := v.line + by; at >= 0 && at < rows; at += by {
		lines, err := v.doc.lines(at, 1)
		if err != nil || len(lines) == 0 {
			return
		}
		if lines[0].kind == '@' {
			v.moveLine(at - v.line)
			return
		}
	}
}

// actable says whether the row is a record that can be acted on.
func actable(r *timeline.Row) bool { return r != nil && r.Record != nil && r.Kind != timeline.Outside }
