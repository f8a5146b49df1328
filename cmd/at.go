package cmd

import (
	"context"
	"io"

	"decree/history"
	"decree/recorder"
)

func (s *session) atVerb() verb {
	return verb{
		name: "at", category: lookCategory, args: "TIME [PATH]", words: pathWords, most: 2,
		missing: usagef("a TIME is missing").Hintf("for example 'decree at \"2h ago\"', or 'decree at 14:30 notes.txt'"),
		usage:   "the newest record at a time, or a file as it was then",
		about: `Shows the newest state that was recorded at or before TIME; with PATH it prints that file as it was then. It says on stderr which time it understood and which record it is. Looking changes nothing.

TIME is 2026-11-20, '2026-11-20 14:30', 14:30 (today), RFC 3339, '90s ago' (s, m, h, d, w), '2 hours ago' and its like, now, yesterday, or any time as decree prints it. "@TIME" means the same wherever a REF may stand.`,
		examples: []example{
			{"decree at '2h ago'", "which record is that?"},
			{"decree at yesterday notes.txt", "the file as it was at midnight"},
		},
		exits:  []exit{{"2", "TIME is not understood"}, {"3", "nothing had been recorded by then, or the file did not exist"}},
		flags:  s.reading(),
		action: s.at,
	}
}

func (s *session) at(ctx context.Context) error {
	words := s.words()
	t, err := history.ParseTime(words[0], s.env.Now(), s.env.Location)
	if err != nil {
		return err
	}
	rec, err := s.forReading()
	if err != nil {
		return err
	}
	found, err := rec.History().Resolve("@"+words[0], s.env.Location)
	if err != nil {
		return err
	}
	record, err := rec.History().Get(found.ID)
	if err != nil {
		return err
	}
	point := recorder.Point{Record: record, After: found.Side == history.After}
	if len(words) == 2 {
		// A file as it was is also what a revert made of it; a whole state to go
		// back to is only what was observed whole.
		if point, err = rec.At(t); err != nil {
			return err
		}
	}
	side := "before"
	if point.After {
		side = "after"
	}
	s.say("decree: at %s: the state %s %s", s.clock(t), side, point.Record.ID)
	switch {
	case len(words) == 2:
		return s.showFile(ctx, rec, point, words[1])
	case s.global.json:
		return s.printRecord(point.Record)
	}
	return s.print(func(w io.Writer) error { return s.writeRecord(w, point.Record) })
}
