package history

import (
	"errors"
	"time"

	"decree/jsonread"
	"decree/tree"
)

// The values that records are made of, as jsonread has them; the zero of its kind and a
// fault noted in v for anything else.

func pathOf(v *jsonread.Value) string {
	s, err := tree.Unquote(v.Text())
	if err != nil {
		v.Fail(err)
	}
	return s
}

func pathsOf(v *jsonread.Value) []tree.Path {
	var out []tree.Path
	v.Array(func(e *jsonread.Value) { out = append(out, tree.Path(pathOf(e))) })
	return out
}

var errTime = errors.New("expected a time of RFC 3339")

func timeOf(v *jsonread.Value) time.Time {
	b := v.Bytes()
	if len(b) == 0 {
		return time.Time{}
	}
	var t time.Time
	if err := t.UnmarshalText(b); err != nil || t.Year() < firstYear || t.Year() > lastYear {
		v.Fail(errTime)
		return time.Time{}
	}
	return t.UTC()
}

func hashOf(v *jsonread.Value) tree.Hash {
	b := v.Bytes()
	if len(b) == 0 {
		return tree.Hash{}
	}
	var h tree.Hash
	if err := h.UnmarshalText(b); err != nil {
		v.Fail(err)
	}
	return h
}

func changesOf(v *jsonread.Value) (c Changes) {
	v.Members(func(name string, m *jsonread.Value) {
		switch name {
		case "created":
			c.Created = int(m.Int())
		case "modified":
			c.Modified = int(m.Int())
		case "deleted":
			c.Deleted = int(m.Int())
		case "added_lines":
			c.AddedLines = int(m.Int())
		case "removed_lines":
			c.RemovedLines = int(m.Int())
		}
	})
	return c
}

func actorOf(v *jsonread.Value) (a Actor) {
	v.Members(func(name string, m *jsonread.Value) {
		switch name {
		case "user":
			a.User = m.Text()
		case "host":
			a.Host = m.Text()
		case "agent":
			a.Agent = m.Text()
		case "session":
			a.Session = m.Text()
		case "turn":
			a.Turn = int(m.Int())
		case "model":
			a.Model = m.Text()
		}
	})
	return a
}
