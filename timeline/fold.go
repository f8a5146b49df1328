package timeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"decree/history"
)

// rows makes rows of items, several of one where they belong together; ends are, for each
// row, the id of the oldest record in it.
func (m *maker) rows(items []item) (rows []Row, ends []string) {
	for len(items) > 0 {
		n, race := candidates(items)
		if n == 1 {
			n = turns(items)
		}
		inner := make([]Row, n)
		for i, it := range items[:n] {
			inner[i] = m.row(it)
		}
		ends = append(ends, inner[n-1].ID)
		switch {
		case n == 1:
			rows = append(rows, inner[0])
		case race != "":
			rows = append(rows, m.race(race, inner))
		default:
			rows = append(rows, m.session(inner))
		}
		items = items[n:]
	}
	return rows, ends
}

func (m *maker) row(it item) Row {
	switch {
	case it.damage != nil:
		return m.damaged(*it.damage)
	case it.outside:
		found, _ := it.record.Outside()
		return m.outside(it.record, found)
	}
	return m.record(it.record)
}

// candidates is how many of the first items are those of one race, and its name; 1 where
// they are of none. A race opens the records of all candidates one after the other, with one command;
// one that changed nothing has lost its name with its draft.
func candidates(items []item) (n int, race string) {
	first := items[0].record
	for _, it := range items {
		r := it.record
		if it.damage != nil || it.outside || r.Isolated == "" || r.Reason != history.Run || !slices.Equal(r.Command, first.Command) {
			break
		}
		if name := raceOf(r); name != "" {
			if race != "" && name != race {
				break
			}
			race = name
		} else if r.Draft != nil || n > 0 && items[n-1].record.Started.Sub(r.Started) > oneAfterTheOther {
			break
		}
		n++
	}
	if n < 2 || race == "" {
		return 1, ""
	}
	return n, race
}

// oneAfterTheOther is how far apart the starts of two candidates may be for one without a name to
// be taken for a part of the race.
const oneAfterTheOther = time.Minute

// raceOf is the name of the race that a draft is a candidate of: "race" of "race.2"; "" for none.
func raceOf(r *history.Record) string {
	if r.Draft == nil {
		return ""
	}
	i := strings.LastIndexByte(r.Draft.Name, '.')
	if i <= 0 {
		return ""
	}
	if n, err := strconv.Atoi(r.Draft.Name[i+1:]); err != nil || n < 1 {
		return ""
	}
	return r.Draft.Name[:i]
}

// turns is how many of the first items are those of one session of a coding agent; 1 where
// it is one record. What the user changed between turns lies inside the session, what its first
// record found lies before it.
func turns(items []item) int {
	first := items[0]
	if first.damage != nil || first.outside || first.record.Actor.Session == "" {
		return 1
	}
	actor, n, records, turns := first.record.Actor, 0, 0, 0
	for i, it := range items {
		if it.damage != nil || it.record.Actor.Session != actor.Session || it.record.Actor.Agent != actor.Agent {
			break
		}
		if it.outside {
			continue
		}
		n, records = i+1, records+1
		if it.record.Reason == history.Turn {
			turns++
		}
	}
	if records < 2 || turns == 0 {
		return 1
	}
	return n
}
