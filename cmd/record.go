package cmd

import (
	"fmt"
	"io"

	"decree/history"
	"decree/timeline"
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
	case paths == 0 && r.DiffSHA256 == tree.EmptySum:
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

// toneColours are how a status looks.
var toneColours = map[timeline.Tone]string{timeline.Good: green, timeline.Bad: red, timeline.Waiting: yellow, timeline.Neutral: plain}

// statusInWords is statusWords with who undid it.
func statusInWords(r *history.Record) string {
	words := statusWords(r)
	if r.UndoneBy != "" {
		words += " by " + r.UndoneBy
	}
	return words
}
