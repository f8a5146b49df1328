package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"decree/history"
	"decree/plan"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// What is longer is shortened in words.
const (
	maxTitle   = 60  // characters of what a record is about
	maxNamed   = 3   // paths
	maxAnswers = 200 // lines of answers, and paths of a command line
)

// words say what a plan is.
type words struct {
	rec     *recorder.Recorder
	now     time.Time
	request Request
	*sight
}

// question says what will happen, as whole sentences.
func (w words) question() string {
	if w.request.Operation == discard {
		return w.discardWords()
	}
	var what string
	switch w.request.Operation {
	case undo:
		what = "Undoing takes back " + w.walkedWords()
	case redo:
		what = "Redoing brings again " + w.walkedWords()
	case revert:
		what = "Reverting takes back what " + w.subject() + " changed"
	case apply:
		what = "Applying does again what " + w.subject() + " did"
	case publish:
		what = "Publishing brings what " + w.subject() + " did into your files"
	case restore:
		what = w.restoreWords()
	}
	sentences := []string{what + w.parts() + ".", w.changes()}
	if bad := w.judgedBad(); bad != "" {
		sentences = slices.Insert(sentences, 1, bad)
	}
	switch {
	case w.nothing():
		return strings.Join(sentences, " ")
	case w.request.Force:
		where := "."
		if w.request.HasHunks() {
			where = " there."
		}
		sentences = append(sentences, "Edits that were made since are overwritten"+where)
	case w.request.Merge:
		sentences = append(sentences, "Edits that were made since stay, merged with it.")
		sentences = append(sentences, w.markerWords()...)
	}
	return strings.Join(append(sentences, "What is here now is kept and can be brought back."), " ")
}

// markerWords say which files get conflict markers.
func (w words) markerWords() []string {
	var marked []tree.Path
	for _, it := range w.result.Plan.Items {
		if it.Verdict == plan.Marked {
			marked = append(marked, it.Path)
		}
	}
	if len(marked) == 0 {
		return nil
	}
	return []string{"Where both changed the same lines, both are written into the file, between <<<<<<< and >>>>>>>, for you to choose from: in " + some(marked, view.ShownPath) + "."}
}

// nothing says that there is nothing to do.
func (w words) nothing() bool { return w.result.Plan == nil || w.result.Plan.Empty() }

// parts says which paths it is about, where that is not all.
func (w words) parts() (text string) {
	switch paths, marks := w.request.Paths, w.request.Marks; {
	case w.request.chooses() && len(marks) > 0:
		text = ", only what is marked: " + some(marks, markWords)
	case len(marks) > 0:
		text = ", only " + some(marks, markWords)
	case len(paths) > 0 && !slices.Contains(paths, ""):
		text = ", only " + some(paths, view.ShownPath)
	}
	if without := w.request.Exclude; len(without) > 0 {
		text += ", without " + some(without, view.ShownPath)
	}
	return text
}

func markWords(m Mark) string {
	name := view.ShownPath(m.Path)
	if len(m.Hunks) == 0 {
		return name
	}
	var hunks []string
	for _, n := range m.Hunks {
		if n == 0 {
			hunks = append(hunks, "mode")
		} else {
			hunks = append(hunks, fmt.Sprint(n))
		}
	}
	noun := " (hunk "
	if len(hunks) > 1 {
		noun = " (hunks "
	}
	if len(hunks) == 1 && m.Hunks[0] == 0 {
		noun = " ("
	}
	return name + noun + some(hunks, view.OneLine) + ")"
}

// some names the first few of a list.
func some[T any](all []T, name func(T) string) string {
	var b strings.Builder
	for i, one := range all[:min(len(all), maxNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name(one))
	}
	if more := len(all) - maxNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// changes counts: "12 files change, 2 are deleted."
func (w words) changes() string {
	p := w.result.Plan
	if w.nothing() {
		return "All of that is so already: nothing has to be changed."
	}
	var out []string
	for _, c := range []struct {
		n    int
		verb string
	}{{p.Modified, "change"}, {p.Created, "created"}, {p.Deleted, "deleted"}} {
		if c.n == 0 {
			continue
		}
		text := humanize.Comma(int64(c.n))
		if len(out) == 0 {
			text = view.Count(c.n, "file")
		}
		switch {
		case c.verb == "change" && c.n == 1:
			text += " changes"
		case c.verb == "change":
			text += " change"
		case c.n == 1:
			text += " is " + c.verb
		default:
			text += " are " + c.verb
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "Only directories change."
	}
	return strings.Join(out, ", ") + "."
}

// restoreWords say to what a restore goes.
func (w words) restoreWords() string {
	to := w.result.To
	at := to.Record.Started
	if to.After && !to.Record.Ended.IsZero() {
		at = to.Record.Ended
	}
	name := title(to.Record)
	if to.After {
		return "Restoring makes the files what " + name + " left at " + w.time(at)
	}
	side := ", before " + name
	if view.IsCheckpoint(to.Record) {
		side = ", at " + name
	}
	return "Restoring makes the files what they were at " + w.time(at) + side
}

// records are those of a revert, apply or publish.
func (w words) records() (found []*history.Record) {
	for _, ref := range w.request.refs() {
		list, err := w.rec.History().ResolveAll(ref, w.now.Location())
		for _, one := range list {
			if r, gerr := w.rec.History().Get(one.ID); err == nil && gerr == nil {
				found = append(found, r)
			}
		}
	}
	return found
}

// judgedBad says of what is published that its judge found it bad; "" where that is not so.
func (w words) judgedBad() string {
	if w.request.Operation != publish {
		return ""
	}
	for _, r := range w.records() {
		if view.Judged(r) == "bad" {
			return fmt.Sprintf("The judge of the race found it bad, with exit status %d.", r.Judge.ExitCode)
		}
	}
	return ""
}

// subject names the records of a revert, apply or publish.
func (w words) subject() string {
	switch found := w.records(); {
	case len(found) == 1 && found[0].Draft != nil && found[0].Draft.Name != "":
		return "draft '" + view.OneLine(found[0].Draft.Name) + "'"
	case len(found) == 1:
		return title(found[0])
	case len(w.request.refs()) == 0:
		return "the draft that waits"
	case len(found) > 1:
		noun := "record"
		if !slices.ContainsFunc(found, func(r *history.Record) bool { return r.Reason != history.Turn }) {
			noun = "turn"
		}
		return view.Count(len(found), noun) + " (" + some(found, title) + ")"
	}
	return some(w.request.refs(), view.OneLine)
}

func (w words) walkedWords() string {
	links := w.result.Walked
	if len(links) == 1 && links[0].Record != nil {
		return "the newest change, " + title(links[0].Record)
	}
	return view.Count(len(links), "change")
}

func (w words) discardWords() string {
	names := some(w.drafts, func(d recorder.Discarded) string {
		if d.Draft.Name != "" {
			return "'" + view.OneLine(d.Draft.Name) + "'"
		}
		return d.ID
	})
	text, tail := "Discarding gives up draft "+names, " Its record and its diff stay."
	if len(w.drafts) != 1 {
		text, tail = "Discarding gives up drafts "+names, " Their records and their diffs stay."
	}
	text += ": what was not published cannot be published any more."
	for _, d := range w.drafts {
		if lost := d.Lost(); lost != "" {
			text += " Draft " + d.ID + " has " + lost + "."
		}
	}
	return text + tail
}

// title names a record by what it is about, in quotes.
func title(rec *history.Record) string {
	text := view.What(rec)
	if r := []rune(text); len(r) > maxTitle {
		text = string(r[:maxTitle-1]) + "…"
	}
	switch {
	case text != "" && view.IsCheckpoint(rec):
		return "the checkpoint '" + text + "'"
	case text != "":
		return "'" + text + "'"
	case view.IsCheckpoint(rec):
		return "that checkpoint"
	}
	return "record " + rec.ID
}

// time is a time as people say it, with the year where it is another one than now.
func (w words) time(at time.Time) string {
	at = at.In(w.now.Location())
	if at.Year() == w.now.Year() {
		return at.Format("2 Jan 15:04")
	}
	return at.Format("2 Jan 2006 15:04")
}

// command is the line that does the same. Where whole paths are marked they are its PATHs; answers to -p that
// would be too many to read are left to be typed.
func (w words) command() string {
	q := w.request
	answers, exclude, paths := w.answers, w.attempt.exclude, w.attempt.Paths
	if whole := q.wholePaths(); len(answers) > 0 && len(whole) > 0 {
		answers, exclude, paths = nil, nil, whole
	}
	line := []string{"decree", q.Operation}
	flag := func(on bool, words ...string) {
		if on {
			line = append(line, words...)
		}
	}
	flag(q.walks() && q.Limit > 1, fmt.Sprint(q.Limit))
	flag(len(answers) > 0, "-p")
	flag(q.After, "--after")
	flag(q.Force, "--force")
	flag(q.Merge && !q.Markers, "--merge")
	flag(q.Markers, "--markers")
	if len(exclude) <= maxAnswers {
		for _, path := range exclude {
			line = append(line, "--exclude", typed(path))
		}
	}
	for _, ref := range q.refs() {
		line = append(line, w.lasting(ref))
	}
	if len(paths) > 0 && len(paths) <= maxAnswers {
		flag(!q.walks() && q.Operation != restore, "--")
		for _, path := range paths {
			line = append(line, typed(path))
		}
	}
	text := tree.ShellWords(line)
	if len(answers) == 0 || len(answers) > maxAnswers {
		return text
	}
	return `printf '%s\n' ` + answered(answers) + " | " + text
}

// wholePaths are the marked paths where each is marked whole; none where a hunk is, or where they
// are too many for a command line.
func (q Request) wholePaths() (paths []tree.Path) {
	for _, m := range q.Marks {
		if len(m.Hunks) > 0 || len(q.Marks) > maxAnswers {
			return nil
		}
		paths = append(paths, m.Path)
	}
	return paths
}

// lasting is a REF that means the same when there are newer records.
func (w words) lasting(ref string) string {
	if !strings.HasPrefix(ref, "last") || strings.Contains(ref, "..") {
		return ref
	}
	found, err := w.rec.History().Resolve(ref, w.now.Location())
	if err != nil {
		return ref
	}
	return found.ID
}

func answered(list []plan.Answer) string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = string(rune(a))
	}
	return strings.Join(out, " ")
}

// typed is a path as a PATH in the root.
func typed(path tree.Path) string {
	if path == "" {
		return "."
	}
	if path[0] == '-' || strings.Trim(string(path), "0123456789") == "" { // no flag, and no number of records
		return "./" + string(path)
	}
	return string(path)
}
