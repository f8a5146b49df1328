package recorder

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/tree"
)

// tool has a session's tool tell: of the files that it changes, or, with none, that it may
// change anything.
func (a *agents) tool(e TurnEvent, name string, paths ...string) {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	t := project.AgentReport{Agent: e.Agent, Session: e.Session, Process: e.Process, Tool: name, Any: len(paths) == 0}
	for _, p := range paths {
		t.Paths = append(t.Paths, []byte(p))
	}
	require.NoError(a.t, r.project.NoteAgentReport(t))
}

// sharedIn are the paths that a record's diff says others changed in the same time.
func (a *agents) sharedIn(id string) (paths []tree.Path) {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	src := &selection{}
	defer src.done()
	s, err := src.source(context.Background(), r.history, get(a.t, r, id), r.store)
	require.NoError(a.t, err)
	for _, sec := range s.Sections {
		if sec.Shared {
			paths = append(paths, sec.Path)
		}
	}
	return paths
}

// Two sessions work in one tree, in every order of their beginnings and ends: each record has
// what its session's tools named, and a revert of one leaves the other's.
func TestWhoseChange(t *testing.T) {
	one, two := event("a", 7), event("b", 8)
	const opens, ends = 0, 1
	for _, order := range [][4][2]int{ // of session, and what it does
		{{0, opens}, {1, opens}, {0, ends}, {1, ends}},
		{{0, opens}, {1, opens}, {1, ends}, {0, ends}},
		{{1, opens}, {0, opens}, {0, ends}, {1, ends}},
		{{1, opens}, {0, opens}, {1, ends}, {0, ends}},
	} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			a := newAgents(t)
			for _, f := range []string{"mine", "theirs", "both", "nobodys", "byhand"} {
				a.write(f, "one\n")
			}
			a.checkpoint()
			ids := map[int]string{}
			for i, step := range order {
				if i == 2 { // both are at work
					a.tool(one, "edit", "mine", "new/file")
					a.write("mine", "two\n")
					a.write("new/file", "made\n")
					a.tool(two, "edit", "theirs", "both")
					a.write("theirs", "two\n")
					a.tool(one, "edit", "both")
					a.write("both", "two\n")
					a.write("byhand", "two\n")
				}
				e := []TurnEvent{one, two}[step[0]]
				if step[1] == opens {
					ids[step[0]] = a.prompt(e, "work").ID
				} else {
					require.Equal(t, ids[step[0]], a.end(e).ID)
				}
			}
			require.Equal(t, []tree.Path{"both", "mine", "new", "new/file"}, a.changed(ids[0]))
			require.Equal(t, []tree.Path{"both", "theirs"}, a.changed(ids[1]))
			for i := range 2 {
				rec := a.now(ids[i])
				require.Equal(t, []tree.Path{"both"}, a.sharedIn(rec.ID))
				require.Equal(t, []string{ids[1-i]}, rec.Turn.Overlaps)
				require.Equal(t, []string{"edit"}, rec.Turn.Tools)
				require.Equal(t, []tree.Path{"byhand"}, a.found(rec.ID), "the user's")
			}
			r := a.open()
			defer r.Close()
			o := MoveOptions{Refs: []string{ids[0]}}
			_, err := r.Revert(context.Background(), o)
			var conflict *ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Len(t, conflict.Items, 1)
			require.Equal(t, tree.Path("both"), conflict.Items[0].Path)
			o.Exclude = []tree.Path{"both"}
			_, err = r.Revert(context.Background(), o)
			require.NoError(t, err)
			require.Equal(t, []string{"one\n", "two\n", "two\n", "two\n"}, []string{a.read("mine"), a.read("theirs"), a.read("both"), a.read("byhand")})
			res, err := r.Revert(context.Background(), MoveOptions{Refs: []string{ids[1]}, Force: true, Yes: true})
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(res.Plan.Items, func(it plan.Item) bool { return it.Path == "both" && it.Verdict == plan.Forced }))
			require.Equal(t, []string{"one\n", "one\n"}, []string{a.read("theirs"), a.read("both")})
			a.requireSound()
		})
	}
}

// What nobody named: of the one whose tools may change anything, of both, or the user's.
func TestWhatNobodyNamed(t *testing.T) {
	one, two := event("a", 7), event("b", 8)
	for _, c := range []struct {
		name                        string
		tell                        func(a *agents)
		mine, theirs, found, shared bool
	}{
		{"nothing was told of any tool", func(*agents) {}, true, true, false, true},
		{"both edited other files", func(a *agents) { a.tool(one, "edit", "x"); a.tool(two, "edit", "y") }, false, false, true, false},
		{"one ran a command", func(a *agents) { a.tool(one, "shell"); a.tool(two, "edit", "y") }, true, false, false, false},
		{"both ran commands", func(a *agents) { a.tool(one, "shell"); a.tool(two, "shell") }, true, true, false, true},
		{"one ran a command, the other did nothing", func(a *agents) { a.tool(one, "shell") }, true, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgents(t)
			a.write("f", "one\n")
			first, second := a.prompt(one, "work").ID, a.prompt(two, "work").ID
			c.tell(a)
			a.write("f", "two\n")
			a.end(one)
			a.end(two)
			require.Equal(t, c.mine, slices.Contains(a.changed(first), "f"))
			require.Equal(t, c.theirs, slices.Contains(a.changed(second), "f"))
			require.Equal(t, c.found, slices.Contains(a.found(first), "f"))
			require.Equal(t, c.shared, slices.Contains(a.sharedIn(first), "f"))
			a.requireSound()
		})
	}
}

// An answer for which no tool was needed changed nothing: what the user edits meanwhile is the user's, once
// it is known that the agent tells of its tools.
func TestAnswerWithoutTools(t *testing.T) {
	a := newAgents(t)
	e := event("s", 7)
	a.write("f", "one\n")
	work := a.prompt(e, "work")
	a.tool(e, "edit", "mine")
	a.write("mine", "made\n")
	a.end(e)
	answer := a.prompt(e, "what is this?")
	a.write("f", "two\n")
	a.end(e)
	require.Equal(t, []tree.Path{"mine"}, a.changed(work.ID))
	require.Empty(t, a.changed(answer.ID))
	require.Equal(t, []tree.Path{"f"}, a.found(answer.ID))
	a.requireSound()
}

// What the user changed before a prompt and again in its turn is told once.
func TestUsersChanges(t *testing.T) {
	a := newAgents(t)
	for _, f := range []string{"before", "both", "in", "back"} {
		a.write(f, "one\n")
	}
	a.checkpoint()
	for _, f := range []string{"before", "both", "back"} {
		a.write(f, "two\n")
	}
	e := event("s", 7)
	turn := a.prompt(e, "work")
	a.tool(e, "edit", "mine")
	a.write("mine", "made\n")
	a.write("both", "three\n")
	a.write("in", "two\n")
	a.write("back", "one\n")
	a.end(e)
	require.Equal(t, []tree.Path{"mine"}, a.changed(turn.ID))
	require.Equal(t, []tree.Path{"before", "both", "in"}, a.found(turn.ID))
	require.Empty(t, a.found(a.checkpoint().ID))
	a.revert(turn.ID)
	require.Equal(t, "three\n", a.read("both"))
	require.NoFileExists(t, a.root+"/mine")
	a.requireSound()
}

// What a session did that has no turn, since its prompt was not recorded, is in no turn: it was done outside, and
// shared where the turn's own tools have named it too.
func TestWorkOfASessionWithoutATurn(t *testing.T) {
	for _, c := range []struct {
		name                  string
		tell                  func(a *agents, one, two TurnEvent)
		mine, found, isShared bool
	}{
		{"it named the file", func(a *agents, _, two TurnEvent) { a.tool(two, "edit", "f") }, false, true, false},
		{"it named the file, and the turn ran a command", func(a *agents, one, two TurnEvent) { a.tool(one, "shell"); a.tool(two, "edit", "f") }, false, true, false},
		{"it ran a command", func(a *agents, one, two TurnEvent) { a.tool(one, "edit", "x"); a.tool(two, "shell") }, false, true, false},
		{"both named the file", func(a *agents, one, two TurnEvent) { a.tool(one, "edit", "f"); a.tool(two, "edit", "f") }, true, false, true},
		{"both ran commands", func(a *agents, one, two TurnEvent) { a.tool(one, "shell"); a.tool(two, "shell") }, true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgents(t)
			a.write("f", "one\n")
			one, two := event("a", 7), event("b", 8)
			turn := a.prompt(one, "work").ID
			c.tell(a, one, two)
			a.write("f", "two\n")
			require.Equal(t, turn, a.end(one).ID)
			require.Equal(t, c.mine, slices.Contains(a.changed(turn), "f"))
			require.Equal(t, c.found, slices.Contains(a.found(turn), "f"))
			require.Equal(t, c.isShared, slices.Contains(a.sharedIn(turn), "f"))
			require.Empty(t, a.found(a.checkpoint().ID))
			a.requireSound()
		})
	}
}

// What is edited after one of two turns has ended, and before the other has, of a path that the ended one's tool has named, is in the other's
// outside.diff, or shared by that where it ran a command.
func TestEditedBetweenTwoEnds(t *testing.T) {
	for _, shell := range []bool{false, true} {
		a := newAgents(t)
		a.write("f", "one\n")
		first, second := event("a", 7), event("b", 8)
		turn := a.prompt(first, "work").ID
		a.prompt(second, "work")
		a.tool(second, "edit", "f")
		a.write("f", "two\n")
		a.end(second)
		if shell {
			a.tool(first, "shell")
		}
		a.write("f", "three\n")
		require.Equal(t, turn, a.end(first).ID)
		require.Equal(t, shell, slices.Contains(a.sharedIn(turn), "f"))
		require.Equal(t, !shell, slices.Contains(a.found(turn), "f"))
		require.Empty(t, a.found(a.checkpoint().ID))
		a.requireSound()
	}
}

// outside is a record's outside.diff.
func (a *agents) outside(id string) string {
	r := a.open()
	defer r.Close()
	f, err := r.History().OpenPlain(id, history.OutsideFile)
	require.NoError(a.t, err)
	defer f.Close()
	diff, err := io.ReadAll(f)
	require.NoError(a.t, err)
	return string(diff)
}

// What the user edits before the tool of another turn, and again after that has ended, is told whole.
func TestEditedOnBothSidesOfAnotherTurn(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	first, second := event("a", 7), event("b", 8)
	turn := a.prompt(first, "work").ID
	a.write("f", "two\n")
	a.prompt(second, "work")
	a.tool(second, "edit", "f")
	a.write("f", "three\n")
	a.end(second)
	a.write("f", "four\n")
	a.tool(first, "edit", "g")
	a.end(first)
	require.Contains(t, a.outside(turn), "-one\n+four\n")
}

// What a turn's command changed before the prompt of another turn, whose tool then names the same path, is in the first one's record, as shared,
// whichever ends first.
func TestChangedBeforeTheOtherBegan(t *testing.T) {
	for _, othersFirst := range []bool{false, true} {
		a := newAgents(t)
		a.write("f", "one\n")
		first, second := event("a", 7), event("b", 8)
		turn := a.prompt(first, "work").ID
		a.tool(first, "shell")
		a.write("f", "two\n")
		other := a.prompt(second, "work").ID
		a.tool(second, "edit", "f")
		a.write("f", "three\n")
		if othersFirst {
			a.end(second)
			a.end(first)
		} else {
			a.end(first)
			a.end(second)
		}
		require.Equal(t, []tree.Path{"f"}, a.sharedIn(turn), othersFirst)
		require.Equal(t, []tree.Path{"f"}, a.changed(other), othersFirst)
		require.Empty(t, a.found(a.checkpoint().ID))
		a.requireSound()
	}
}

// What a person edits between two turns of another agent, of a path that both name, is in the outside.diff of the turn that was open all the time.
func TestEditedBetweenTwoOtherTurns(t *testing.T) {
	for _, stillOpen := range []bool{false, true} {
		a := newAgents(t)
		a.write("f", "one\n")
		first, second := event("a", 7), event("b", 8)
		turn := a.prompt(first, "work").ID
		a.tool(first, "edit", "g")
		for _, text := range []string{"two\n", "four\n"} {
			a.prompt(second, "work")
			a.tool(second, "edit", "f")
			a.write("f", text)
			if text == "two\n" {
				a.end(second)
				a.write("f", "three\n")
			} else if !stillOpen {
				a.end(second)
			}
		}
		a.end(first)
		require.Contains(t, a.outside(turn), "-two\n+three\n")
	}
}

// What a run that is no part of a turn changed in its time is the run's.
func TestRunBesideATurn(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	e := event("s", 7)
	turn := a.prompt(e, "work")
	a.tool(e, "shell")
	r := a.bench.commanded(func() int { a.write("f", "two\n"); return 0 })
	r.alive = func(project.Holder) bool { return true }
	r.descent = func(project.Holder) int { return -1 }
	res, err := r.Run(context.Background(), command(a.bench))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Empty(t, res.Record.Inside)
	a.write("g", "made\n")
	a.end(e)
	require.Equal(t, []tree.Path{"g"}, a.changed(turn.ID))
	require.Equal(t, []string{res.Record.ID}, a.now(turn.ID).Turn.Overlaps)
	a.requireSound()
}

// A session's end is told, and whoever records next closes its turn.
func TestSessionEndIsTold(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	e, other := event("s", 7), event("o", 8)
	turn, theirs := a.prompt(e, "work"), a.prompt(other, "work")
	a.write("f", "two\n")
	r := a.open()
	require.NoError(t, r.project.NoteAgentReport(project.AgentReport{Agent: "codex", Session: "s", End: true}))
	require.NoError(t, r.Close())
	require.Equal(t, history.StatusOpen, a.now(turn.ID).Status)
	a.checkpoint()
	require.Equal(t, history.StatusSucceeded, a.now(turn.ID).Status)
	require.Equal(t, history.EndedByOther, a.now(turn.ID).Turn.EndedBy)
	require.Equal(t, history.StatusOpen, a.now(theirs.ID).Status)
	again := a.prompt(e, "resumed") // the end that was told is not its own
	a.checkpoint()
	require.Equal(t, history.StatusOpen, a.now(again.ID).Status)
	a.end(e)
	a.end(other)
	a.checkpoint()
	r = a.open()
	defer r.Close()
	size, err := r.project.AgentReportsSize()
	require.NoError(t, err)
	require.Zero(t, size, "what nobody needs goes")
}

// After each command, where the config asks for that, the tree is recorded as a part of the
// turn.
func TestAfterTool(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	e := event("s", 7)
	e.Tool = "Bash\nx"
	require.Nil(t, a.told(e, (*Recorder).AfterTool), "no turn is open")
	turn := a.prompt(e, "work")
	a.write("f", "two\n")
	rec := a.told(e, (*Recorder).AfterTool)
	require.Equal(t, turn.ID, rec.Inside)
	require.Equal(t, "After Bash x", rec.Description)
	require.Equal(t, history.Auto, rec.Reason)
	require.Empty(t, a.found(rec.ID))
}

// TestWorkedBesideAfterTheClockWasSetBack: what was recorded while a turn was open is known also where the clock was set back
// meanwhile, and the record that was the newest at the prompt was pruned, or there was none.
func TestWorkedBesideAfterTheClockWasSetBack(t *testing.T) {
	for _, before := range []int{0, 1} {
		a := newAgents(t)
		one := event("a", 7)
		for range before {
			a.write("f", "one\n")
			a.checkpoint()
		}
		a.prompt(one, "work")
		a.clk = a.clk.Add(-2 * time.Hour)
		beside := a.bench.commanded(func() int { a.write("theirs", "made\n"); return 0 })
		beside.alive = func(project.Holder) bool { return true }
		beside.descent = func(project.Holder) int { return -1 }
		run, err := beside.Run(t.Context(), command(a.bench))
		require.NoError(t, err)
		if before > 0 {
			_, err = beside.Prune(t.Context(), PruneOptions{Last: map[string]int{"manual": 0}})
			require.NoError(t, err)
		}
		require.NoError(t, beside.Close())
		a.tool(one, "edit", "mine")
		a.write("mine", "two\n")
		require.Equal(t, []string{run.Record.ID}, a.now(a.end(one).ID).Turn.Overlaps, before)
	}
}
