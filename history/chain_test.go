package history

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// chainOf makes records of words: "run A", "undo U A B", "redo R A<U", "in R", each ended.
type chainRig struct {
	records []*Record
	touched map[string][]tree.Path // the paths of each record
}

func (c *chainRig) add(reason Reason, f func(*Record)) *Record {
	at := time.Date(2026, 11, 21, 7, 0, len(c.records), 0, time.UTC)
	chain := at.Format(chainForm) + "00"
	r := &Record{
		ID: chain + "-0", Chain: chain, Reason: reason, Status: StatusSucceeded, Started: at, Ended: at,
		DiffSHA256: tree.Sum([]byte(chain)), Changes: Changes{Modified: 1},
	}
	if f != nil {
		f(r)
	}
	c.records = append(c.records, r)
	return r
}

func (c *chainRig) change() *Record { return c.add(Run, nil) }

func (c *chainRig) undo(ids ...string) *Record {
	return c.add(Revert, func(r *Record) { r.Walked.Undoes = ids })
}

func (c *chainRig) ids() (undo, redo []string) {
	chain := Fold(c.records)
	for _, l := range chain.Undo {
		undo = append(undo, l.ID)
	}
	for _, l := range chain.Redo {
		redo = append(redo, l.ID)
	}
	return undo, redo
}

func TestChainLeavesOutWhatIsNoChangeOfTheTree(t *testing.T) {
	var c chainRig
	a := c.change()
	c.add(Manual, func(r *Record) { r.DiffSHA256, r.Changes = tree.Hash{}, Changes{} })
	c.add(Run, func(r *Record) { r.DiffSHA256, r.Changes = tree.EmptySum, Changes{} })
	c.add(Run, func(r *Record) { r.Status = StatusReverted })
	c.add(Run, func(r *Record) { r.Isolated = "overlay" })
	c.add(Run, func(r *Record) { r.Status = StatusOpen })
	failed := c.add(Run, func(r *Record) { r.Status = StatusFailed })
	unknown := c.add(Run, func(r *Record) { r.DiffSHA256, r.Changes = tree.Hash{}, Changes{} })
	published := c.add(Publish, nil)
	undo, redo := c.ids()
	require.Equal(t, []string{published.ID, unknown.ID, failed.ID, a.ID}, undo)
	require.Empty(t, redo)
}

func TestChainHasARunForWhatWasDoneInsideIt(t *testing.T) {
	var c chainRig
	a := c.change()
	run := "2026112107000400-0"
	inside := func(r *Record) { r.Inside = run }
	b := c.add(Run, inside)
	c.add(Revert, func(r *Record) { inside(r); r.Walked.Undoes = []string{b.ID, a.ID} })
	undo, redo := c.ids()
	require.Empty(t, undo, "while the run works, what was done inside it counts for itself")
	require.Equal(t, []string{a.ID, b.ID}, redo)

	c.change() // stands between, as another process's does
	require.Equal(t, run, c.change().ID)
	undo, redo = c.ids()
	require.Equal(t, []string{run, "2026112107000300-0", a.ID}, undo, "it has ended: its undo was a part of it, and undone with it")
	require.Empty(t, redo)

	c.records[len(c.records)-1].Status = StatusReverted
	c.records = slices.Delete(c.records, 3, 4)
	undo, redo = c.ids()
	require.Equal(t, []string{a.ID}, undo, "it was put back, and what was inside it with it")
	require.Empty(t, redo)
}

func TestChainPassesOverWhatWasRevertedByHand(t *testing.T) {
	var c chainRig
	a := c.change()
	r := c.add(Revert, func(r *Record) { r.Parent = a.ID })
	a.Status, a.UndoneBy = StatusUndone, r.ID
	by := func() string {
		chain := Fold(c.records)
		i := slices.IndexFunc(chain.Undo, func(l Link) bool { return l.ID == a.ID })
		require.GreaterOrEqual(t, i, 0)
		return chain.Undo[i].By
	}
	require.Equal(t, r.ID, by())
	c.undo(r.ID) // gives a back
	require.Empty(t, by())
	c.records = c.records[:1]
	require.Equal(t, r.ID, by(), "the revert was removed from the history: what it did stands")
}

func TestWalkedIsReadAsItWasWritten(t *testing.T) {
	var c chainRig
	r := c.add(Revert, func(r *Record) {
		r.Walked = Walked{
			Undoes: []string{"2026112107000000-0", "2026112107000100-0"}, Passed: []string{"2026112107000200-0"},
			Redoes: []Redone{{"2026112107000300-0", "2026112107000400-0"}}, Paths: []tree.Path{"a\nb", "c\xff", ""},
		}
	})
	back, err := ParseRecord(r.JSON(nil))
	require.NoError(t, err)
	require.Equal(t, r.Walked, back.Walked)
	require.Empty(t, back.Extra)
	plain, err := ParseRecord(c.change().JSON(nil))
	require.NoError(t, err)
	require.False(t, plain.Walked.Any())
	r.Walked.Redoes[0].Undo = "../x"
	_, err = ParseRecord(r.JSON(nil))
	require.ErrorContains(t, err, "is not a record id")
}

// TestFoldIsTheStackOfAllThatWasDone holds the fold against a model that keeps, for each
// path of each record, which undo has it, and a stack of these undos: over random changes,
// undos and redos of several records and of some paths.
func TestFoldIsTheStackOfAllThatWasDone(t *testing.T) {
	n := 300
	if !testing.Short() {
		n = 5000
	}
	count := map[string]int{}
	for seed := range n {
		m := &chainModel{rng: rand.New(rand.NewSource(int64(seed))), owner: map[string]map[tree.Path]string{}}
		m.touched = map[string][]tree.Path{}
		for range 25 {
			count[m.step()]++
			m.check(t, seed)
		}
	}
	for _, what := range []string{"change", "undo", "redo", "undo path", "redo path", "redo in part", "passed"} {
		require.Greater(t, count[what], n/4, what)
	}
}

var chainPaths = []tree.Path{"a", "b", "d/x", "d/y"}

type chainModel struct {
	chainRig
	rng   *rand.Rand
	owner map[string]map[tree.Path]string // record, path: the undo that has it, "" none
	order []string                        // the records
	stack []chainStep
}

// chainStep is what one undo took of one record.
type chainStep struct {
	id, undo string
	paths    []tree.Path
}

func (m *chainModel) step() string {
	var paths []tree.Path
	if m.rng.Intn(3) == 0 {
		paths = [][]tree.Path{{"a"}, {"d"}, {"b", "d/y"}}[m.rng.Intn(3)]
	}
	what := "change"
	switch m.rng.Intn(5) {
	case 0, 1:
		what = m.undoSome(paths)
	case 2, 3:
		what = m.redoSome(paths)
	}
	if what == "change" {
		r := m.change()
		m.owner[r.ID], m.stack = map[tree.Path]string{}, nil
		m.order = append(m.order, r.ID)
		for _, p := range chainPaths {
			if m.rng.Intn(2) == 0 {
				m.touched[r.ID] = append(m.touched[r.ID], p)
			}
		}
		return what
	}
	if paths != nil && what != "passed" && what != "redo in part" {
		what += " path"
	}
	return what
}

// has are the paths of the record that belong to undo, of those that paths cover.
func (m *chainModel) has(id, undo string, paths []tree.Path) (out []tree.Path) {
	for _, p := range m.touched[id] {
		if m.owner[id][p] == undo && p.Within(paths...) {
			out = append(out, p)
		}
	}
	return out
}

func (m *chainModel) undoSome(paths []tree.Path) string {
	what, n := "undo", 1+m.rng.Intn(3)
	w := Walked{Paths: paths}
	id := m.nextID()
	for _, r := range slices.Backward(m.order) {
		took := m.has(r, "", paths)
		if len(w.Undoes) == n || len(took) == 0 {
			continue
		}
		for _, p := range took {
			m.owner[r][p] = id
		}
		if m.rng.Intn(4) == 0 {
			what, w.Passed = "passed", append(w.Passed, r)
			continue
		}
		w.Undoes = append(w.Undoes, r)
		m.stack = append(m.stack, chainStep{r, id, took})
	}
	if !w.Any() { // then there is no record, and it passed over nothing
		for _, r := range w.Passed {
			for p, by := range m.owner[r] {
				if by == id {
					m.owner[r][p] = ""
				}
			}
		}
		return "change"
	}
	m.add(Revert, func(r *Record) { r.Walked = w })
	return what
}

func (m *chainModel) redoSome(paths []tree.Path) string {
	what, n := "redo", 1+m.rng.Intn(3)
	w := Walked{Paths: paths}
	for i := len(m.stack) - 1; i >= 0 && len(w.Redoes) < n; i-- {
		s := m.stack[i]
		brought := m.has(s.id, s.undo, paths)
		if len(brought) == 0 {
			continue
		}
		if len(brought) < len(s.paths) {
			what = "redo in part"
		}
		for _, p := range brought {
			m.owner[s.id][p] = ""
		}
		w.Redoes = append(w.Redoes, Redone{s.id, s.undo})
	}
	if !w.Any() {
		return "change"
	}
	m.add(Apply, func(r *Record) { r.Walked = w })
	return what
}

func (m *chainModel) nextID() string {
	id := m.change().ID
	m.records = m.records[:len(m.records)-1]
	return id
}

// check compares the links, each as "record undo paths", without those that have no path left.
func (m *chainModel) check(t *testing.T, seed int) {
	t.Helper()
	var wantUndo, wantRedo, undo, redo []string
	for _, id := range slices.Backward(m.order) {
		if left := m.has(id, "", nil); len(left) > 0 {
			wantUndo = append(wantUndo, fmt.Sprint(id, left))
		}
	}
	for _, s := range slices.Backward(m.stack) {
		if left := m.has(s.id, s.undo, nil); len(left) > 0 {
			wantRedo = append(wantRedo, fmt.Sprint(s.id, s.undo, left))
		}
	}
	c := Fold(m.records)
	paths := func(l Link) (left []tree.Path) {
		for _, p := range m.touched[l.ID] {
			if l.Has(p) {
				left = append(left, p)
			}
		}
		if !l.InPart() {
			require.Len(t, left, len(m.touched[l.ID]), "seed %d: a part, and not said", seed)
		}
		return left
	}
	for _, l := range c.Undo {
		if left := paths(l); len(left) > 0 {
			undo = append(undo, fmt.Sprint(l.ID, left))
		}
	}
	for _, l := range c.Redo {
		if left := paths(l); len(left) > 0 {
			redo = append(redo, fmt.Sprint(l.ID, l.Undo.ID, left))
			if l.Whole {
				require.False(t, slices.ContainsFunc(m.records, func(r *Record) bool {
					return slices.ContainsFunc(r.Walked.Redoes, func(b Redone) bool { return b.Undo == l.Undo.ID })
				}), "seed %d", seed)
			}
		}
	}
	require.Equal(t, wantUndo, undo, "seed %d, what stands", seed)
	require.Equal(t, wantRedo, redo, "seed %d, what can be redone", seed)
}
