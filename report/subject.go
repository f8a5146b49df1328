package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
)

// Subject is what a report is about: the records, oldest first, or the way from one state to
// another where To is not zero.
type Subject struct {
	Name     string // as it was asked for
	Kind     timeline.Kind
	Records  []*history.Record
	From, To recorder.Point
}

// ranged says whether it is about the difference between two states.
func (s *Subject) ranged() bool { return s.To.Record != nil }

// Find finds what a name means: A..B, a record, a race by its name, or a session of a coding agent
// by the beginning of its id. resolve finds a record.
func Find(ctx context.Context, rec *recorder.Reader, name string, resolve func(ref string) (recorder.Point, error)) (*Subject, error) {
	if from, to, ok := strings.Cut(name, ".."); ok {
		return between(name, from, to, resolve)
	}
	point, err := resolve(name)
	if err == nil {
		return &Subject{Name: name, Kind: timeline.Record, Records: []*history.Record{point.Record}}, nil
	}
	if !errors.Is(err, history.ErrNoRecord) && project.KindOf(err) != project.NotFound && project.KindOf(err) != project.Usage {
		return nil, err
	}
	s, foundErr := findRace(ctx, rec, name)
	if s == nil && foundErr == nil {
		s, foundErr = findSession(rec, name)
	}
	if s == nil && foundErr == nil {
		foundErr = err
	}
	return s, foundErr
}

func between(name, from, to string, resolve func(ref string) (recorder.Point, error)) (s *Subject, err error) {
	s = &Subject{Name: name}
	if s.From, err = resolve(from); err != nil {
		return nil, err
	}
	if s.To, err = resolve(to); err != nil {
		return nil, err
	}
	// From before the one to after the other; a time says itself which side it means.
	s.To.After = s.To.After || !strings.HasPrefix(to, "@")
	s.Records = []*history.Record{s.From.Record, s.To.Record}
	return s, nil
}

// findRace finds the candidates of the newest race of that name; nil: there is none.
func findRace(ctx context.Context, rec *recorder.Reader, name string) (*Subject, error) {
	rows, err := timeline.List(ctx, rec, timeline.Filter{}, "", 0)
	if err != nil {
		return nil, err
	}
	for _, row := range rows.Rows {
		if row.Kind != timeline.Race || row.Name != name {
			continue
		}
		s := &Subject{Name: name, Kind: timeline.Race}
		for _, inner := range row.Inner {
			s.Records = append(s.Records, inner.Record)
		}
		slices.SortFunc(s.Records, byName)
		return s, nil
	}
	return nil, nil
}

// byName puts candidates in the order of their numbers, those without a draft first.
func byName(a, b *history.Record) int {
	name := func(r *history.Record) string {
		if r.Draft == nil {
			return ""
		}
		return r.Draft.Name
	}
	return cmp.Or(cmp.Compare(len(name(a)), len(name(b))), cmp.Compare(name(a), name(b)))
}

// findSession finds the records of a session; nil: there is none.
func findSession(rec *recorder.Reader, name string) (*Subject, error) {
	if name == "" {
		return nil, nil
	}
	list, err := rec.History().List(history.ListOptions{Keep: func(r *history.Record) bool {
		return r.Actor.Session != "" && strings.HasPrefix(r.Actor.Session, name)
	}})
	if err != nil || len(list.Records) == 0 {
		return nil, err
	}
	if exact := slices.DeleteFunc(slices.Clone(list.Records), func(r *history.Record) bool { return r.Actor.Session != name }); len(exact) > 0 {
		list.Records = exact
	}
	id := list.Records[0].Actor.Session
	for _, r := range list.Records {
		if r.Actor.Session != id {
			return nil, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("%s: several sessions begin so", tree.ShellWord(name)),
				Advice: "write more of it: 'decree turns' lists them"}
		}
	}
	slices.Reverse(list.Records)
	return &Subject{Name: name, Kind: timeline.Session, Records: list.Records}, nil
}
