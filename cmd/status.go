package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"decree/recorder"
)

func (s *session) statusVerb() verb {
	return verb{
		name: "status", category: lookCategory,
		usage: "the root, the store, the last record, and what changed since",
		about: `Shows where the root and the store are and how large the store is, how many restores were made and how many operations failed or were refused, failed runs among them ("decree audit" lists them), the newest record, a record that was begun and not ended, and what changed in the tree since the newest record, by no run: the next record keeps that as its outside.diff. It writes nothing.`,
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
	Restores   int               `json:"restores"`
	Failures   int               `json:"failures"`
	Last       json.RawMessage   `json:"last"`
	Open       []json.RawMessage `json:"open"`
	Changed    []changedJSON     `json:"changed"` // null: cannot be told
	RuleOnly   int               `json:"rule_only"`
}

// changedJSON is a path that differs from the newest record; quoted as in the manifest.
type changedJSON struct {
	Path   string `json:"path"`
	Op     string `json:"op"`
	Change string `json:"change"`
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
	return s.print(func(w io.Writer) error { return s.writeStatus(w, st) })
}

func (s *session) printStatusJSON(rec *recorder.Recorder, st *recorder.Status) (err error) {
	out := statusJSON{
		placeJSON:  placeJSON{st.Root, st.StorePath, rec.Project().ID},
		StoreBytes: st.StoreBytes, Restores: st.Restores, Failures: st.Failures, RuleOnly: st.RuleOnly,
		Open: []json.RawMessage{}, Changed: []changedJSON{},
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

func (s *session) writeStatus(w io.Writer, st *recorder.Status) error {
	fmt.Fprintf(w, "root   %s\nstore  %s (%s)\n", quoteWord(st.Root), quoteWord(st.StorePath), size(st.StoreBytes))
	fmt.Fprintf(w, "audit  %s, %s\n", count(st.Restores, "restore"), count(st.Failures, "failure"))
	if st.Last == nil {
		fmt.Fprintln(w, "last   no record yet: 'decree run -- COMMAND' or 'decree checkpoint' makes one")
	} else {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("last   %s  %s  %s  %s", st.Last.ID, s.ago(st.Last.Started), statusInWords(st.Last), clip(whatOf(st.Last), 60)), " "))
	}
	for _, o := range st.Open {
		fmt.Fprintf(w, "open   %s  begun %s  %s\n", o.ID, s.ago(o.Started), clip(whatOf(o), 60))
	}
	if st.Last == nil {
		return nil
	}
	return writeChanged(w, st)
}

const cannotBeTold = "what changed since the last record cannot be told: "

// writeChanged lists what changed since the newest record.
func writeChanged(w io.Writer, st *recorder.Status) error {
	if st.Lost != nil {
		_, err := fmt.Fprintf(w, "\n%s%v\n", cannotBeTold, st.Lost)
		return err
	}
	if st.RuleOnly > 0 {
		fmt.Fprintf(w, "%s joined or left the tree only because ignore rules changed\n", count(st.RuleOnly, "path"))
	}
	if len(st.Changed) == 0 {
		_, err := fmt.Fprintln(w, "\nnothing changed since the last record")
		return err
	}
	fmt.Fprintf(w, "\n%s changed since the last record, by no run:\n", count(len(st.Changed), "path"))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, c := range st.Changed {
		if i == statusFiles {
			fmt.Fprintf(tw, "  and %s more\n", count(len(st.Changed)-i, "path"))
			break
		}
		fmt.Fprintf(tw, "  %s\t%s\n", changeWord(c.Old, c.New), shownPath(c.Path)+slash(c.Old, c.New))
	}
	return tw.Flush()
}
