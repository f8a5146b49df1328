package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"decree/history"
	"decree/project"
)

func (s *session) auditVerb() verb {
	return verb{
		name: "audit", category: keepCategory,
		usage: "show the log of operations and check that it is intact",
		about: `Prints one line for each operation that wrote, failed ones too, oldest first: when, what, on which record, by whom, and how it ended. Each line of the log has the hash of the line before it; the chain is checked, and where it does not hold, it says from which line and time on. Nothing that decree does changes an earlier line: not restore, prune, gc or forget.`,
		examples: []example{
			{"decree audit", "what was done here"},
			{"decree audit --json", "the same for a program"},
			{"decree audit -q", "nothing but the check: exit code 5 if the log was changed"},
		},
		exits:  []exit{{"0", "the chain is whole"}, {"5", "it is broken"}},
		flags:  s.reading(),
		action: s.audit,
	}
}

func (s *session) audit(ctx context.Context) error {
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	show := s.printAudit
	if s.global.json {
		show = s.printAuditJSON
	}
	report, err := show(rec.History())
	if err != nil {
		return err
	}
	if report.Broken == 0 {
		return nil
	}
	return s.brokenSince(report)
}

// brokenSince is the report's error with the time from which on it holds.
func (s *session) brokenSince(r *history.AuditReport) error {
	since := "from the first line on"
	if !r.Since.IsZero() {
		since = "after " + s.clock(r.Since)
	}
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%v, %s", r.Err(), since), Advice: project.HintOf(r.Err())}
}

func (s *session) printAudit(h history.Reader) (report *history.AuditReport, err error) {
	if s.global.quiet {
		return h.ReadAudit(nil)
	}
	err = s.page(func(w io.Writer) error {
		report, err = h.ReadAudit(func(o *history.Operation) error {
			_, err := fmt.Fprintln(w, s.operationLine(o))
			return err
		})
		return err
	})
	if err == nil && report == nil { // the pager was closed early
		return h.ReadAudit(nil)
	}
	return report, err
}

// operationLine is one operation for people.
func (s *session) operationLine(o *history.Operation) string {
	words := []string{s.clock(o.Time), o.Op}
	if o.Record != "" {
		words = append(words, o.Record)
	}
	if o.Detail != "" {
		words = append(words, "("+clip(o.Detail, 60)+")")
	}
	if by := actorText(o.Actor); by != "@" {
		words = append(words, "by "+by)
	}
	return oneLine(strings.Join(append(words, "-", o.Outcome), " "))
}

// printAuditJSON prints the operations as one array, each as the log has it.
func (s *session) printAuditJSON(h history.Reader) (*history.AuditReport, error) {
	list := []json.RawMessage{}
	report, err := h.ReadAudit(func(o *history.Operation) error {
		data, err := json.Marshal(o)
		list = append(list, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return report, s.printJSON(list)
}
