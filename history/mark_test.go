package history

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMarksAndPlacesNarrowAList: what a mark passes over is what Keep leaves out, wherever a list begins, and it is not looked at.
func TestMarksAndPlacesNarrowAList(t *testing.T) {
	w := newWorld(t)
	hostile := `"},"session":"b`
	var all []*Record
	for i := range 200 {
		r := w.draft()
		r.Actor.Session = []string{"a", "b", "", hostile, "aa"}[i%5]
		r.Reason = []Reason{Manual, Run, Revert}[i%3]
		if r.Reason == Run {
			r.Command, r.Cwd, r.Attempts, r.Isolated = []string{"x"}, ".", 1, "overlay"
			r.Draft = &Draft{Name: fmt.Sprintf("%s.%d", []string{"race", "race2", `r"ce`}[i%7%3], i), State: DraftWaiting}
		}
		if r.Reason == Revert {
			r.Parent = all[i/2].ID
		}
		require.NoError(t, w.write(&line{key: recordKey(r), record: r}))
		all = append(all, r)
	}
	slices.Reverse(all)
	inRace := func(name string) func(*Record) bool {
		return func(r *Record) bool { return r.Draft != nil && raceName(r.Draft.Name) == name }
	}
	for _, c := range []struct {
		of   []Mark
		keep func(*Record) bool
	}{
		{[]Mark{Naming("a")}, func(r *Record) bool { return r.Actor.Session == "a" }},
		{[]Mark{Naming("b")}, func(r *Record) bool { return r.Actor.Session == "b" }},
		{[]Mark{Naming(hostile)}, func(r *Record) bool { return r.Actor.Session == hostile }},
		{[]Mark{InRace("race")}, inRace("race")},
		{[]Mark{InRace(`r"ce`)}, inRace(`r"ce`)},
		{[]Mark{Naming(string(Revert)), Naming(string(Run))}, func(r *Record) bool { return r.Reason == Revert || r.Reason == Run }},
		{[]Mark{Naming(all[50].ID)}, func(r *Record) bool { return r.Parent == all[50].ID || r.ID == all[50].ID }},
	} {
		for _, before := range []int{-1, 0, 1, 77, 199} {
			for _, limit := range []int{0, 1, 64} {
				o := ListOptions{Of: c.of, Keep: c.keep, Limit: limit}
				rest := all
				if before >= 0 {
					o.Before, rest = all[before], all[before+1:]
				}
				var want []string
				for _, r := range rest {
					if c.keep(r) && (limit == 0 || len(want) < limit) {
						want = append(want, r.ID)
					}
				}
				l, err := w.List(o)
				require.NoError(t, err)
				require.Equal(t, append([]string{}, want...), ids(l.Records), "%s before %d, limit %d", c.of, before, limit)
			}
		}
	}
	for _, r := range all {
		if r.Actor.Session != "a" {
			require.NoDirExists(t, w.path("runs", r.ID))
		}
	}
	l, err := w.List(ListOptions{Of: []Mark{Naming("a")}, Known: true})
	require.NoError(t, err)
	require.Len(t, l.Missing, 40, "nothing is told of others")
}

func raceName(draft string) string {
	i := len(draft) - 1
	for i > 0 && draft[i] != '.' {
		i--
	}
	return draft[:i]
}

// TestThePastComesInParts: however long a history is, each record comes once, newest first, and what is wrong with one is told once.
func TestThePastComesInParts(t *testing.T) {
	w := newWorld(t)
	all := w.fill(3 * pastPart)
	w.put(w.path("runs", all[3], "run.json"), "{")
	w.put(w.path("runs", all[len(all)-2], "run.json"), "{")
	require.NoError(t, os.MkdirAll(w.stored("open"), 0o700))
	w.put(w.stored("open/2026112107015900-7.json"), "{")
	var seen, told []string
	keep := func(r *Record) bool {
		seen = append(seen, r.ID)
		return true
	}
	told, err := w.Past(PastOptions{Keep: keep}, func(Moment) bool { return true })
	require.NoError(t, err)
	want := slices.Concat(all[:3], all[4:len(all)-2], all[len(all)-1:])
	slices.Reverse(want)
	require.Equal(t, want, seen)
	require.Contains(t, told[0], all[3])
	require.Contains(t, told[0], all[len(all)-2])
	require.Len(t, told, 1+len(want), "one about the damaged ones, and one for each that has lost its diff")
	for i, id := range want {
		assert.Contains(t, told[1+i], id)
	}
}
