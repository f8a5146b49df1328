package cmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"decree/history"
	"decree/queue"
	"decree/recorder"
	"decree/view"
)

func (s *session) statusVerb() verb {
	return verb{
		name: "status", category: lookCategory,
		usage: "the root, the store, the last record, and what changed since",
		about: `Shows where the root and the store are, how large the store and the readable copies of the records in .decree/runs are (their diffs and the logs of what commands printed), how many reverts, applies and restores were made, how many runs failed, and how many other commands failed or were refused, not counting mistyped ones ("decree audit" lists them all), the newest record, a record that was begun and not ended, the drafts of isolated runs that wait, what is waiting in the inbox and the daemon that processes it, and what changed in the tree since the newest record, outside any run: the next record keeps that as its outside.diff. While a run is open, what changed since it began is shown instead. It writes nothing.`,
		examples: []example{
			{"decree status", "where am I, what did I do"},
			{"decree status --json", "the same for a program"},
		},
		flags:  s.reading(),
		action: s.status,
	}
}

// inboxOf counts the messages; one that cannot be listed is told by "decree inbox".
func (s *session) inboxOf(rec *recorder.Reader) view.Inbox {
	p := rec.Project()
	waiting, _ := queue.Waiting(p, "")
	dead, _ := queue.Waiting(p, "dead")
	in := view.Inbox{Waiting: len(waiting), Dead: len(dead), Jobs: queue.UnusableJobs(p)}
	doing, _ := queue.UnderWay(p, s.env.Host)
	for _, m := range doing {
		in.Running = append(in.Running, m.Name)
	}
	stuck, _ := queue.WhyStuck(rec)
	for _, name := range slices.Sorted(maps.Keys(stuck)) {
		in.Unpublished = append(in.Unpublished, quoteWord(name)+": "+stuck[name])
	}
	return in
}

func (s *session) status(ctx context.Context) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	st, err := rec.Status(ctx)
	if err != nil {
		return err
	}
	if s.global.json {
		labels, err := s.allLabels()
		if err != nil {
			return err
		}
		if st.Lost != nil {
			s.note(cannotBeTold + st.Lost.Error())
		}
		p := rec.Project()
		return s.printJSON(view.StatusOf(p, st, labels, s.inboxOf(rec), view.DaemonOf(queue.Daemon(p))))
	}
	return s.print(func(w io.Writer) error { return s.writeStatus(w, rec, st) })
}

// statusFiles is how many changed paths status lists.
const statusFiles = 50

func (s *session) writeStatus(w io.Writer, rec *recorder.Reader, st *recorder.Status) error {
	s.field(w, "root", quoteWord(st.Root))
	s.field(w, "store", fmt.Sprintf("%s (%s)", quoteWord(st.StorePath), size(st.Used.Store)))
	s.field(w, "runs", fmt.Sprintf(".decree/runs (%s): what each record changed, and what its command printed", size(st.Used.Runs)))
	s.field(w, "audit", tallyInWords(st.Tally))
	if st.Last == nil {
		s.field(w, "last", "no record yet: 'decree run -- COMMAND' or 'decree checkpoint' makes one")
	} else {
		s.recordField(w, "last", fmt.Sprintf("%s  %s  %s", st.Last.ID, s.ago(st.Last.Started), statusInWords(st.Last)), st.Last)
	}
	for _, o := range st.Open {
		s.recordField(w, "open", fmt.Sprintf("%s  begun %s", o.ID, s.ago(o.Started)), o)
	}
	s.statusDrafts(w, st.Drafts)
	if len(st.Hooks) > 0 {
		s.field(w, "hooks", oneLine(recorder.UnrecordedHooks(st.Hooks)))
	}
	s.writeQueue(w, rec)
	if st.Last == nil && st.Since == nil {
		return nil
	}
	return s.writeChanged(w, st)
}

// statusDrafts names the newest of the drafts that wait; nothing where none does.
func (s *session) statusDrafts(w io.Writer, drafts []*history.Record) {
	const most = 3
	var names []string
	for _, d := range drafts[:min(len(drafts), most)] {
		names = append(names, nameOf(d))
	}
	if more := len(drafts) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) > 0 {
		s.field(w, "drafts", fmt.Sprintf("%d to publish or discard: %s; 'decree drafts' lists them", len(drafts), oneLine(strings.Join(names, ", "))))
	}
}

// field prints a line of status; on a terminal it goes on below its text.
func (s *session) field(w io.Writer, name, text string) {
	if room := s.columns(s.env.Stdout); isTerminal(s.env.Stdout) && width(fieldIndent+text) > room {
		text = strings.TrimSpace(wrap(text, room, fieldIndent))
	}
	fmt.Fprintf(w, "%-6s %s\n", name, text)
}

const fieldIndent = "       "

// recordField is a line of status about a record, with what it is for; on a narrow
// terminal that is a line of its own.
func (s *session) recordField(w io.Writer, name, text string, r *history.Record) {
	what, between := clip(view.What(r), 60), "  "
	if room := s.columns(s.env.Stdout); isTerminal(s.env.Stdout) && width(fieldIndent+text+between+what) > room {
		what, between = clip(what, room-len(fieldIndent)), "\n"+fieldIndent
	}
	fmt.Fprintf(w, "%-6s %s\n", name, strings.TrimRight(text+between+what, " \n"))
}

// tallyInWords is "1 revert, 2 restores; 3 runs failed".
func tallyInWords(t recorder.Tally) string {
	var made, failed []string
	for _, c := range []struct {
		n    int
		noun string
	}{{t.Reverts, "revert"}, {t.Applies, "apply"}, {t.Restores, "restore"}} {
		if c.n > 0 {
			made = append(made, count(c.n, c.noun))
		}
	}
	if t.FailedRuns > 0 {
		failed = append(failed, count(t.FailedRuns, "run")+" failed")
	}
	if n := t.Failures - t.FailedRuns; n > 0 {
		failed = append(failed, count(n, "other command")+" failed or refused")
	}
	switch {
	case len(made)+len(failed) == 0:
		return "nothing taken back, nothing failed"
	case len(failed) == 0:
		return strings.Join(made, ", ") + "; nothing failed"
	case len(made) == 0:
		made = []string{"nothing taken back"}
	}
	return strings.Join(made, ", ") + "; " + strings.Join(failed, ", ") + ": see 'decree audit'"
}

// writeQueue says what waits in the inbox, and who does it; nothing where there is
// neither.
func (s *session) writeQueue(w io.Writer, rec *recorder.Reader) {
	in, daemon := s.inboxOf(rec), view.DaemonOf(queue.Daemon(rec.Project()))
	if in.Waiting+in.Dead > 0 {
		text := fmt.Sprintf("%s waiting, %d dead", count(in.Waiting, "message"), in.Dead)
		if len(in.Running) > 0 {
			text += "; being done: " + oneLine(list(in.Running))
		}
		s.field(w, "inbox", text)
	}
	for _, why := range in.Unpublished {
		s.field(w, "waits", oneLine(why))
	}
	for _, job := range in.Jobs {
		s.field(w, "cron", oneLine(job))
	}
	switch {
	case daemon != nil:
		s.field(w, "daemon", fmt.Sprintf("process %d, since %s", daemon.PID, s.clock(daemon.Start)))
	case in.Waiting > 0:
		s.field(w, "daemon", "none: 'decree process' or 'decree daemon' processes what is waiting")
	}
}

const cannotBeTold = "what changed since the last record cannot be told: "

// writeChanged lists what changed since the newest record.
func (s *session) writeChanged(w io.Writer, st *recorder.Status) error {
	if st.Lost != nil {
		_, err := fmt.Fprintf(w, "\n%s%v\n", cannotBeTold, st.Lost)
		return err
	}
	if st.RuleOnly > 0 {
		fmt.Fprintf(w, "%s entered or left the tree only because ignore rules changed\n", count(st.RuleOnly, "path"))
	}
	since, by := "the last record", ", outside any run"
	for _, o := range st.Open {
		switch o.Reason {
		case history.Revert, history.Apply, history.Restore, history.Publish: // it moves files, or its process died while it did
			by = fmt.Sprintf(", by %s %s, which is still open, or outside any run", o.Reason, o.ID)
		}
	}
	if st.Since != nil {
		since, by = fmt.Sprintf("%s %s began, which is still open", st.Since.Reason, st.Since.ID), ""
	}
	if len(st.Changed) == 0 {
		_, err := fmt.Fprintf(w, "\nnothing changed since %s\n", since)
		return err
	}
	fmt.Fprintf(w, "\n%s changed since %s%s:\n", pathsIn(st.Changed), since, by)
	t := s.fits(&table{}, s.env.Stdout, 1)
	t.addChanges(st.Changed, statusFiles)
	return t.write(w)
}
