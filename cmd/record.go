package cmd

import (
	"fmt"
	"io"
	"time"

	"decree/history"
	"decree/tree"
	"decree/view"
)

// printRecord prints one record as JSON.
func (s *session) printRecord(r *history.Record) error {
	foreign, err := s.rec.History().Foreign(r.ID)
	if err != nil {
		return err
	}
	labels, err := s.allLabels()
	if err != nil {
		return err
	}
	data := view.Record(r, labels)
	if foreign {
		data = view.ForeignRecord(r, labels)
	}
	return s.print(func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n", view.Escape(data))
		return err
	})
}

// printRecords prints records as a JSON array.
func (s *session) printRecords(records []*history.Record) error {
	labels, err := s.allLabels()
	if err != nil {
		return err
	}
	return s.print(func(w io.Writer) error { return view.EncodeRecords(w, records, labels) })
}

// changesOf is a record's changes in a few columns; "" for a checkpoint.
func changesOf(r *history.Record) string {
	if isCheckpoint(r) || r.Status == history.StatusOpen {
		return ""
	}
	c := r.Changes
	paths := c.Created + c.Modified + c.Deleted
	switch {
	case paths == 0 && r.DiffSHA256 == tree.Sum(nil):
		return "none"
	case paths == 0:
		return directoriesAlone
	}
	text := count(paths, "path")
	if c.AddedLines > 0 || c.RemovedLines > 0 {
		text += fmt.Sprintf(" +%d -%d", c.AddedLines, c.RemovedLines)
	}
	return text
}

// directoriesAlone is what changed where no file did.
const directoriesAlone = "directories only"

// isCheckpoint says whether a record is one without a command or a move.
func isCheckpoint(r *history.Record) bool {
	return r.Reason == history.Manual || r.Reason == history.Auto || r.Reason == history.Publish && r.DiffSHA256.IsZero()
}

// changesInWords is a record's changes as a summary has them.
func changesInWords(c history.Changes) string {
	return changeWords(c.Created, c.Modified, c.Deleted, int64(c.AddedLines), int64(c.RemovedLines))
}

// statusColour is how a status looks.
func statusColour(status history.Status) string {
	switch status {
	case history.StatusSucceeded:
		return green
	case history.StatusFailed, history.StatusInterrupted:
		return red
	case history.StatusReverted, history.StatusUndone, history.StatusOpen:
		return yellow
	}
	return plain
}

// statusWords says in few words what became of a record and of its changes.
func statusWords(r *history.Record) string {
	nothing := r.DiffSHA256 == tree.Sum(nil)
	switch {
	case r.Draft != nil:
		return string(r.Status) + ", " + draftState(r.Draft)
	case r.UndoneBy != "" && r.Status != history.StatusUndone:
		return "partly undone"
	case (r.Status == history.StatusFailed || r.Status == history.StatusReverted) && nothing:
		return "failed"
	case r.Status == history.StatusFailed:
		return "failed, kept"
	case r.Status == history.StatusReverted:
		return "failed, put back"
	}
	return string(r.Status)
}

// draftState says in few words what has become of a draft.
func draftState(d *history.Draft) string {
	switch d.State {
	case history.DraftWaiting:
		return "a draft"
	case history.DraftPartly:
		return "published in part"
	}
	return string(d.State)
}

// statusInWords is statusWords with who undid it.
func statusInWords(r *history.Record) string {
	words := statusWords(r)
	if r.UndoneBy != "" {
		words += " by " + r.UndoneBy
	}
	return words
}

// took is how long a record took, "" if it is not known.
func took(r *history.Record) string {
	if r.Duration <= 0 {
		return ""
	}
	return span(r.Duration.Round(time.Millisecond))
}
