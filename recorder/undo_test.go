package recorder

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/project"
	"decree/tree"
)

func (b *bench) undo(o UndoOptions) *MoveResult {
	b.t.Helper()
	return with(b, func(r *Recorder) (*MoveResult, error) { return r.Undo(context.Background(), o) })
}

func (b *bench) redo(o UndoOptions) *MoveResult {
	b.t.Helper()
	return with(b, func(r *Recorder) (*MoveResult, error) { return r.Redo(context.Background(), o) })
}

// chain are the ids that undo and redo have before them, the next ones first.
func (b *bench) chain() (undo, redo []string) {
	b.t.Helper()
	c := with(b, func(r *Recorder) (*history.Chain, error) { return r.ListChain(nil) })
	for _, l := range c.Undo {
		undo = append(undo, l.ID)
	}
	for _, l := range c.Redo {
		redo = append(redo, l.ID)
	}
	return undo, redo
}

// TestUndoAndRedoWalkThroughAllStates holds undo and redo, of any number at once and in any
// order, against the list of the states that the tree had: of trees with all that a tree
// may hold. A new run cuts off what could be redone.
func TestUndoAndRedoWalkThroughAllStates(t *testing.T) {
	walked, cut := 0, 0
	n := seeds(t)
	for seed := range int64(n) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			b := newBench(t)
			rnd := rand.New(rand.NewSource(seed))
			populate(b.root, rnd)
			states, ids, at := []map[string]string{snapshot(t, b.root)}, []string(nil), 0
			for step := range 14 {
				what := rnd.Intn(7)
				switch {
				case step < 3 || what == 0:
					cut += len(ids) - at
					states, ids = states[:at+1], ids[:at]
					ids = append(ids, b.run(seed*100+int64(step)+9000, 0, nil).Record.ID)
					states, at = append(states, snapshot(t, b.root)), at+1
				case what < 4 && at > 0:
					k := 1 + rnd.Intn(at)
					at -= k
					res := b.undo(UndoOptions{N: k})
					require.Len(t, res.Record.Walked.Undoes, k)
					walked += k
				case at < len(ids):
					k := 1 + rnd.Intn(len(ids)-at)
					at += k
					require.Len(t, b.redo(UndoOptions{N: k}).Record.Walked.Redoes, k)
					walked += k
				}
				require.Equal(t, states[at], snapshot(t, b.root), "after step %d", step)
				undo, redo := b.chain()
				slices.Reverse(undo)
				require.Equal(t, ids[:at], append([]string{}, undo...), "what can be undone after step %d", step)
				require.Equal(t, ids[at:], append([]string{}, redo...), "what can be redone after step %d", step)
			}
		})
	}
	if !t.Failed() {
		require.Greater(t, walked, 6*n)
		require.Greater(t, cut, n/3)
	}
}

// TestUndoOfWhatCancelsOut moves no file and is one step of the chain all the same.
func TestUndoOfWhatCancelsOut(t *testing.T) {
	b := newBench(t)
	require.NoError(t, os.WriteFile(b.root+"/f", []byte("one\n"), 0o644))
	say := func(text string) {
		b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", "echo " + text + " >f"} })
	}
	say("two")
	say("one")
	res := b.undo(UndoOptions{N: 2})
	require.True(t, res.Plan.Empty())
	require.Len(t, res.Record.Walked.Undoes, 2)
	undo, redo := b.chain()
	require.Empty(t, undo)
	require.Len(t, redo, 2)
	b.redo(UndoOptions{})
	require.Equal(t, "two\n", b.read("f"))
	b.redo(UndoOptions{})
	require.Equal(t, "one\n", b.read("f"))
	b.undo(UndoOptions{N: 2})
	b.redo(UndoOptions{N: 2})
	require.Equal(t, "one\n", b.read("f"))
	b.undo(UndoOptions{})
	require.Equal(t, "two\n", b.read("f"))
}

// TestUndoOfTurns: an undo ends the turn that is open, and takes it back.
func TestUndoOfTurns(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	e := event("s", 7)
	a.session(e)
	first := a.prompt(e, "make it two")
	a.write("f", "two\n")
	undo := func() *MoveResult {
		r := a.open()
		defer r.Close()
		res, err := r.Undo(context.Background(), UndoOptions{})
		require.NoError(t, err)
		return res
	}
	res := undo()
	require.Equal(t, "one\n", a.read("f"))
	require.Equal(t, "make it two", LinkTitle(res.Walked[0]))
	require.Equal(t, history.EndedByOther, a.now(first.ID).Turn.EndedBy)
	require.Equal(t, history.StatusUndone, a.now(first.ID).Status)
	a.redo(UndoOptions{})
	require.Equal(t, "two\n", a.read("f"))

	second := a.prompt(e, "make it three")
	a.write("f", "three\n")
	a.end(e)
	ids, _ := a.chain()
	require.Equal(t, []string{second.ID, first.ID}, ids)
	res = a.undo(UndoOptions{N: 2})
	require.Equal(t, "Undo of make it three, make it two", res.Record.Description)
	require.Equal(t, "one\n", a.read("f"))
	a.redo(UndoOptions{})
	require.Equal(t, "two\n", a.read("f"))
	a.requireSound()
}

// TestPruningLeavesTheChain as it is: a redo stays while its undo does.
func TestPruningLeavesTheChain(t *testing.T) {
	b := newBench(t)
	populate(b.root, rand.New(rand.NewSource(1)))
	var ids []string
	for i := range int64(3) {
		ids = append([]string{b.run(9500+i, 0, nil).Record.ID}, ids...)
	}
	b.undo(UndoOptions{N: 3})
	b.redo(UndoOptions{})
	b.redo(UndoOptions{N: 2})
	b.undo(UndoOptions{})
	b.redo(UndoOptions{})
	b.checkpoint(CheckpointOptions{})
	prune := func(reason string) int {
		p := with(b, func(r *Recorder) (*Pruned, error) {
			return r.Prune(context.Background(), PruneOptions{Last: map[string]int{reason: 0}})
		})
		undo, redo := b.chain()
		require.Equal(t, ids, undo)
		require.Empty(t, redo)
		return len(p.Gone())
	}
	require.Zero(t, prune("apply"), "their undos are there")
	require.Equal(t, 2, prune("revert"))
	require.Equal(t, 3, prune("apply"))
	b.requireSound()
}

// TestStatusOfWhatIsUndoneInPart undoes and redoes a run path by path, in any order: it is
// undone while nothing of it stands, it has its own status while anything does, and it names the
// last undo that holds a part of it and that was not redone.
func TestStatusOfWhatIsUndoneInPart(t *testing.T) {
	moved := map[string]int{}
	for seed := range int64(seeds(t)) {
		b := newBench(t)
		rnd := rand.New(rand.NewSource(seed))
		id := b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", "echo 1 >a; echo 1 >b; echo 1 >c"} }).Record.ID
		holds := map[tree.Path]string{} // by path: the undo that has it
		for range 12 {
			o := UndoOptions{}
			what, walk := "undo", b.undo
			if rnd.Intn(2) == 0 {
				what, walk = "redo", b.redo
			}
			all, before := []tree.Path{"a", "b", "c"}, map[tree.Path]bool{}
			for _, p := range all {
				before[p] = b.exists(string(p))
				if rnd.Intn(2) == 0 && before[p] == (what == "undo") && (what == "undo" || len(o.Paths) == 0) { // else it is no such path
					o.Paths = append(o.Paths, p)
				}
			}
			res := walk(o)
			if res.Record == nil {
				continue
			}
			moved[what]++
			standing := 0
			for _, p := range all {
				switch now := b.exists(string(p)); {
				case now:
					standing++
					delete(holds, p)
				case before[p]:
					holds[p] = res.Record.ID
				}
			}
			last := ""
			for _, by := range holds {
				last = max(last, by)
			}
			rec := with(b, func(r *Recorder) (*history.Record, error) { return r.History().Get(id) })
			where := fmt.Sprintf("seed %d, after %s of %v: %v", seed, what, o.Paths, holds)
			require.Equal(t, last, rec.UndoneBy, where)
			if standing > 0 {
				require.Equal(t, history.StatusSucceeded, rec.Status, where)
			} else {
				require.Equal(t, history.StatusUndone, rec.Status, where)
			}
		}
	}
	require.Positive(t, min(moved["undo"], moved["redo"]))
}

func (b *bench) exists(name string) bool {
	_, err := os.Lstat(b.root + "/" + name)
	return err == nil
}

// TestWalkOfPathsOfSeveral: of paths that different records or undos have, the error names
// the one that has the path which is missing, and the number that it names does it.
func TestWalkOfPathsOfSeveral(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("a", "one\n")
	b.write("c", "one\n")
	first := b.run(0, 0, shell("rm a")).Record.ID
	b.run(0, 0, shell("rm c"))
	both := UndoOptions{Paths: []tree.Path{"a", "c"}}
	refused := func(words string, walk func(*Recorder, context.Context, UndoOptions) (*MoveResult, error)) {
		t.Helper()
		r := b.open()
		defer r.Close()
		_, err := walk(r, ctx, both)
		require.ErrorContains(t, err, words)
		require.Equal(t, project.Refused, project.KindOf(err))
	}
	refused("a is not part of the undo that comes next: record "+first+" changed it", (*Recorder).Undo)
	require.NoFileExists(t, b.root+"/c")
	both.N = 2
	b.undo(both)
	require.FileExists(t, b.root+"/a")
	require.FileExists(t, b.root+"/c")

	b.run(0, 0, shell("echo two >x; echo two >y"))
	of := b.undo(UndoOptions{Paths: []tree.Path{"x"}}).Record.ID
	b.undo(UndoOptions{Paths: []tree.Path{"y"}})
	both = UndoOptions{Paths: []tree.Path{"x", "y"}}
	refused("x is not part of the redo that comes next: undo "+of+" took it back", (*Recorder).Redo)
	both.N = 2
	b.redo(both)
	require.FileExists(t, b.root+"/x")
	require.FileExists(t, b.root+"/y")
	both.N, both.Paths = 1, []tree.Path{"x", "nowhere"}
	refusedNowhere := b.open()
	defer refusedNowhere.Close()
	_, err := refusedNowhere.Undo(ctx, both)
	require.Equal(t, project.NotFound, project.KindOf(err))
}
