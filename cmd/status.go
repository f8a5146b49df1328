package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"decree/manifest"
	"decree/project"
	"decree/queue"
	"decree/recorder"
)

func (s *session) statusVerb() verb {
	return verb{
		name: "status", category: lookCategory,
		usage: "the root, the store, the last record, and what changed since",
		about: `Shows where the root and the store are, how large the store and the readable copies of the records in .decree/runs are (their diffs and the logs of what commands printed), how many restores were made and how many operations failed or were refused, counting failed runs but not mistyped commands ("decree audit" lists them all), the newest record, a record that was begun and not ended, what is waiting in the inbox and the daemon that processes it, and what changed in the tree since the newest record, outside any run: the next record keeps that as its outside.diff. While a run is open, what changed since it began is shown instead. It writes nothing.`,
		examples: []example{
			{"decree status", "where am I, what did I do"},
			{"decree status --json", "the same for a program"},
		},
		flags:  s.reading(),
		action: s.status,
	}
}

// statusJSON is status for programs.
type statusJSON struct {
	placeJSON
	StoreBytes int64             `json:"store_bytes"`
	RunsBytes  int64             `json:"runs_bytes"` // of the copies in .decree/runs
	Restores   int               `json:"restores"`
	Failures   int               `json:"failures"`
	Last       json.RawMessage   `json:"last"`
	Open       []json.RawMessage `json:"open"`
	Changed    []changedJSON     `json:"changed"` // null: cannot be told
	Since      string            `json:"since"`   // the record that changed is counted from
	Inbox      inboxCounts       `json:"inbox"`
	Daemon     *daemonJSON       `json:"daemon"` // null: there is none
	RuleOnly   int               `json:"rule_only"`
}

// changedJSON is a path that differs from the newest record; quoted as in the manifest.
type changedJSON struct {
	Path   string `json:"path"`
	Op     string `json:"op"`
	Change string `json:"change"`
}

// inboxCounts are how many messages wait, and how many were put aside.
type inboxCounts struct {
	Waiting int `json:"waiting"`
	Dead    int `json:"dead"`
}

type daemonJSON struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Start time.Time `json:"start"`
}

// inboxOf counts the messages; one that cannot be listed is told by "decree inbox".
func inboxOf(p *project.Project) inboxCounts {
	waiting, _ := queue.Waiting(p, "")
	dead, _ := queue.Waiting(p, "dead")
	return inboxCounts{len(waiting), len(dead)}
}

func daemonOf(p *project.Project) *daemonJSON {
	h := queue.Daemon(p)
	if h.PID == 0 {
		return nil
	}
	return &daemonJSON{h.PID, h.Host, h.Start}
}

func (s *session) status(ctx context.Context) error {
	if err := s.noWords(); err != nil {
		return err
	}
	rec, err := s.forReading(ctx)
	if err != nil {
		return err
	}
	st, err := rec.Status(ctx)
	if err != nil {
		return err
	}
	if s.global.json {
		return s.printStatusJSON(rec, st)
	}
	return s.print(func(w io.Writer) error { return s.writeStatus(w, rec.Project(), st) })
}

func (s *session) printStatusJSON(rec *recorder.Recorder, st *recorder.Status) (err error) {
	out := statusJSON{
		placeJSON:  placeJSON{st.Root, st.StorePath, rec.Project().ID},
		StoreBytes: st.Used.Store, RunsBytes: st.Used.Runs, Restores: st.Restores, Failures: st.Failures, RuleOnly: st.RuleOnly,
		Open: []json.RawMessage{}, Changed: []changedJSON{}, Inbox: inboxOf(rec.Project()), Daemon: daemonOf(rec.Project()),
	}
	if since := cmp.Or(st.Since, st.Last); since != nil {
		out.Since = since.ID
	}
	if st.Last != nil {
		if out.Last, err = s.recordJSON(st.Last); err != nil {
			return err
		}
	}
	for _, o := range st.Open {
		data, err := s.recordJSON(o)
		if err != nil {
			return err
		}
		out.Open = append(out.Open, data)
	}
	if st.Lost != nil {
		s.note(cannotBeTold + st.Lost.Error())
		out.Changed = nil
	}
	for _, c := range st.Changed {
		out.Changed = append(out.Changed, changedJSON{manifestPath(c.Path), changeWord(c.Old, c.New), changeWord(c.Old, c.New)})
	}
	return s.printJSON(out)
}

// statusFiles is how many changed paths status lists.
const statusFiles = 50

func (s *session) writeStatus(w io.Writer, p *project.Project, st *recorder.Status) error {
	fmt.Fprintf(w, "root   %s\nstore  %s (%s)\nruns   .decree/runs (%s): what each record changed, and what its command printed\n",
		quoteWord(st.Root), quoteWord(st.StorePath), size(st.Used.Store), size(st.Used.Runs))
	fmt.Fprintf(w, "audit  %s, %s\n", count(st.Restores, "restore"), count(st.Failures, "failure"))
	if st.Last == nil {
		fmt.Fprintln(w, "last   no record yet: 'decree run -- COMMAND' or 'decree checkpoint' makes one")
	} else {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("last   %s  %s  %s  %s", st.Last.ID, s.ago(st.Last.Started), statusInWords(st.Last), clip(whatOf(st.Last), 60)), " "))
	}
	for _, o := range st.Open {
		fmt.Fprintf(w, "open   %s  begun %s  %s\n", o.ID, s.ago(o.Started), clip(whatOf(o), 60))
	}
	s.writeQueue(w, p)
	if st.Last == nil && st.Since == nil {
		return nil
	}
	return writeChanged(w, st)
}

// writeQueue says what waits in the inbox, and who does it; nothing where there is
// neither.
func (s *session) writeQueue(w io.Writer, p *project.Project) {
	in, daemon := inboxOf(p), daemonOf(p)
	if in != (inboxCounts{}) {
		fmt.Fprintf(w, "inbox  %s waiting, %d dead\n", count(in.Waiting, "message"), in.Dead)
	}
	switch {
	case daemon != nil:
		fmt.Fprintf(w, "daemon process %d, since %s\n", daemon.PID, s.clock(daemon.Start))
	case in.Waiting > 0:
		fmt.Fprintln(w, "daemon none: 'decree process' or 'decree daemon' processes what is waiting")
	}
}

const cannotBeTold = "what changed since the last record cannot be told: "

// writeChanged lists what changed since the newest record.
func writeChanged(w io.Writer, st *recorder.Status) error {
	if st.Lost != nil {
		_, err := fmt.Fprintf(w, "\n%s%v\n", cannotBeTold, st.Lost)
		return err
	}
	if st.RuleOnly > 0 {
		fmt.Fprintf(w, "%s entered or left the tree only because ignore rules changed\n", count(st.RuleOnly, "path"))
	}
	since, by := "the last record", ", outside any run"
	if st.Since != nil {
		since, by = fmt.Sprintf("run %s began, which is still open", st.Since.ID), ""
	}
	if len(st.Changed) == 0 {
		_, err := fmt.Fprintf(w, "\nnothing changed since %s\n", since)
		return err
	}
	fmt.Fprintf(w, "\n%s changed since %s%s:\n", changedPaths(st.Changed), since, by)
	tw := tabbed(w, 2)
	for i, c := range st.Changed {
		if i == statusFiles {
			fmt.Fprintf(tw, "  and %s more\n", count(len(st.Changed)-i, "path"))
			break
		}
		fmt.Fprintf(tw, "  %s\t%s\n", changeWord(c.Old, c.New), shownPath(c.Path)+slash(c.Old, c.New))
	}
	return tw.Flush()
}

// changedPaths counts changes as pathsOf does.
func changedPaths(changes []manifest.Change) string {
	dirs := 0
	for _, c := range changes {
		if slash(c.Old, c.New) != "" {
			dirs++
		}
	}
	return pathsAndDirs(len(changes), dirs)
}
