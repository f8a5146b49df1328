package recorder

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// TestUndoAndRedoAreTheModel holds undo and redo against a model of a few files, over random
// runs, edits by hand, reverts by hand, undos and redos of any number and of some paths, with
// --skip and --force, and deaths with a loss of power at any step of them.
func TestUndoAndRedoAreTheModel(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 200
	}
	if os.Getenv("DECREE_LONG") != "" {
		n = 5000
	}
	count := map[string]int{}
	for seed := range n {
		m := newUndoModel(t, uint64(seed))
		for range 14 {
			what := m.step()
			count[what]++
			m.log = append(m.log, what)
			m.check()
		}
		if t.Failed() {
			return
		}
	}
	t.Log(count)
	for what, least := range map[string]int{
		"run": n, "edit": n, "revert done": n / 3, "undo done": n, "redo done": n / 3, "undo refused": n / 3, "redo refused": n / 8,
		"undo nothing": n / 3, "undo died, old": n / 8, "undo died, new": n / 12, "redo died, old": n / 20, "redo died, new": n / 40,
		"; passed by hand": n / 200, "; passed gone": n / 100, "; skipped": n / 80, "; forced": n / 20, "; net nothing": n / 40,
	} {
		seen := 0
		for text, k := range count {
			if strings.Contains(text, what) {
				seen += k
			}
		}
		require.GreaterOrEqual(t, seen, least, what)
	}
}

var undoPaths = []string{"a", "b", "d/x", "d/y"}

type undoModel struct {
	t     *testing.T
	l     *lossy
	rng   *rand.Rand
	seed  uint64
	log   []string
	files map[string]string // "" is none
	recs  []*modelRecord    // those that can be undone, oldest first
	byID  map[string]*modelRecord
	stack []modelStep
}

type modelRecord struct {
	id       string
	old, new map[string]string // of what it changed
	taken    map[string]string // by path: the undo that has it
	undoes   []string          // of an undo
	begun    bool              // of an undo: something of it was redone
	walked   bool
}

type modelStep struct{ id, undo string }

func newUndoModel(t *testing.T, seed uint64) *undoModel {
	m := &undoModel{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 14)), files: map[string]string{}, byID: map[string]*modelRecord{}}
	m.l = &lossy{t: t, m: disktest.NewMem(), clk: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	for _, p := range []string{"/w/tree", "/w/store", "/w/home"} {
		_, err := m.l.m.MkdirAll(p, 0o700)
		require.NoError(t, err)
	}
	m.l.write(map[string]string{"d/keep": "keep\n"})
	top, err := m.l.m.OpenRoot("/")
	require.NoError(t, err)
	flushAll(t, top)
	m.run()
	return m
}

func (m *undoModel) text() string { return []string{"", "1\n", "2\n", "3\n"}[m.rng.IntN(4)] }

func (m *undoModel) record(id string, to map[string]string) *modelRecord {
	r := &modelRecord{id: id, old: map[string]string{}, new: map[string]string{}, taken: map[string]string{}}
	for _, p := range undoPaths {
		if m.files[p] != to[p] {
			r.old[p], r.new[p] = m.files[p], to[p]
		}
	}
	m.files, m.byID[id] = to, r
	return r
}

func (m *undoModel) changed(id string, to map[string]string) {
	if r := m.record(id, to); len(r.old) > 0 {
		m.recs, m.stack = append(m.recs, r), nil
	}
}

func (m *undoModel) run() string {
	to, args := maps.Clone(m.files), []string(nil)
	for range 1 + m.rng.IntN(3) {
		p := undoPaths[m.rng.IntN(4)]
		to[p] = m.text()
		args = append(args, p, to[p])
	}
	m.l.with(func(r *Recorder) error {
		res, err := r.Run(ctx(), RunOptions{Args: append(args, "0"), Dir: "/w/tree"})
		m.changed(res.Record.ID, to)
		return err
	})
	return "run"
}

func (m *undoModel) step() string {
	n, paths := 1+m.rng.IntN(3)*m.rng.IntN(2), []string(nil)
	if m.rng.IntN(4) == 0 {
		paths = [][]string{{"a"}, {"d"}, {"b"}}[m.rng.IntN(3)]
	}
	flag := m.rng.IntN(4)
	o := UndoOptions{N: n, Skip: flag == 0, Force: flag == 1, Yes: true}
	for _, p := range paths {
		o.Paths = append(o.Paths, tree.Path(p))
	}
	what := m.rng.IntN(12)
	if what > 8 && len(m.stack) == 0 {
		what = 2 + m.rng.IntN(7)
	}
	switch what {
	case 0, 1:
		return m.run()
	case 2, 3:
		return m.edit(undoPaths[m.rng.IntN(4)])
	case 4:
		what := m.revert()
		if what == "revert done" && m.rng.IntN(3) == 0 { // so that it is passed over, and what it took back too
			for _, p := range slices.Sorted(maps.Keys(m.recs[len(m.recs)-1].old)) {
				m.edit(p)
			}
			o.Skip, o.Force = true, false
			what += ", edit; " + m.walk("undo", o, m.planUndo, (*Recorder).Undo)
		}
		return what
	case 5, 6, 7, 8:
		return m.walk("undo", o, m.planUndo, (*Recorder).Undo)
	}
	return m.walk("redo", o, m.planRedo, (*Recorder).Redo)
}

func (m *undoModel) edit(p string) string {
	m.files[p] = m.text()
	m.l.write(map[string]string{p: m.files[p]})
	return "edit"
}

// revert is one by hand.
func (m *undoModel) revert() string {
	ids := slices.Sorted(maps.Keys(m.byID))
	r := m.byID[ids[max(m.rng.IntN(len(ids)), m.rng.IntN(len(ids)))]]
	want, to := "nothing", maps.Clone(m.files)
	for p := range r.old {
		switch m.files[p] {
		case r.old[p]:
		case r.new[p]:
			to[p] = r.old[p]
			if want == "nothing" {
				want = "done"
			}
		default:
			want = "refused"
		}
	}
	m.l.with(func(rec *Recorder) error {
		res, err := rec.Revert(ctx(), MoveOptions{Refs: []string{r.id}})
		require.Equal(m.t, want, m.outcome(res, err), "%d: revert of %s", m.seed, r.id)
		if want == "done" {
			m.changed(res.Record.ID, to)
		}
		return nil
	})
	return "revert " + want
}

func (m *undoModel) outcome(res *MoveResult, err error) string {
	switch kind := project.KindOf(err); {
	case err == nil && res.Record == nil, kind == project.NotFound:
		return "nothing"
	case kind == project.Refused:
		return "refused"
	}
	require.NoError(m.t, err, "seed %d after %v", m.seed, m.log)
	return "done"
}

// plannedWalk is what the model expects of an undo or redo.
type plannedWalk struct {
	outcome string
	files   map[string]string
	done    []modelStep
	passed  []*modelRecord
	said    []string
}

// try plans that paths of a record go from one state to another, and says whether that is
// "needless", "taken", or a "conflict".
func (w *plannedWalk) try(paths []string, from, to map[string]string, o UndoOptions) string {
	out, is := "needless", maps.Clone(w.files)
	for _, p := range paths {
		switch {
		case is[p] == to[p]:
			continue
		case is[p] == from[p]:
		case o.Force:
			w.said = append(w.said, "forced")
		default:
			out = "conflict"
			continue
		}
		is[p] = to[p]
		if out == "needless" {
			out = "taken"
		}
	}
	if out == "taken" {
		w.files = is
	}
	return out
}

func (m *undoModel) statuses() map[string]*history.Record {
	out := map[string]*history.Record{}
	m.l.with(func(r *Recorder) error {
		list, err := r.History().List(history.ListOptions{})
		for _, rec := range list.Records {
			out[rec.ID] = rec
		}
		return err
	})
	return out
}

func within(o UndoOptions, paths []string, has func(string) bool) (out []string) {
	for _, p := range paths {
		if tree.Path(p).Within(o.Paths...) && has(p) {
			out = append(out, p)
		}
	}
	return out
}

func (m *undoModel) planUndo(o UndoOptions) plannedWalk {
	w := plannedWalk{files: m.files}
	records, taken, conflict, skipped := m.statuses(), 0, false, false
	for _, r := range slices.Backward(m.recs) {
		own := within(o, undoPaths, func(p string) bool { _, touched := r.old[p]; return touched && r.taken[p] == "" })
		if taken == o.N || len(own) == 0 {
			continue
		}
		if by := m.byID[records[r.id].UndoneBy]; records[r.id].Status == history.StatusUndone && !by.walked &&
			!slices.Contains(w.done, modelStep{id: by.id}) {
			own = slices.DeleteFunc(own, func(p string) bool { return by.taken[p] == "" })
			if len(own) == 0 {
				w.said, skipped = append(w.said, "passed by hand"), true
				continue
			}
		}
		switch w.try(own, r.new, r.old, o) {
		case "needless":
			w.said, w.passed = append(w.said, "passed gone"), append(w.passed, r)
			continue
		case "conflict":
			if o.Skip {
				w.said, skipped = append(w.said, "skipped"), true
				continue
			}
			conflict = true
		}
		taken++
		w.done = append(w.done, modelStep{id: r.id})
	}
	if skipped {
		w.passed = nil
	}
	w.outcome = outcomeOf(taken, o.N, conflict)
	return w
}

func outcomeOf(taken, n int, conflict bool) string {
	switch {
	case taken == 0:
		return "nothing"
	case taken < n || conflict:
		return "refused"
	}
	return "done"
}

func (m *undoModel) planRedo(o UndoOptions) plannedWalk {
	w := plannedWalk{files: m.files}
	taken, conflict := 0, false
	for i := len(m.stack) - 1; i >= 0 && taken < o.N; {
		s := m.stack[i]
		r, u, k := m.byID[s.id], m.byID[s.undo], 1
		owned := func(p string) bool { _, touched := r.old[p]; return touched && r.taken[p] == s.undo }
		own, from, to := within(o, undoPaths, owned), r.old, r.new
		if n := len(u.undoes); !u.begun && n <= o.N-taken && (n == 1 || len(o.Paths) == 0) {
			own, from, to, k = within(o, undoPaths, func(p string) bool { _, touched := u.old[p]; return touched }), u.new, u.old, n
		} else if len(within(UndoOptions{}, undoPaths, owned)) == 0 {
			i--
			continue
		}
		steps := slices.Clone(m.stack[i-k+1 : i+1])
		slices.Reverse(steps)
		i -= k
		group := k > 1 || &to == &u.old || !u.begun && len(u.undoes) == k
		if len(own) == 0 && !(group && len(u.old) == 0) {
			continue
		}
		what := "taken"
		if len(own) > 0 {
			what = w.try(own, from, to, o)
		}
		switch {
		case what == "conflict" && o.Skip:
			w.said = append(w.said, "skipped")
			continue
		case what == "conflict":
			conflict = true
		}
		w.done = append(w.done, steps...)
		if what != "needless" {
			taken += k
		}
	}
	w.outcome = outcomeOf(taken, o.N, conflict)
	return w
}

// walk does an undo or redo, which may die, and takes what came of it into the model.
func (m *undoModel) walk(name string, o UndoOptions, plan func(UndoOptions) plannedWalk, do walkFunc) string {
	want, before := plan(o), m.statuses()
	what := fmt.Sprintf("seed %d: %s %+v after %v", m.seed, name, o, m.log)
	died := ""
	if m.rng.IntN(3) > 0 {
		m.l.with(func(r *Recorder) error {
			res, err := do(r, ctx(), o)
			require.Equal(m.t, want.outcome, m.outcome(res, err), "%s: %v", what, err)
			return nil
		})
	} else {
		fired, _ := m.l.dying(m.rng.IntN(160), m.rng, func(r *Recorder) error { _, err := do(r, ctx(), o); return err })
		m.l.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
		if fired {
			died = " died"
		}
	}
	id := ""
	for _, rec := range m.statuses() {
		if before[rec.ID] == nil {
			require.True(m.t, rec.Walked.Any(), what)
			id = rec.ID
		}
	}
	if died == "" {
		require.Equal(m.t, want.outcome == "done", id != "", what)
		died = " " + want.outcome
	} else if died += ", old"; id != "" {
		died = " died, new"
	}
	if id == "" {
		return name + died
	}
	if maps.Equal(want.files, m.files) {
		want.said = append(want.said, "net nothing")
	}
	m.take(id, name, o, want)
	return strings.Join(append([]string{name + died}, want.said...), "; ")
}

type walkFunc = func(*Recorder, context.Context, UndoOptions) (*MoveResult, error)

func (m *undoModel) take(id, name string, o UndoOptions, w plannedWalk) {
	u := m.record(id, w.files)
	u.walked = true
	if name == "redo" {
		for _, s := range w.done {
			m.byID[s.undo].begun = true
			for _, p := range within(o, undoPaths, func(p string) bool { return m.byID[s.id].taken[p] == s.undo }) {
				m.byID[s.id].taken[p] = ""
			}
		}
		return
	}
	own := func(r *modelRecord) {
		for _, p := range within(o, undoPaths, func(p string) bool { return r.taken[p] == "" }) {
			r.taken[p] = id
		}
	}
	for _, s := range w.done {
		own(m.byID[s.id])
		u.undoes = append(u.undoes, s.id)
		m.stack = append(m.stack, modelStep{s.id, id})
	}
	for _, r := range w.passed {
		own(r)
	}
}

// check compares the files and the chain.
func (m *undoModel) check() {
	what := fmt.Sprintf("seed %d after %v", m.seed, m.log)
	have := m.l.state()
	for _, p := range undoPaths {
		want := m.files[p]
		if want != "" {
			want = "644 " + want
		}
		require.Equal(m.t, want, have[p], "%s: %s", what, p)
	}
	var undo, redo, wantUndo, wantRedo []string
	for _, r := range slices.Backward(m.recs) {
		if len(within(UndoOptions{}, undoPaths, func(p string) bool { _, touched := r.old[p]; return touched && r.taken[p] == "" })) > 0 {
			wantUndo = append(wantUndo, r.id)
		}
	}
	for _, s := range slices.Backward(m.stack) {
		r := m.byID[s.id]
		if len(within(UndoOptions{}, undoPaths, func(p string) bool { _, touched := r.old[p]; return touched && r.taken[p] == s.undo })) > 0 {
			wantRedo = append(wantRedo, r.id)
		}
	}
	m.l.with(func(r *Recorder) error {
		c, err := r.ListChain(nil)
		for _, l := range c.Undo {
			undo = append(undo, l.ID)
		}
		for _, l := range c.Redo {
			redo = append(redo, l.ID)
		}
		return err
	})
	require.Equal(m.t, wantUndo, undo, "%s: what stands", what)
	require.Equal(m.t, wantRedo, redo, "%s: what can be redone", what)
}
