package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize"

	"decree/recorder"
	"decree/timeline"
	"decree/view"
)

// zone is a part of the screen that a click on does something.
type zone struct {
	x0, x1, y int
	click     func() tea.Cmd
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen, v.MouseMode, v.WindowTitle = true, tea.MouseModeCellMotion, "decree"
	return v
}

// screen is all of it, exactly as many lines as there are.
func (m *model) screen() string {
	m.zones = m.zones[:0]
	if m.width < leastColumns || m.height < leastRows {
		return fit("decree: make the window larger", m.width)
	}
	status := m.saidLines()
	body := m.height - 2 - max(1, len(status))
	var lines []string
	switch {
	case m.help:
		lines = m.helpLines(m.width, body)
	case m.sheet != nil:
		lines = m.sheetLines(m.width, body)
	case m.blamed != nil:
		lines = m.blameLines(m.width, body)
	case m.health != nil:
		lines = m.healthLines(m.width, body)
	case m.width >= wide:
		left := m.leftColumns()
		lines = beside(m.timelineLines(left, body), m.recordLines(left+1, m.width-left-1, body), left, m.styles.rule.Render("│"), body)
	case m.focus == inTimeline:
		lines = m.timelineLines(m.width, body)
	default:
		lines = m.recordLines(0, m.width, body)
	}
	out := make([]string, 0, m.height)
	out = append(out, m.headLine())
	for i := range body {
		if i < len(lines) {
			out = append(out, fit(lines[i], m.width))
		} else {
			out = append(out, "")
		}
	}
	if len(status) == 0 {
		status = []string{m.statusLine()}
	}
	return strings.Join(append(append(out, status...), m.keyLine()), "\n")
}

// leftColumns is how wide the timeline is beside a record: what has the keys has the room.
func (m *model) leftColumns() int {
	if m.focus == inTimeline {
		return min(max(m.width/2, 50), 96)
	}
	return min(max(m.width*3/10, 30), 56)
}

// beside puts two panes next to each other.
func beside(left, right []string, columns int, rule string, rows int) []string {
	out := make([]string, rows)
	for i := range out {
		var a, b string
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		out[i] = fit(a, columns) + rule + b
	}
	return out
}

func (m *model) headLine() string {
	s := &m.styles
	left := " " + s.title.Render("decree") + "  " + s.dim.Render(view.ShownPath(filepath.Base(m.Read.Project().Root)))
	right := ""
	if m.list.typed != "" {
		right = s.mark.Render("filter: "+clean(m.list.typed)) + " "
	}
	return ends(left, right, m.width)
}

// mostSaid is how many lines what is said takes at most.
const mostSaid = 4

// saidLines are what was done, or why something cannot be, in as many lines as a narrow screen needs for it; none
// where nothing is said.
func (m *model) saidLines() (out []string) {
	text, style := m.toast, m.styles.banner
	switch {
	case m.typing != nil || m.working != "":
		return nil
	case m.bad:
		style = m.styles.bannerBad
	}
	if text == "" {
		return nil
	}
	lines := wrapped(text, m.width-2)
	if len(lines) > mostSaid {
		lines = append(lines[:mostSaid-1], strings.Join(lines[mostSaid-1:], " "))
	}
	for _, line := range lines {
		out = append(out, fit(" "+style.Render(fit(line, min(m.width-2, ansi.StringWidth(line)))), m.width))
	}
	return out
}

// statusLine says what is going on.
func (m *model) statusLine() string {
	s := &m.styles
	switch {
	case m.typing != nil:
		return fit(m.input.View(), m.width)
	case m.working != "":
		return fit(" "+s.waiting.Render(clean(m.working)+" …"), m.width)
	case m.blamed != nil:
		return fit(" "+s.banner.Render(m.blamed.here), m.width)
	case m.sheet != nil || m.help || m.health != nil:
	case len(m.record.marks) > 0:
		return fit(" "+s.mark.Render(m.record.markedWords()+": r, a, p and R are about these alone"), m.width)
	case len(m.list.notes) > 0:
		return fit(" "+s.dim.Render(clean(m.list.notes[0])), m.width)
	case m.focus == inTimeline && m.barred["restore"] != "":
		return fit(" "+s.dim.Render(m.barred["restore"]), m.width)
	}
	return ""
}

// A hint is a key and what it does here.
type hint struct{ key, does, operation string }

func (m *model) hints() []hint {
	switch {
	case m.typing != nil && m.input.Prompt == "/ ":
		return []hint{{"enter", "filter by " + timeline.FilterHelp, ""}, {"esc", "leave", ""}}
	case m.typing != nil:
		return []hint{{"enter", "go on", ""}, {"esc", "leave", ""}}
	case m.help:
		return []hint{{"j k", "scroll", ""}, {"any other key", "back", ""}}
	case m.sheet != nil:
		return m.sheet.hints()
	case m.blamed != nil:
		return []hint{{"j k < >", "move", ""}, {"Y", "copy command", ""}, {"esc", "back", ""}}
	case m.health != nil:
		return []hint{{"j k", "scroll", ""}, {"Y", "copy command", ""}, {"esc", "back", ""}}
	case m.focus == inTimeline:
		return m.possible([]hint{{"enter", "open", ""}, {"/", "filter", ""}, {"u", "undo", "undo"}, {"r", "revert", "revert"}, {"R", restoreWords(m.current()), "restore"},
			{"p", "publish", "publish"}, {"x", discardWords(m.target("discard")), "discard"}, {"c", "checkpoint", "checkpoint"}, {"a", "apply", "apply"}, {"l", "label", ""},
			{"U", "redo", "redo"}, {"h", "health", ""}})
	}
	hints := []hint{{"esc", "back", ""}}
	if !m.record.noMarks {
		hints = m.markHints()
	}
	if m.focus == inDiff {
		hints = append(hints, hint{"< >", "sideways", ""}, hint{"n", "next hunk", ""})
	}
	if m.record.noMarks {
		return append(hints, hint{"tab", "next pane", ""}, hint{"b", "blame", ""}, hint{"o", "edit", ""}, hint{"Y", "copy command", ""})
	}
	return m.possible(append(hints, []hint{{"*", map[bool]string{true: "unmark all", false: "mark all"}[len(m.record.marks) > 0], ""}, {"tab", "next pane", ""}, {"b", "blame", ""},
		{"o", "edit", ""}, {"a", "apply", "apply"}, {"d", "mark directory", ""}, {"Y", "copy command", ""}}...))
}

// markHints are the keys of what can be marked, and done with that.
func (m *model) markHints() []hint {
	hints := []hint{{"space", m.record.markWord(m.focus), ""}, {"r", "revert", "revert"}, {"p", "publish", "publish"}, {"esc", "back", ""}, {"R", restoreWords(m.current()), "restore"}}
	if row := m.current(); row != nil && published(row) {
		hints = slices.Insert(hints, 3, hint{"x", discardWords(m.target("discard")), "discard"})
	}
	return hints
}

// possible are the hints without those of operations that the row at the cursor has nothing for.
func (m *model) possible(hints []hint) []hint {
	return slices.DeleteFunc(hints, func(h hint) bool {
		if h.operation == "" || h.operation == "checkpoint" {
			return false
		}
		_, why := requestFor(h.operation, m.target(h.operation))
		return why != ""
	})
}

// always are the keys of every place without a question, at the right end of the line.
var always = []hint{{"?", "help", ""}, {"q", "quit", ""}}

func (s *sheet) hints() []hint {
	switch {
	case s.conflict != nil:
		var out []hint
		for _, w := range s.conflict.Ways() {
			out = append(out, hint{w.Key, w.Does, ""})
		}
		return append(out, hint{"esc", "leave it", ""}, hint{"Y", "copy command", ""})
	case s.nothing:
		return []hint{{"esc", "back", ""}}
	case len(s.marks) > 0:
		return []hint{{"y, enter", "plan what is marked alone", ""}, {"space", "mark", ""}, {"esc", "leave it", ""}}
	case s.hunks:
		return []hint{{"y, enter", "do it", ""}, {"esc", "leave it", ""}, {"space", "choose hunks", ""}, {"j k < >", "scroll", ""}, {"Y", "copy command", ""}}
	}
	return []hint{{"y, enter", "do it", ""}, {"esc", "leave it", ""}, {"j k < >", "scroll", ""}, {"Y", "copy command", ""}}
}

// keyLine has the keys of this place, as many as there is room for.
func (m *model) keyLine() string {
	s := &m.styles
	if m.typing != nil && m.toast != "" {
		return fit(" "+s.bannerBad.Render(m.toast), m.width)
	}
	var end string
	if m.typing == nil && !m.help && m.sheet == nil {
		end = s.keys(always[0]) + s.keys(always[1])
	}
	var b strings.Builder
	room := m.width - ansi.StringWidth(end) - 1
	for _, h := range m.hints() {
		text := s.keys(h)
		if h.operation != "" && m.barred[h.operation] != "" {
			text = " " + s.dim.Render("("+h.key+" "+h.does+")")
		}
		if room -= ansi.StringWidth(text); room < 0 {
			break
		}
		b.WriteString(text)
	}
	return ends(b.String(), end+" ", m.width)
}

func (s *styles) keys(h hint) string {
	return "  " + s.key.Render(h.key) + " " + s.dim.Render(h.does)
}

// scrolled is the first line to show, so that the cursor is on the screen.
func scrolled(top, cursor, rows, all int) int {
	if cursor < top {
		top = cursor
	}
	if cursor >= top+rows {
		top = cursor - rows + 1
	}
	return max(0, min(top, all-rows))
}

func (m *model) timelineLines(columns, rows int) []string {
	l := &m.list
	if l.err != nil {
		return append([]string{""}, wrapped(" "+m.styles.bad.Render(sayError(l.err)), columns-2)...)
	}
	entries := l.entries()
	if len(entries) == 0 {
		text := "No records yet. 'decree run -- COMMAND' makes one, or press c for a checkpoint."
		if l.typed != "" {
			text = "Nothing matches the filter. Press esc to see everything."
		}
		return append([]string{""}, wrapped(" "+text, columns-2)...)
	}
	l.top = scrolled(l.top, l.cursor, rows, len(entries))
	var out []string
	shown := entries[l.top:min(l.top+rows, len(entries))]
	m.whenColumns = 0
	for _, e := range shown {
		m.whenColumns = max(m.whenColumns, len(shortWhen(e.row.When)))
	}
	for i := l.top; i < l.top+len(shown); i++ {
		m.zones = append(m.zones, zone{0, columns, 1 + len(out), func() tea.Cmd { return m.clickRow(i) }})
		out = append(out, m.rowLine(entries[i], i == l.cursor, columns))
	}
	return out
}

// badgeColumns is how wide the longest badge is.
const badgeColumns = 7

func (m *model) rowLine(e entry, here bool, columns int) string {
	s, r := &m.styles, e.row
	cursor := "  "
	if here {
		cursor = "▸ "
	}
	fold := "  "
	if len(r.Inner) > 0 {
		if fold = "+ "; m.list.open[key(r)] {
			fold = "- "
		}
	}
	if e.depth > 0 {
		fold += "  "
	}
	head := cursor + fmt.Sprintf("%-*s ", m.whenColumns, shortWhen(r.When))
	right := m.rowCounts(r, columns)
	badge := s.badge[r.Badge].Render(fmt.Sprintf("%-*s", badgeColumns, r.Badge))
	room := columns - ansi.StringWidth(head+fold+right) - badgeColumns - 2
	what, tail := m.rowWords(e)
	least := room / 2
	if e.ofRace {
		least = 0 // what was said of a candidate tells it from the others
	}
	tail = ansi.Truncate(tail, max(least, room-ansi.StringWidth(what)), "…")
	if labels := rowLabels(r, room-ansi.StringWidth(tail)-leastTitle); labels != "" {
		tail += " " + s.mark.Render(labels)
	}
	what = ansi.Truncate(what, room-ansi.StringWidth(tail), "…") + tail
	left := s.dim.Render(head) + s.dim.Render(fold) + badge + " " + what
	if here {
		left = head + fold + fmt.Sprintf("%-*s", badgeColumns, r.Badge) + " " + ansi.Strip(what)
		line := ends(left, ansi.Strip(right)+" ", columns)
		if m.focus == inTimeline {
			return s.selected.Render(line)
		}
		return s.selectedElsewhere.Render(line)
	}
	return ends(left, right+" ", columns)
}

// leastTitle is how many columns of a row labels leave to what it is about.
const leastTitle = 28

// rowLabels are a row's labels in so many columns; "" where that is too few to tell one from another.
func rowLabels(r *timeline.Row, columns int) string {
	if len(r.Labels) == 0 || columns < len("[abcd…]") {
		return ""
	}
	return "[" + strings.TrimRight(fit(clean(strings.Join(r.Labels, ", ")), columns-2), " ") + "]"
}

// rowWords are what a row is about, and what became of it, which is read also where the first is cut. The
// candidates of a race did the same: what was said of each tells them apart.
func (m *model) rowWords(e entry) (what, tail string) {
	s, r := &m.styles, e.row
	if r.Notable() {
		tail = "  " + s.tone(r.Tone).Render(r.Status)
	}
	switch {
	case e.ofRace && r.Judged != "":
		return cmp.Or(r.Name, r.What) + "  " + s.verdict(r.Judged), tail
	case e.ofRace:
		return cmp.Or(r.Name, r.What), tail
	case r.Name == "" || r.Kind != timeline.Record:
		return r.What, tail
	}
	return r.Name + ": " + r.What, tail
}

// rowCounts are the files and lines of a row, as far as there is room for them.
func (m *model) rowCounts(r *timeline.Row, columns int) string {
	n := r.Files()
	if n == 0 || columns < 40 {
		return ""
	}
	text := " " + humanize.Comma(int64(n))
	if columns >= 66 {
		text = " " + view.Count(n, "file")
	}
	if r.Added+r.Removed > 0 && columns >= 48 {
		text += " " + m.styles.added.Render(fmt.Sprintf("+%d", r.Added)) + " " + m.styles.removed.Render(fmt.Sprintf("-%d", r.Removed))
	}
	return text
}

// shortWhen leaves out what goes without saying: that it was today.
func shortWhen(when string) string {
	return strings.TrimPrefix(strings.Replace(when, "yesterday", "yest.", 1), "today ")
}

func (m *model) clickRow(i int) tea.Cmd {
	again := m.list.cursor == i && m.focus == inTimeline
	m.focus = inTimeline
	if again {
		return m.enter()
	}
	return m.move(i - m.list.cursor)
}

// recordLines are the facts, the files and the diff of the row at the cursor.
func (m *model) recordLines(x, columns, rows int) []string {
	row := m.current()
	if row == nil {
		return nil
	}
	out := m.factLines(row, columns)
	if len(row.Inner) > 0 {
		return append(out, m.innerLines(row, columns, rows-len(out))...)
	}
	p := &m.record
	switch {
	case p.source.none != "":
		return append(out, indented(wrapped(p.source.none, columns-2))...)
	case p.problem != "":
		out = append(out, indented(wrapped(m.styles.bad.Render(p.problem), columns-2))...)
	}
	if p.doc == nil {
		return out
	}
	_, files := p.doc.size()
	room := rows - len(out) - 2
	shown := min(files, max(3, room/3))
	if m.focus == inFiles && m.width < wide {
		shown = min(files, max(3, room/2))
	}
	out = append(out, m.fileLines(x, columns, shown, len(out))...)
	out = append(out, m.styles.rule.Render(strings.Repeat("─", max(0, columns-1))))
	return append(out, m.diffLines(&p.diffView, x, columns, rows-len(out), len(out), m.focus == inDiff)...)
}

func indented(lines []string) []string {
	for i := range lines {
		lines[i] = " " + lines[i]
	}
	return lines
}

// factLines say what a row is.
func (m *model) factLines(r *timeline.Row, columns int) []string {
	s := &m.styles
	what := r.What
	if r.Name != "" && r.Kind == timeline.Record {
		what = r.Name + ": " + what
	}
	out := wrapped(s.badge[r.Badge].Bold(true).Render(r.Badge)+"  "+s.strong.Render(what), columns-2)
	if most := max(1, m.height/10); len(out) > most {
		out = append(out[:most-1], fit(strings.Join(out[most-1:], " "), columns-2))
	}
	facts := []string{r.When}
	if r.Status != "" {
		facts = append(facts, s.tone(r.Tone).Render(r.Status))
	}
	if r.Judged != "" {
		facts = append(facts, s.verdict(r.Judged))
	}
	if r.Changed != "" {
		text := r.Changed
		if r.Added+r.Removed > 0 {
			text += " " + s.added.Render(fmt.Sprintf("+%d", r.Added)) + " " + s.removed.Render(fmt.Sprintf("-%d", r.Removed))
		}
		facts = append(facts, text)
	}
	if len(r.Labels) > 0 {
		facts = append(facts, s.mark.Render("["+clean(strings.Join(r.Labels, ", "))+"]"))
	}
	facts = append(facts, s.dim.Render(r.ID))
	if m.record.checked {
		facts = append(facts, s.good.Render("diff verified by hash"))
	}
	return indented(append(out, joined(facts, s.dim.Render(" · "), columns-2)...))
}

// joined puts texts into as few lines as they fit in.
func joined(texts []string, between string, columns int) (lines []string) {
	for _, text := range texts {
		if n := len(lines); n > 0 && ansi.StringWidth(lines[n-1]+between+text) <= columns {
			lines[n-1] += between + text
		} else {
			lines = append(lines, text)
		}
	}
	return lines
}

func (m *model) fileLines(x, columns, rows, y int) []string {
	p, s := &m.record, &m.styles
	_, n, all, _ := p.doc.state()
	if n == 0 {
		text := "reading …"
		if all {
			text = "nothing"
		}
		return []string{" " + s.dim.Render(text)}
	}
	p.fileTop = scrolled(p.fileTop, p.file, rows, n)
	var out []string
	for i := p.fileTop; i < min(p.fileTop+rows, n); i++ {
		sec := p.doc.section(i)
		m.zones = append(m.zones, zone{x, x + 6, 1 + y + len(out), func() tea.Cmd { p.moveFile(i - p.file); p.mark(inFiles); return nil }},
			zone{x + 6, x + columns, 1 + y + len(out), func() tea.Cmd { m.focus = inFiles; p.moveFile(i - p.file); return nil }})
		out = append(out, m.fileLine(sec, i == p.file, columns))
	}
	return out
}

func (m *model) fileLine(sec section, here bool, columns int) string {
	p, s := &m.record, &m.styles
	cursor := "  "
	if here && m.focus != inTimeline {
		cursor = "▸ "
	}
	sign := p.marks.sign(sec.path) + " "
	if p.noMarks {
		sign = "  "
	}
	counts := m.fileCounts(sec)
	left := cursor + sign + fileLetter(sec.word) + " "
	left += endOf(view.ShownPath(sec.path), columns-ansi.StringWidth(left+counts))
	if len(p.marks.of(sec.path)) > 0 {
		left = s.mark.Render(left)
	}
	if sec.note != "" {
		left += "  " + s.dim.Render(sec.note)
	}
	line := ends(left, counts, columns)
	if here && m.focus == inFiles {
		return s.selected.Render(ansi.Strip(line))
	}
	return line
}

// fileLetter says in a letter what happened to a file.
func fileLetter(word string) string {
	if letter := map[string]string{"created": "A", "deleted": "D", "modified": "M"}[word]; letter != "" {
		return letter
	}
	return "m"
}

func (m *model) fileCounts(sec section) string {
	if sec.added+sec.removed == 0 {
		return ""
	}
	return " " + m.styles.added.Render(fmt.Sprintf("+%d", sec.added)) + " " + m.styles.removed.Render(fmt.Sprintf("-%d", sec.removed)) + " "
}

// diffLines are the rows of a diff that fit.
func (m *model) diffLines(v *diffView, x, columns, rows, y int, focused bool) []string {
	if v.doc == nil || rows <= 0 {
		return nil
	}
	all, _ := v.doc.size()
	if focused || v.lineTop > all {
		v.lineTop = scrolled(v.lineTop, v.line, rows, all)
	}
	lines, err := v.doc.lines(v.lineTop, rows)
	if err != nil {
		return indented(wrapped(m.styles.bad.Render(sayError(err)), columns-2))
	}
	boxes := v.box
	if v != &m.record.diffView && len(v.marks) == 0 {
		boxes = func(diffLine) string { return "" } // without marks a plan is about all that it shows
	}
	out := make([]string, 0, rows)
	for i, painted := range m.paint(v, lines, v.lineTop) {
		at := v.lineTop + i
		m.zones = append(m.zones, zone{x, x + columns, 1 + y + len(out), func() tea.Cmd {
			again := v.line == at
			if v.moveLine(at - v.line); v == &m.record.diffView {
				if again && m.focus == inDiff {
					v.mark(inDiff)
				}
				m.focus = inDiff
			}
			return nil
		}})
		line := m.gutter(v, lines[i], focused && at == v.line) + boxes(lines[i]) + scrolledAside(painted, lines[i].kind, v.left)
		if focused && at == v.line {
			line = m.styles.selected.Render(fit(ansi.Strip(line), columns))
		}
		out = append(out, line)
	}
	return out
}

// gutter is what stands before a row of a diff: the cursor, and what is marked.
func (m *model) gutter(v *diffView, l diffLine, here bool) string {
	cursor, sign := " ", " "
	if here {
		cursor = "▸"
	}
	if l.kind != 's' && l.kind != '@' && v.marks.has(v.doc.section(l.sec).path, l.hunk) {
		sign = m.styles.mark.Render("x")
	}
	return cursor + sign
}

// sheetLines are a plan, as it is asked about.
func (m *model) sheetLines(columns, rows int) []string {
	s, st := m.sheet, &m.styles
	out := []string{" " + st.title.Render(s.title), ""}
	out = append(out, indented(wrapped(s.question, columns-2))...)
	if s.command != "" {
		out = append(out, "", " "+st.dim.Render("The same, typed:"))
		out = append(out, indented(wrapped(clean(s.command), columns-2))...)
	}
	if len(s.notes) > 0 {
		out = append(out, "")
		for _, n := range s.notes[:min(len(s.notes), max(3, rows/3))] {
			for _, line := range wrapped(n, columns-4) {
				out = append(out, "   "+line)
			}
		}
		if more := len(s.notes) - max(3, rows/3); more > 0 {
			out = append(out, fmt.Sprintf("   and %d more", more))
		}
	}
	if s.doc == nil || rows-len(out) < 3 {
		return out
	}
	if s.problem != "" {
		out = append(out, indented(wrapped(st.bad.Render(s.problem), columns-2))...)
	}
	out = append(out, st.rule.Render(strings.Repeat("─", columns)))
	return append(out, m.diffLines(&s.diffView, 0, columns, rows-len(out), len(out), true)...)
}

func (m *model) blameLines(columns, rows int) []string {
	b, s := m.blamed, &m.styles
	out := []string{" " + s.title.Render("Blame") + "  " + s.strong.Render(view.ShownPath(b.path))}
	rows--
	b.top = scrolled(b.top, b.cursor, rows, b.file.Lines)
	lines, err := b.lines(b.top, rows, func(c recorder.Culprit) string {
		if c.Record == nil {
			return ""
		}
		return shortWhen(timeline.When(c.Record.Started, m.Now(), m.Location))
	})
	if err != nil {
		return append(out, " "+s.bad.Render(sayError(err)))
	}
	what := min(24, max(0, columns-70))
	for i, l := range lines {
		cursor := "  "
		if b.top+i == b.cursor {
			cursor = "▸ "
		}
		line := cursor + s.dim.Render(fit(l.when, 13)+fit(l.what, what)) + fmt.Sprintf(" %5d ", b.top+i+1) + scrolledAside(l.text, '@', b.left)
		out = append(out, line)
	}
	if b.cursor-b.top < len(lines) && b.cursor >= b.top {
		l := lines[b.cursor-b.top]
		b.here = clean(l.id + "  " + l.what)
	}
	return out
}
