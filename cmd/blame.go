package cmd

import (
	"context"
	"fmt"
	"io"

	"decree/recorder"
	"decree/view"
)

func (s *session) blameVerb() verb {
	return verb{
		name: "blame", category: lookCategory, args: "PATH", words: pathWords, most: 1,
		missing: usagef("a PATH is missing").Hintf("for example 'decree blame src/main.go'"),
		usage:   "show which record introduced each line of a file",
		about: `Prints the file as it is in the tree, each line with the record that introduced it, the time, and its command or description. "outside" stands for what no record did: it was there before the first record, or came between two; the record named after it is the one that found it.

A line that a revert, an apply or a restore brought back counts as the work of the record that first introduced it. Renames are followed where the content stayed the same.

--json prints one object per line: line, text, record (null for outside), found_by, reason, time and what.`,
		examples: []example{
			{"decree blame src/main.go", "who wrote this?"},
			{"decree blame notes.txt | grep outside", "the lines that were written by hand"},
		},
		exits:  []exit{{"1", "a directory, a link, or not a text file"}, {"3", "no such file in the tree"}},
		flags:  s.reading(),
		action: s.blame,
	}
}

func (s *session) blame(ctx context.Context) error {
	words := s.words()
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	paths, err := s.inTree(rec.Project().Root, words)
	if err != nil {
		return err
	}
	file, err := rec.Blame(ctx, paths[0])
	if err != nil {
		return err
	}
	if s.global.json {
		return s.print(func(w io.Writer) error {
			return view.EncodeEach(w, func(yield func(any) error) error {
				return file.Each(func(i int, l recorder.Blamed) error { return yield(view.Blamed(i, l)) })
			})
		})
	}
	return s.page(func(w io.Writer) error { return s.writeBlame(w, file) })
}

// blameWidth is how much of a description or command stands before a line.
const blameWidth = 28

// blameWidths are those of the time and of what brought a line. On a narrow terminal they
// are left out, 0, rather than the line itself; taken is what id and number take.
func (s *session) blameWidths(taken int) (when, what int) {
	const text = 32 // columns of a line that are worth more
	when = len("2006-01-02 15:04")
	if !isTerminal(s.env.Stdout) {
		return when, blameWidth
	}
	room := s.columns(s.env.Stdout) - taken - text
	if room < when {
		return 0, 0
	}
	if what = min(blameWidth, room-when); what < 8 {
		what = 0
	}
	return when, what
}

func (s *session) writeBlame(w io.Writer, file *recorder.BlamedFile) error {
	number := len(fmt.Sprint(file.Lines))
	idWidth := len("outside")
	for _, c := range file.Culprits {
		if c.Record != nil && !c.Outside {
			idWidth = max(idWidth, len(c.Record.ID))
		}
	}
	whenWidth, whatWidth := s.blameWidths(idWidth + number + 8)
	p := s.paint(s.env.Stdout)
	return file.Each(func(i int, l recorder.Blamed) error {
		id, when := "outside", ""
		if l.Record != nil {
			when = l.Record.Started.In(s.env.Location).Format("2006-01-02 15:04")
			if !l.Outside {
				id = l.Record.ID
			}
		}
		text := string(l.Text)
		if isTerminal(s.env.Stdout) {
			text = visible(text)
		}
		head := padded(id, idWidth)
		if whenWidth > 0 {
			head += "  " + padded(when, whenWidth)
		}
		if whatWidth > 0 {
			head += "  " + padded(clip(view.WhatBrought(l.Culprit), whatWidth), whatWidth)
		}
		_, err := fmt.Fprintf(w, "%s  %*d  %s\n", p.in(cyan, head), number, i+1, text)
		return err
	})
}
