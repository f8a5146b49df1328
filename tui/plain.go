package tui

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"decree/history"
	"decree/planner"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// Talk is the timeline as a numbered dialogue: a line for each thing on Stdout, answers from
// Stdin. It ends with q or with the input.
func Talk(ctx context.Context, o Options) error {
	t := &talk{engine: newEngine(o), ctx: ctx, in: bufio.NewScanner(o.Stdin), out: o.Stdout}
	f, err := timeline.ParseFilter(o.Filter, o.Location, o.Now())
	if err != nil {
		return err
	}
	t.filter = f
	if err := t.list(""); err != nil {
		return err
	}
	for t.step("record, or ?", t.atTimeline) {
	}
	if err := context.Cause(ctx); err != nil {
		return nil //nolint:nilerr // a signal ended it, which is no failure of its
	}
	return t.in.Err()
}

// talk is a dialogue. ended says that there is no more input, or that q was said.
type talk struct {
	*engine
	ctx    context.Context
	in     *bufio.Scanner
	out    io.Writer
	filter timeline.Filter
	rows   []timeline.Row
	next   string
	done   int // how often something was done
	ended  bool
}

func (t *talk) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// ask reads a line; ok is false when there is none.
func (t *talk) ask(prompt string) (answer string, ok bool) {
	fmt.Fprint(t.out, prompt+"> ")
	if t.ctx.Err() != nil || !t.in.Scan() {
		t.say("")
		t.ended = true
		return "", false
	}
	if t.Echo {
		t.say("%s", clean(t.in.Text()))
	}
	return strings.TrimSpace(t.in.Text()), true
}

// step asks once, and does what is answered; false when that is over.
func (t *talk) step(prompt string, do func(word, rest string) (more bool, err error)) bool {
	line, ok := t.ask(prompt)
	if !ok {
		return false
	}
	word, rest, _ := strings.Cut(line, " ")
	if word == "q" {
		t.ended = true
		return false
	}
	more, err := do(word, strings.TrimSpace(rest))
	if err != nil {
		t.say("not done: %s", sayError(err))
		return true
	}
	return more && !t.ended
}

// linesAtOnce is how many rows are listed before more are asked for.
const linesAtOnce = 20

// list prints the rows that are older than the cursor.
func (t *talk) list(cursor string) error {
	t.filter.Now = t.Now()
	page, err := timeline.List(t.ctx, t.Read, t.filter, cursor, linesAtOnce)
	if err != nil {
		return err
	}
	for _, n := range page.Notes {
		t.say("note: %s", clean(n))
	}
	if cursor == "" {
		t.rows = nil
	}
	begin := len(t.rows)
	t.rows, t.next = append(t.rows, page.Rows...), page.Next
	t.sayRows(t.rows[begin:], begin)
	switch {
	case len(t.rows) == 0:
		t.say("no records")
	case t.next != "":
		t.say("m lists older ones")
	}
	return nil
}

func (t *talk) sayRows(rows []timeline.Row, begin int) {
	for i := range rows {
		text := rows[i].Label
		if rows[i].Added+rows[i].Removed > 0 {
			text += fmt.Sprintf(", +%d -%d lines", rows[i].Added, rows[i].Removed)
		}
		if len(rows[i].Labels) > 0 {
			text += ", labelled " + clean(view.List(rows[i].Labels))
		}
		t.say("%d  %s", begin+i+1, text)
	}
}

const timelineHelp = `NUMBER      show a record, a session or a race
m           older records
f FILTER    only what fits: words, reason:run, path:src/, since:yesterday; f alone: all
u, U        undo the newest change, redo
c TEXT      create a checkpoint; TEXT describes it
h           health: space, runs, times and changes as bars
enter       list again
q           end`

func (t *talk) atTimeline(word, rest string) (bool, error) {
	switch word {
	case "":
		return true, t.list("")
	case "?":
		t.say("%s", timelineHelp)
	case "m":
		if t.next == "" {
			t.say("there are no older ones")
			return true, nil
		}
		return true, t.list(t.next)
	case "f":
		f, err := timeline.ParseFilter(rest, t.Location, t.Now())
		if err != nil {
			return true, err
		}
		t.filter = f
		return true, t.list("")
	case "u":
		return true, t.planRow("undo", nil, nil)
	case "U":
		return true, t.planRow("redo", nil, nil)
	case "c":
		return true, t.newCheckpoint(rest)
	case "h":
		return true, t.sayHealth()
	default:
		row, err := chosen(t.rows, word)
		if err != nil {
			return true, err
		}
		t.row(t.fresh(row))
	}
	return true, nil
}

// plainColumns is how wide the bars of a dialogue are.
const plainColumns = 60

func (t *talk) sayHealth() error {
	plots, err := t.readPlots()
	if err != nil {
		return err
	}
	b := barLines{columns: plainColumns, loc: t.Location, bar: "#", title: lipgloss.NewStyle().Render, paint: lipgloss.NewStyle().Render}
	for _, line := range b.all(plots) {
		t.say("%s", line)
	}
	return nil
}

var errNumber = errors.New("that is no number of the list, and no command; ? lists the commands")

func chosen(rows []timeline.Row, word string) (*timeline.Row, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > len(rows) {
		return nil, errNumber
	}
	return &rows[n-1], nil
}

func (t *talk) newCheckpoint(text string) error {
	barred, err := timeline.Barred(t.Read)
	if err != nil {
		return err
	}
	if why := barred["checkpoint"]; why != "" {
		t.say("%s", why)
		return nil
	}
	line := []string{"decree", "checkpoint"}
	if text != "" {
		line = append(line, "-d", text)
	}
	t.say("Creating a checkpoint records the files as they are now. Nothing is changed.\nthe same, typed: %s", clean(tree.ShellWords(line)))
	if !t.yes() {
		return nil
	}
	if err := t.checkpoint(t.ctx, text); err != nil {
		return err
	}
	t.say("checkpoint created")
	return nil
}

// yes asks for a y; anything else is no.
func (t *talk) yes() bool {
	answer, ok := t.ask("do it? y or n")
	if ok && strings.EqualFold(answer, "y") {
		return true
	}
	t.say("nothing was changed")
	return false
}

// row shows one row, and does what is said about it.
func (t *talk) row(r *timeline.Row) {
	t.say("%s", r.Label)
	t.say("id: %s", r.ID)
	if len(r.Inner) > 0 {
		t.sayRows(r.Inner, 0)
		for t.step("one of them, or ?", func(word, _ string) (more bool, err error) {
			done := t.done
			if more, err = t.atFold(r, word); t.done > done { // what is inside is something else now
				r = t.fresh(r)
				t.sayRows(r.Inner, 0)
			}
			return more, err
		}) {
		}
		return
	}
	shown := &shownRecord{talk: t, row: r, marks: marks{}, source: sourceOf(r)}
	if shown.source.none == "" {
		shown.doc = shown.source.document(t.Read.History)
		defer shown.doc.close()
		if err := shown.doc.index(t.ctx, func() {}); err != nil {
			t.say("not shown: %s", sayError(err))
			return
		}
		shown.files()
	} else {
		t.say("%s", shown.source.none)
	}
	for t.step("what to do with it, or ?", shown.at) {
	}
}

// fresh is a row as it is now; the row itself where it is not found any more.
func (t *talk) fresh(r *timeline.Row) *timeline.Row {
	t.filter.Now = t.Now()
	page, err := timeline.List(t.ctx, t.Read, t.filter, "", len(t.rows)+linesAtOnce)
	if err != nil {
		return r // what is wrong is said by what is done with it
	}
	for i := range page.Rows {
		if key(&page.Rows[i]) == key(r) {
			return &page.Rows[i]
		}
		for k := range page.Rows[i].Inner {
			if in := &page.Rows[i].Inner[k]; key(in) == key(r) {
				return in
			}
		}
	}
	return r
}

// helpLine is an answer that can be given; operation is what has to be possible for it, "" for nothing.
type helpLine struct{ answer, operation, does string }

// sayHelp prints the answers that can be given about a row.
func (t *talk) sayHelp(lines []helpLine, r *timeline.Row) error {
	barred, err := timeline.Barred(t.Read)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.operation != "" {
			if _, why := requestFor(l.operation, r); why != "" {
				continue
			}
			if why := barred[l.operation]; why != "" {
				l.does = "not now: " + why
			}
		}
		t.say("%-11s %s", l.answer, l.does)
	}
	return nil
}

// foldHelp are the answers about a session or a race.
func foldHelp(r *timeline.Row) []helpLine {
	lines := []helpLine{
		{"NUMBER", "", "show one of its turns: its files, and what can be done with it"},
		{"r", "revert", "revert all of its turns at once"},
		{"a", "apply", "apply all of its turns again"},
		{"R", "restore", "restore the files to before all of them"},
	}
	if r.Kind == timeline.Race {
		lines = []helpLine{
			{"NUMBER", "", "show one of its candidates: its files, and what can be done with it; p there publishes it"},
			{"x", "discard", discardWords(r) + ": all that wait"},
			{"R", "restore", "restore the files to before the race"},
		}
	}
	return append(lines, helpLine{"enter", "", "back to the list"}, helpLine{"q", "", "end"})
}

func (t *talk) atFold(r *timeline.Row, word string) (bool, error) {
	switch word {
	case "":
		return false, nil
	case "?":
		return true, t.sayHelp(foldHelp(r), r)
	}
	if operation := operations[word]; operation != "" {
		return true, t.planRow(operation, r, nil)
	}
	inner, err := chosen(r.Inner, word)
	if err != nil {
		return true, err
	}
	t.row(inner)
	return true, nil
}

// shownRecord is a record that is talked about.
type shownRecord struct {
	*talk
	row    *timeline.Row
	source source
	doc    *document
	marks  marks
}

var recordHelp = []helpLine{
	{"d NUMBER", "", "the diff of a file, with its hunks numbered; d alone: of all"},
	{"m NUMBER", "", "mark files, or hunks of one: m 1 3-5, m 2:1,4, m src/ for all below src, m \"my dir/\" where it has a space; m alone: take all marks away"},
	{"r", "revert", "revert: take back all of it, or what is marked"},
	{"a", "apply", "apply: bring again all of it, or what is marked"},
	{"R", "restore", "restore the files, or those that are marked, to before it; of a checkpoint, to it"},
	{"p", "publish", "publish the draft, or what is marked of it"},
	{"x", "discard", "discard the draft"},
	{"l NAME", "", "label it"},
	{"b NUMBER", "", "who brought each line of a file"},
	{"enter", "", "back to the list"},
	{"q", "", "end"},
}

// help are the answers about the record: what was changed outside of any has nothing to mark or to label.
func (s *shownRecord) help() []helpLine {
	return slices.DeleteFunc(slices.Clone(recordHelp), func(l helpLine) bool {
		return !actable(s.row) && (l.answer == "m NUMBER" || l.answer == "l NAME")
	})
}

func (s *shownRecord) files() {
	_, n := s.doc.size()
	for i := range n {
		sec := s.doc.section(i)
		line := fmt.Sprintf("%d  %s  %s", i+1, sec.word, view.ShownPath(sec.path))
		if sec.added+sec.removed > 0 {
			line += fmt.Sprintf("  +%d -%d, %s", sec.added, sec.removed, view.Count(sec.hunks, "hunk"))
		}
		if sec.note != "" {
			line += "  " + sec.note
		}
		s.say("%s", line)
	}
	if !s.source.want.IsZero() && s.doc.sum == s.source.want {
		s.say("%s, diff verified by hash", s.doc.count())
	} else {
		s.say("the diff is not what was recorded: 'decree doctor --repair' writes it again")
	}
}

func (s *shownRecord) at(word, rest string) (bool, error) {
	if operation := operations[word]; operation != "" {
		done := s.done
		err := s.planRow(operation, s.row, s.marks)
		if s.done > done {
			s.row = s.fresh(s.row)
			clear(s.marks)
		}
		return true, err
	}
	switch word {
	case "":
		return false, nil
	case "?":
		return true, s.sayHelp(s.help(), s.row)
	case "d":
		return true, s.diff(rest)
	case "m":
		return true, s.mark(rest)
	case "l":
		return true, s.setLabel(rest)
	case "b":
		return true, s.blame(rest)
	}
	return true, errNumber
}

// file is the section that a number names.
func (s *shownRecord) file(word string) (int, error) {
	if s.doc == nil {
		return 0, errors.New("it has no files")
	}
	_, n := s.doc.size()
	i, err := strconv.Atoi(word)
	if err != nil || i < 1 || i > n {
		return 0, fmt.Errorf("%q is no number of a file; there are %d", clean(word), n)
	}
	return i - 1, nil
}

func (s *shownRecord) diff(rest string) error {
	if s.doc == nil {
		return errors.New("it has no diff")
	}
	rows, n := s.doc.size()
	from := 0
	if rest != "" {
		i, err := s.file(rest)
		if err != nil {
			return err
		}
		if from = s.doc.section(i).row; i+1 < n {
			rows = s.doc.section(i + 1).row
		}
	}
	return s.sayLines(s.doc, from, rows)
}

// sayLines prints rows of a diff, each hunk with its number.
func (t *talk) sayLines(doc *document, from, to int) error {
	for at := from; at < to; at += windowRows {
		lines, err := doc.lines(at, min(windowRows, to-at))
		if err != nil {
			return err
		}
		for _, l := range lines {
			switch l.kind {
			case 's':
				sec := doc.section(l.sec)
				t.say("%s", strings.TrimSpace(sec.word+" "+view.ShownPath(sec.path)+" "+sec.note))
			case '@':
				t.say("hunk %d  %s", l.hunk, clean(l.text))
			default:
				t.say("%c%s", l.kind, clean(l.text))
			}
		}
	}
	return nil
}

// mark marks what the words mean, or nothing where one of them means nothing.
func (s *shownRecord) mark(rest string) error {
	marked := marks{}
	if rest != "" {
		for path, on := range s.marks {
			marked[path] = maps.Clone(on)
		}
	}
	for _, word := range s.markWords(rest) {
		if err := s.markWord(marked, word); err != nil {
			return err
		}
	}
	s.marks = marked
	s.say("marked: %s", cmp.Or(s.marks.words(), "nothing"))
	return nil
}

// markWords parts what is said into words. A path with a space stands in quotes, as the list of files shows one that
// needs them, or is all that is said.
func (s *shownRecord) markWords(rest string) (words []string) {
	if dir, is := strings.CutSuffix(rest, "/"); is && s.doc != nil && len(s.doc.within(tree.Path(dir))) > 0 {
		return []string{rest}
	}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		end := strings.IndexByte(rest, ' ')
		if rest[0] == '"' {
			end = closing(rest)
		}
		if end < 0 {
			end = len(rest)
		}
		words, rest = append(words, rest[:end]), rest[end:]
	}
	return words
}

// closing is where a quoted text that begins here has ended; -1: it does not end.
func closing(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// markWord marks what a word means: files by number, "3" or "3-5", hunks of one, "2:1,4", or a directory, "src/", or a path
// in quotes.
func (s *shownRecord) markWord(k marks, word string) error {
	switch {
	case s.doc == nil:
		return errors.New("it has no files")
	case !actable(s.row):
		return errors.New(outsideMarks)
	}
	_, n := s.doc.size()
	if word[0] == '"' {
		raw, ok := tree.ParseQuoted(word)
		if !ok {
			return fmt.Errorf("%s is no path in quotes", clean(word))
		}
		return s.markBelow(k, tree.Path(strings.TrimSuffix(raw, "/")))
	}
	if dir, is := strings.CutSuffix(word, "/"); is {
		return s.markBelow(k, tree.Path(dir))
	}
	number, hunks, byHunk := strings.Cut(word, ":")
	files, ok := numbers(number, n)
	if !ok || byHunk && len(files) > 1 {
		return fmt.Errorf("%q is no number of a file; there are %d", clean(number), n)
	}
	if !byHunk {
		for _, i := range files {
			k.set(s.doc, s.doc.section(i-1).path, true)
		}
		return nil
	}
	sec := s.doc.section(files[0] - 1)
	for one := range strings.SplitSeq(hunks, ",") {
		list, ok := numbers(one, sec.hunks)
		if !ok {
			return fmt.Errorf("%q is no hunk of file %s; there are %d", clean(one), number, sec.hunks)
		}
		for _, h := range list {
			if !k.has(sec.path, h) {
				k.toggle(s.doc, sec.path, h, sec.hunks)
			}
		}
	}
	return nil
}

// markBelow marks a directory and all files below it.
func (s *shownRecord) markBelow(k marks, dir tree.Path) error {
	paths := s.doc.within(dir)
	if len(paths) == 0 {
		return fmt.Errorf("it has nothing below %s", view.ShownPath(dir))
	}
	for _, path := range paths {
		k[path] = map[int]bool{whole: true}
	}
	return nil
}

// numbers reads "3" or "3-5", of 1 to n.
func numbers(text string, n int) (out []int, ok bool) {
	first, last, isRange := strings.Cut(text, "-")
	from, err := strconv.Atoi(first)
	to := from
	if err == nil && isRange {
		to, err = strconv.Atoi(last)
	}
	if err != nil || from < 1 || to > n || from > to {
		return nil, false
	}
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out, true
}

// words say what is marked.
func (k marks) words() string {
	var out []string
	for _, m := range k.requested() {
		text := view.ShownPath(m.Path)
		if len(m.Hunks) > 0 {
			text += fmt.Sprintf(" (%s of it)", view.Count(len(m.Hunks), "hunk"))
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (s *shownRecord) setLabel(name string) error {
	if !actable(s.row) || name == "" {
		return errors.New("a label needs a name, and a record")
	}
	if err := history.CheckLabel(name); err != nil {
		return err
	}
	s.say("The label '%s' will name record %s.\nthe same, typed: %s", clean(name), s.row.ID, clean(tree.ShellWords([]string{"decree", "label", name, s.row.ID})))
	if !s.yes() {
		return nil
	}
	if err := s.label(s.ctx, name, s.row.ID); err != nil {
		return err
	}
	s.say("labelled %s", clean(name))
	return nil
}

func (s *shownRecord) blame(rest string) error {
	i, err := s.file(rest)
	if err != nil {
		return err
	}
	file, err := s.Read.Blame(s.ctx, s.doc.section(i).path)
	if err != nil {
		return err
	}
	return file.Each(func(i int, l recorder.Blamed) error {
		s.say("%d  %s: %s", i+1, clean(view.WhatBrought(l.Culprit)), clean(string(l.Text)))
		return nil
	})
}

// planRow plans an operation on a row.
func (t *talk) planRow(operation string, r *timeline.Row, k marks) error {
	q, why := requestFor(operation, r)
	if why != "" {
		t.say("%s", why)
		return nil
	}
	return t.planned(operation, func() (*planner.Planned, error) { return t.planMarked(t.ctx, q, k) })
}

// planned shows a plan and, when it is confirmed, performs it.
func (t *talk) planned(operation string, make func() (*planner.Planned, error)) error {
	barred, err := timeline.Barred(t.Read)
	if err != nil {
		return err
	}
	if why := barred[operation]; why != "" {
		t.say("%s", why)
		return nil
	}
	p, err := make()
	if conflict, ok := errors.AsType[*planner.ConflictError](err); ok {
		return t.conflict(conflict)
	}
	if err != nil {
		return err
	}
	return t.confirm(p)
}

// confirm asks about a plan until it holds or is refused.
func (t *talk) confirm(p *planner.Planned) error {
	for {
		t.sayPlan(p)
		if len(p.Drafts) == 0 && len(p.Paths) == 0 || !t.yes() {
			return nil
		}
		done, err := t.plans.Perform(t.ctx, p.ID)
		var stale *planner.StaleError
		if errors.As(err, &stale) && len(p.Request.Marks) > 0 {
			t.say("%s", marksAreStale)
			return nil
		}
		if errors.As(err, &stale) {
			t.say("the files or the records changed meanwhile; this is the new plan")
			p = stale.New
			continue
		}
		if err != nil {
			return err
		}
		t.done++
		t.say("%s", strings.ReplaceAll(t.didWords(p.Request, done), " · ", ", "))
		return nil
	}
}

func (t *talk) sayPlan(p *planner.Planned) {
	t.say("%s", p.Question)
	for _, step := range p.Paths {
		line := "  " + step.Change + "  " + view.ShownQuoted(step.Path)
		if step.Reason != "" {
			line += "  " + clean(step.Reason)
		}
		t.say("%s", line)
	}
	for _, n := range p.Notes {
		t.say("note: %s", clean(n))
	}
	t.say("the same, typed: %s", clean(p.Command))
}

// conflict says what is in the way, and asks what is to be done about it.
func (t *talk) conflict(c *planner.ConflictError) error {
	t.say("%s", clean(c.Error()))
	for _, it := range c.Items {
		t.say("  %s", itemLine(it))
	}
	ways := c.Ways()
	if len(ways) == 0 {
		return nil
	}
	for _, w := range ways {
		t.say("%s %s", w.Key, w.Words)
	}
	answer, _ := t.ask(wayKeys(ways) + ", or enter to leave it")
	for _, w := range ways {
		switch {
		case answer != w.Key:
		case w.Merge == nil:
			return t.planned(w.Request.Operation, func() (*planner.Planned, error) { return t.plans.Plan(t.ctx, w.Request) })
		case len(w.Merge.Request.Marks) > 0:
			return t.confirm(w.Merge)
		default:
			return t.merge(w.Merge)
		}
	}
	t.say("nothing was changed")
	return nil
}

// wayKeys are the keys of ways, in words.
func wayKeys(ways []planner.Way) string {
	keys := make([]string, len(ways))
	for i, w := range ways {
		keys[i] = w.Key
	}
	return strings.Join(keys, ", ")
}

// merge asks about each hunk of a merge, and does what is wanted of it.
func (t *talk) merge(whole *planner.Planned) error {
	k, err := t.chooseHunks(whole.ID, whole.Request.Operation)
	if err != nil {
		return err
	}
	q := whole.Request
	if q.Marks, q.Of = k.requested(), whole.ID; len(q.Marks) == 0 {
		t.say("nothing was changed")
		return nil
	}
	p, err := t.plans.Plan(t.ctx, q)
	if err != nil {
		return err
	}
	return t.confirm(p)
}

// chooseHunks asks about each hunk of a plan.
func (t *talk) chooseHunks(id, operation string) (marks, error) {
	k := marks{}
	doc := planDocument(t.ctx, func(ctx context.Context, w io.Writer) error { return t.plans.Diff(ctx, w, id) })
	defer doc.close()
	if err := doc.index(t.ctx, func() {}); err != nil {
		return nil, err
	}
	_, n := doc.size()
	for i := range n {
		sec := doc.section(i)
		if err := t.chooseOf(doc, i, sec, k, operation); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (t *talk) chooseOf(doc *document, i int, sec section, k marks, operation string) error {
	end, n := doc.size()
	if i+1 < n {
		end = doc.section(i + 1).row
	}
	begin := sec.row
	for hunk := min(1, sec.hunks); hunk <= sec.hunks; hunk++ {
		next := begin + 1
		for next < end { // up to the head of the next hunk
			lines, err := doc.lines(next, 1)
			if err != nil {
				return err
			}
			if len(lines) == 0 || lines[0].kind == '@' && lines[0].hunk > max(hunk, 1) {
				break
			}
			next++
		}
		if err := t.sayLines(doc, begin, next); err != nil {
			return err
		}
		answer, ok := t.ask(operation + " this? y or n")
		if !ok {
			return nil
		}
		if strings.EqualFold(answer, "y") != k.has(sec.path, hunk) {
			k.toggle(doc, sec.path, hunk, max(sec.hunks, 1))
		}
		begin = next
	}
	return nil
}
