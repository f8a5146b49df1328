package cmd

import (
	"fmt"
	"slices"
	"strings"

	"decree/history"
	"decree/tree"

	"decree/recorder"
	"decree/view"
)

// summaryFiles is how many changed files a summary names.
const summaryFiles = 8

// summary says on stderr what a run did, what was done about it, and what the
// next commands are.
func (s *session) summary(result *recorder.RunResult) {
	r := result.Record
	if s.global.events {
		for _, n := range result.Notes {
			s.say("%s", oneLine(n)) // the rest is in record-created
		}
		return
	}
	s.tellGone(result)
	if s.global.quiet {
		if result.ExitCode == runFailed { // decree's own failure is an error, quiet or not
			for _, n := range result.Notes {
				fmt.Fprintf(s.env.Stderr, "decree run: %s: %s\n", r.ID, oneLine(n))
			}
		}
		return
	}
	s.meter.stop()
	p := s.paint(s.env.Stderr)
	s.say("%s %s %s", p.in(bold, "decree:"), r.ID, outcome(result))
	switch told := withoutStayed(result); {
	case len(told) == 0:
	case len(told) < len(result.Changes):
		s.changedFiles(told)
	default:
		s.say("  %s", changesInWords(r.Changes))
		s.changedFiles(told)
	}
	for _, n := range result.Notes {
		s.note(n)
	}
	if hint := shellHint(result); hint != "" {
		s.say("%s %s", p.in(cyan, "hint:"), hint)
	}
	s.sayNext(nextCommands(result), len("decree revert "+r.ID))
}

// withoutStayed are a run's changes without those that were not put back, since they
// hold what is not recorded.
func withoutStayed(result *recorder.RunResult) []tree.Change {
	var stayed []tree.Path
	for _, g := range result.Gone {
		if g.Now != "" {
			stayed = append(stayed, g.Now)
		}
	}
	if len(stayed) == 0 || !result.PutBack {
		return result.Changes
	}
	return slices.DeleteFunc(slices.Clone(result.Changes), func(c tree.Change) bool { return c.Path.Within(stayed...) })
}

// goneNamed bounds the lines about what lay deeper than in the root, and the names in a line.
const goneNamed = 8

// tellGone says of what is not recorded that it was taken away: in red, and even to
// who asked for quiet, where it can hardly be made again.
func (s *session) tellGone(result *recorder.RunResult) {
	p := s.paint(s.env.Stderr)
	var grave, other, below []string
	for _, g := range result.Gone {
		if g.Below() && (!g.Irreplaceable() || len(grave) >= goneNamed) {
			below = append(below, shownPath(g.Path))
			continue
		}
		text := shownPath(g.Path) + " is gone: the command deleted it, and decree cannot put it back, since it is not recorded"
		switch {
		case g.Below():
			text = shownPath(g.Path) + " is gone: the command deleted it or moved it, and decree cannot put it back, since it is not recorded"
		case g.Now != "":
			text = fmt.Sprintf("%s is now %s and was not moved back: %v", shownPath(g.Path), shownPath(g.Now), g.Why)
		}
		if g.Irreplaceable() {
			grave = append(grave, p.in(red, "decree: "+text))
		} else {
			other = append(other, text)
		}
	}
	if n := len(below) + result.MoreGone; n > 0 {
		named := below[:min(len(below), goneNamed)]
		text := strings.Join(named, ", ")
		switch more := n - len(named); {
		case len(named) == 0:
			text = count(more, "other path") + " below the root"
		case more > 0:
			text += fmt.Sprintf(" and %d more", more)
		}
		other = append(other, "gone, as the command deleted or moved what is not recorded, and decree cannot put it back: "+text)
	}
	s.meter.stop()
	for _, line := range grave {
		fmt.Fprintln(s.env.Stderr, line)
	}
	for _, text := range other {
		s.note(text)
	}
}

// notFound is the exit status of a command that was not found.
const notFound = 127

// shellHint is for who gave a line of the shell's as one word: it is the name of a
// program to decree.
func shellHint(result *recorder.RunResult) string {
	words := result.Record.Command
	if result.ExitCode != notFound || result.Last.NotStarted == nil || len(words) != 1 || !strings.ContainsAny(words[0], " |&;<>()$`*?") {
		return ""
	}
	return "no shell was started; to use one: decree run -- sh -c " + quoteWord(words[0])
}

// outcome is how the command ended and what became of its changes.
func outcome(result *recorder.RunResult) string {
	r := result.Record
	text := "succeeded"
	if r.Status != history.StatusSucceeded {
		text = "failed (" + ending(result) + ")"
	}
	if r.Attempts > 1 {
		text += fmt.Sprintf(" after %d attempts", r.Attempts)
	}
	if t := took(r); t != "" {
		text += " in " + t
	}
	switch {
	case result.Record.Draft != nil && len(result.Changes) > 0:
		return text + "; it changed, in a draft:"
	case len(result.Changes) == 0 && (len(result.Gone) > 0 || result.Record.Draft != nil):
		return text + "; it changed nothing that is recorded"
	case len(result.Changes) == 0:
		return text + "; it changed nothing"
	case len(withoutStayed(result)) == 0:
		return text + "; it changed nothing else that is recorded"
	case result.PutBack && len(result.Gone) > 0:
		return text + "; what else it changed was put back:"
	case result.PutBack:
		return text + "; what it changed was put back:"
	case r.Status == history.StatusSucceeded:
		return text + "; it changed:"
	}
	return text + "; what it changed is still there:"
}

// ending says why a command counts as failed.
func ending(result *recorder.RunResult) string {
	last := result.Last
	switch {
	case last.NotStarted != nil:
		return oneLine(last.NotStarted.Error())
	case last.TimedOut:
		return "timeout"
	case last.Interrupted != nil:
		return "stopped by " + last.Interrupted.String()
	case last.Signal != "":
		return "ended by " + last.Signal
	}
	return fmt.Sprintf("exit status %d", last.ExitCode)
}

// changedFiles names the first files, directories only where nothing else changed.
func (s *session) changedFiles(changes []tree.Change) {
	files := make([]tree.Change, 0, len(changes))
	from, moved := renames(changes)
	for _, c := range changes {
		if !dirOnly(c) && !moved[c.Path] {
			files = append(files, c)
		}
	}
	if len(files) == 0 {
		files = changes
	}
	var b strings.Builder
	t := s.fits(&table{}, s.env.Stderr, 1)
	for _, c := range files[:min(len(files), summaryFiles)] {
		if old, ok := from[c.Path]; ok {
			t.add("    renamed", shownPath(old)+" -> "+shownPath(c.Path))
			continue
		}
		t.add("    "+view.ChangeWord(c.Old, c.New), changedPath(c))
	}
	_ = t.write(&b)
	s.say("%s", strings.TrimRight(b.String(), "\n"))
	if n := len(files) - summaryFiles; n > 0 {
		s.say("    and %s more", count(n, "path"))
	}
}

// dirOnly says whether a change is of directories alone.
func dirOnly(c tree.Change) bool {
	return (c.Old == nil || c.Old.Type == tree.Dir) && (c.New == nil || c.New.Type == tree.Dir)
}

// nextCommands are what one may want to do after a run.
func nextCommands(result *recorder.RunResult) []example {
	id := result.Record.ID
	if len(result.Changes) == 0 {
		return nil
	}
	if result.Record.Isolated != "" {
		return nextOfDraft(result)
	}
	if result.PutBack {
		return []example{
			{"decree apply " + id, "bring its work back"},
			{"decree diff " + id, "see what it had changed"},
			{"decree log", "all records"},
		}
	}
	return []example{
		{"decree diff " + id, "see what it changed"},
		{"decree revert " + id, "take it back"},
	}
}

// sayNext lists commands with what each is for, in a column behind the longest of the first
// three, or as if one had that many bytes.
func (s *session) sayNext(next []example, least int) {
	for _, n := range next[:min(len(next), 3)] {
		least = max(least, len(n.line))
	}
	p := s.paint(s.env.Stderr)
	for _, n := range next {
		s.say("  %s  %s", p.in(cyan, fmt.Sprintf("%-*s", least, n.line)), n.what)
	}
}
