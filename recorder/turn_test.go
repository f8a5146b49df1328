package recorder

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/agent"
	"decree/history"
	"decree/project"
	"decree/runner"
	"decree/tree"
)

// agents is a bench with coding agents, whose processes the test lets live and die.
type agents struct {
	*bench
	gone map[int]bool
	in   []int // the processes that the next command descends from, the nearest first
}

func newAgents(t *testing.T) *agents { return &agents{bench: newBench(t), gone: map[int]bool{}} }

func (a *agents) open() *Recorder {
	r := a.bench.open()
	r.alive = func(h project.Holder) bool { return !a.gone[h.PID] }
	r.descent = func(h project.Holder) int {
		for i, pid := range a.in {
			if h.PID == pid {
				return i
			}
		}
		return -1
	}
	return r
}

// event is one of the session of that name, whose agent is the process of that number.
func event(session string, pid int) TurnEvent {
	return TurnEvent{
		Event:   agent.Event{Agent: "codex", Session: session, Model: "m-1"},
		Process: project.Holder{PID: pid, Host: "h", Boot: runner.BootID(), Born: uint64(pid)},
	}
}

// told has a recorder take an event, as one hook does.
func (a *agents) told(e TurnEvent, take func(*Recorder, context.Context, TurnEvent) (*history.Record, error)) *history.Record {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	rec, err := take(r, context.Background(), e)
	require.NoError(a.t, err)
	return rec
}

func (a *agents) session(e TurnEvent) *history.Record {
	a.t.Helper()
	return a.told(e, (*Recorder).BeginSession)
}

func (a *agents) prompt(e TurnEvent, text string) *history.Record {
	a.t.Helper()
	e.Prompt = text
	return a.told(e, (*Recorder).BeginTurn)
}

func (a *agents) end(e TurnEvent) *history.Record {
	a.t.Helper()
	return a.told(e, (*Recorder).EndTurn)
}

func (a *agents) checkpoint() *history.Record {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	rec, err := r.Checkpoint(context.Background(), CheckpointOptions{})
	require.NoError(a.t, err)
	return rec
}

// now is a record as the history has it.
func (a *agents) now(id string) *history.Record {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	return get(a.t, r, id)
}

// changed are the paths of a record's changes.diff.
func (a *agents) changed(id string) (paths []tree.Path) {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	changes, err := r.history.DiffChanges(get(a.t, r, id))
	require.NoError(a.t, err)
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths
}

// found are the paths of its outside.diff.
func (a *agents) found(id string) []tree.Path {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	return a.outsidePaths(r, id)
}

func (a *agents) labels() map[string]string {
	a.t.Helper()
	r := a.open()
	defer r.Close()
	labels, err := r.history.Labels()
	require.NoError(a.t, err)
	return labels
}

// A session, a prompt, the agent's work, its answer; the user's edits before, and between
// the turns, are nobody's turn.
func TestTurn(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	e := event("s", 7)
	e.Transcript, e.TranscriptSize = "/home/u/log.jsonl", 12
	base := a.session(e)
	require.Equal(t, history.Auto, base.Reason)
	require.Equal(t, map[string]string{"session": base.ID}, a.labels())
	require.Nil(t, a.session(e), "nothing has changed since this session began")
	a.write("mine", "before the prompt\n")

	open := a.prompt(e, " make it two\n\nand more ")
	require.Equal(t, history.StatusOpen, open.Status)
	require.Equal(t, history.Actor{User: "u", Host: "h", Agent: "codex", Session: "s", Turn: 1, Model: "m-1"}, open.Actor)
	require.Equal(t, open.ID, a.labels()["turn-1"])
	require.Nil(t, a.session(e), "a session's start closes no turn of its own")
	require.Equal(t, open.ID, a.prompt(e, " make it two\n\nand more ").ID, "the same prompt, sent twice")
	a.write("f", "two\n")
	a.write("new", "three\n")
	middle := a.checkpoint()
	require.Empty(t, middle.Inside)
	require.Empty(t, a.found(middle.ID), "what happens in a turn is the turn's")

	closed := a.end(e)
	require.Equal(t, open.ID, closed.ID)
	rec := a.now(open.ID)
	require.Equal(t, history.StatusSucceeded, rec.Status)
	require.Equal(t, &history.TurnFacts{
		Prompt: "make it two\n\nand more", EndedBy: history.EndedByEvent, Transcript: history.Transcript{Path: "/home/u/log.jsonl", Offset: 12},
	}, rec.Turn)
	require.Equal(t, []tree.Path{"f", "new"}, a.changed(rec.ID))
	require.Equal(t, []tree.Path{"mine"}, a.found(rec.ID))
	require.Nil(t, a.end(e), "the end, sent twice")
	a.write("mine", "between the turns\n")

	second := a.prompt(e, "go on")
	require.Nil(t, a.end(e).Recovered)
	require.Equal(t, 2, second.Actor.Turn)
	require.Empty(t, a.changed(second.ID))
	require.Equal(t, []tree.Path{"mine"}, a.found(second.ID))
	require.Nil(t, a.session(e), "the turn that just ended says it")
	a.revert("turn-1")
	require.Equal(t, "one\n", a.read("f"))
	require.Equal(t, "between the turns\n", a.read("mine"))
	require.Equal(t, history.StatusUndone, a.now(rec.ID).Status)
	a.requireSound()
}

// A turn is closed by whatever shows first that it is over, and by nothing else.
func TestWhatClosesATurn(t *testing.T) {
	mine, other := event("s", 7), event("o", 8)
	revert := func(a *agents) {
		r := a.open()
		defer r.Close()
		_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"earlier"}})
		require.NoError(t, err)
	}
	for _, c := range []struct {
		name string
		do   func(a *agents)
		gone bool // is the agent
		ends bool
	}{
		{"its session's next prompt", func(a *agents) { a.prompt(mine, "next") }, false, true},
		{"a revert", revert, false, true},
		{"another session's start", func(a *agents) { a.session(other) }, false, false},
		{"another session's start once it is gone", func(a *agents) { a.session(other) }, true, true},
		{"another session's prompt", func(a *agents) { a.prompt(other, "hello") }, false, false},
		{"another session's end", func(a *agents) { a.end(other) }, false, false},
		{"its own session's start", func(a *agents) { a.session(mine) }, true, false},
		{"a checkpoint", func(a *agents) { a.checkpoint() }, false, false},
		{"a checkpoint once it is gone", func(a *agents) { a.checkpoint() }, true, true},
		{"a recovery", func(a *agents) {
			r := a.open()
			defer r.Close()
			done, err := r.Recover(context.Background(), true)
			require.NoError(t, err)
			require.Empty(t, done)
		}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgents(t)
			a.write("f", "one\n")
			a.write("g", "one\n")
			a.checkpoint()
			r := a.bench.commanded(func() int { a.write("g", "two\n"); return 0 })
			o := command(a.bench)
			o.Label = "earlier"
			_, err := r.Run(context.Background(), o)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			turn := a.prompt(mine, "work")
			a.write("f", "two\n")
			a.gone[7] = c.gone
			c.do(a)
			rec := a.now(turn.ID)
			if !c.ends {
				require.Equal(t, history.StatusOpen, rec.Status)
				require.Nil(t, rec.Recovered)
				return
			}
			require.Equal(t, history.StatusSucceeded, rec.Status)
			require.Equal(t, history.EndedByOther, rec.Turn.EndedBy)
			require.Equal(t, []tree.Path{"f"}, a.changed(rec.ID))
			a.requireSound()
		})
	}
}

// What an agent does after its turn was closed by something else is a turn that
// continues it.
func TestEndAfterAll(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	e := event("s", 7)
	turn := a.prompt(e, "work")
	a.write("f", "two\n")
	a.gone[7] = true
	a.checkpoint()
	require.Nil(t, a.end(e), "nothing has changed since")
	a.write("g", "after all\n")
	more := a.end(e)
	require.Equal(t, turn.ID, more.Turn.Continues)
	require.Equal(t, 2, more.Actor.Turn)
	require.Equal(t, []tree.Path{"g"}, a.changed(more.ID))
	require.Empty(t, a.found(more.ID))
	require.Equal(t, more.ID, a.labels()["turn-2"])
	require.Nil(t, a.end(e))
	a.requireSound()
}

// Events that come in another order, or of an agent that names its turns.
func TestTurnsThatHaveIDs(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	first, second := event("s", 7), event("s", 7)
	first.Turn, second.Turn = "t1", "t2"
	one := a.prompt(first, "again")
	require.Equal(t, one.ID, a.prompt(first, "again").ID)
	two := a.prompt(second, "again")
	require.NotEqual(t, one.ID, two.ID, "the same words, in another turn")
	require.Equal(t, history.EndedByOther, a.now(one.ID).Turn.EndedBy)
	a.write("f", "two\n")
	require.Nil(t, a.end(first), "it comes late, and the next turn is open")
	require.Equal(t, history.StatusOpen, a.now(two.ID).Status)
	require.Equal(t, two.ID, a.end(second).ID)
	other := event("", 7) // it has the hooks of two agents
	other.Agent = "claude"
	three := a.prompt(other, "more")
	require.Equal(t, three.ID, a.prompt(event("", 7), "more").ID)
}

// Two sessions have a turn each at a time, also in one process.
func TestTwoSessions(t *testing.T) {
	for _, pid := range []int{7, 8} {
		a := newAgents(t)
		a.write("f", "one\n")
		a.in = []int{7}
		one := a.prompt(event("a", 7), "one")
		a.in = []int{pid}
		two := a.prompt(event("b", pid), "two")
		require.Equal(t, history.StatusOpen, a.now(one.ID).Status)
		require.Empty(t, two.Inside)
		require.Equal(t, two.ID, a.end(event("b", pid)).ID)
		require.Equal(t, one.ID, a.end(event("a", 7)).ID)
		a.requireSound()
	}
}

// The same words in two sessions of one process are two prompts, and what each does is in its turn.
func TestSameWordsInTwoSessions(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	first, second := event("a", 7), event("b", 7)
	one := a.prompt(first, "continue")
	two := a.prompt(second, "continue")
	require.NotEqual(t, one.ID, two.ID)
	require.Equal(t, one.ID, a.prompt(first, "continue").ID, "told twice")
	a.tool(second, "edit", "g")
	a.write("g", "made\n")
	require.Equal(t, two.ID, a.end(second).ID)
	require.Equal(t, one.ID, a.end(first).ID)
	require.Equal(t, []tree.Path{"g"}, a.changed(two.ID))
	a.requireSound()
}

// A prompt in the same words once the turn's tools have worked is the next one: what the agent did for the first was
// interrupted, and what is edited by hand between the two is nobody's turn.
func TestSameWordsAfterAnInterrupt(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	e := event("s", 7)
	one := a.prompt(e, "continue")
	require.Equal(t, one.ID, a.prompt(e, "continue").ID, "told twice")
	a.tool(e, "shell")
	a.write("f", "two\n")
	two := a.prompt(e, "continue")
	require.NotEqual(t, one.ID, two.ID)
	require.Equal(t, []tree.Path{"f"}, a.changed(one.ID))
	other := e // it has the hooks of two agents
	other.Agent = "claude"
	a.tool(e, "shell")
	require.Equal(t, two.ID, a.prompt(other, "continue").ID)
	a.requireSound()
}

// A turn inside a run ends with it and goes back with it; a run inside a turn, and
// another agent's turn, are inside it.
func TestTurnsAndRuns(t *testing.T) {
	ctx := context.Background()
	for exit, status := range []history.Status{history.StatusSucceeded, history.StatusUndone} {
		a := newAgents(t)
		a.write("f", "one\n")
		a.checkpoint()
		var turn *history.Record
		var run string
		r := a.commanded(func() int {
			r := a.bench.open() // whose descent finds the run
			rec, err := r.BeginTurn(ctx, event("s", 7))
			require.NoError(t, err)
			require.NoError(t, r.Close())
			turn, run = rec, rec.Inside
			a.write("f", "two\n")
			return exit
		})
		res, err := r.Run(ctx, command(a.bench))
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, res.Record.ID, run)
		require.Equal(t, history.EndedByOther, a.now(turn.ID).Turn.EndedBy)
		require.Equal(t, status, a.now(turn.ID).Status)
		require.Equal(t, []tree.Path{"f"}, a.changed(turn.ID))
		a.requireSound()
	}
	a := newAgents(t)
	outer := a.prompt(event("s", 7), "work")
	a.in = []int{9, 7}
	inner := a.prompt(event("of another", 9), "a part of it")
	require.Equal(t, outer.ID, inner.Inside)
	require.Equal(t, inner.ID, a.checkpoint().Inside)
	a.in = []int{7}
	require.Equal(t, outer.ID, a.checkpoint().Inside)
}

// What an open turn needs of the store stays, and its label keeps no record.
func TestTurnsAndTheStore(t *testing.T) {
	ctx := context.Background()
	a := newAgents(t)
	a.write(".decree/config.yml", "retention: {turn: {last: 2}}\nagents: {prompts: false}\n")
	a.write("f", "one\n")
	e := event("s", 7)
	var ids []string
	for n := range 4 {
		turn := a.prompt(e, fmt.Sprint("secret ", n))
		require.Empty(t, turn.Turn.Prompt)
		require.Equal(t, fmt.Sprintf("Turn %d of codex", n+1), turn.Description)
		a.write("f", strings.Repeat("x", n)+"\n")
		ids = append(ids, turn.ID)
		a.end(e)
	}
	require.Equal(t, map[string]string{"turn-3": ids[2], "turn-4": ids[3]}, a.labels())
	a.write("f", "between\n")
	turn := a.prompt(e, "work")
	require.Equal(t, 5, turn.Actor.Turn)
	a.write("f", "after\n")
	r := a.open()
	_, err := r.Gc(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, turn.ID, a.end(e).ID)
	a.revert(turn.ID)
	require.Equal(t, "between\n", a.read("f"))
	a.requireSound()
}

// A turn that something else closes ends in the middle of a command. What goes on then still
// stores, though the store is above its cap, and all that it relies on stays.
func TestClosingATurnAboveTheCap(t *testing.T) {
	mine, ctx := event("s", 7), context.Background()
	run := func(exit int) func(*agents) {
		return func(a *agents) {
			r := a.commanded(func() int {
				r := a.bench.open() // whose descent finds the run
				_, err := r.BeginTurn(ctx, event("inner", 9))
				require.NoError(t, err)
				require.NoError(t, r.Close())
				a.write("f", noise(4, 50_000))
				return exit
			})
			defer r.Close()
			_, err := r.Run(ctx, command(a.bench))
			require.NoError(t, err)
		}
	}
	for _, c := range []struct {
		name string
		do   func(a *agents)
	}{
		{"its session's next prompt", func(a *agents) { a.prompt(mine, "next") }},
		{"another session's start", func(a *agents) { a.session(event("o", 8)) }},
		{"a checkpoint", func(a *agents) { a.checkpoint() }},
		{"a revert", func(a *agents) { a.revert("earlier") }},
		{"a run", run(0)},
		{"a run that fails", run(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgents(t)
			for _, ballast := range []string{noise(5, 1_000_000), ""} { // what goes
				a.write("e", ballast)
				a.bench.checkpoint(CheckpointOptions{Reason: "auto"})
			}
			earlier := a.commanded(func() int { a.write("e", "two\n"); return 0 })
			o := command(a.bench)
			o.Label = "earlier"
			_, err := earlier.Run(ctx, o)
			require.NoError(t, err)
			require.NoError(t, earlier.Close())
			a.write(".decree/config.yml", "max_store: 1MiB\n")
			a.prompt(mine, "work")
			a.write("f", noise(1, 50_000))
			a.prompt(event("t", 6), "work beside it")
			a.write("g", noise(2, 50_000))
			a.gone[6], a.gone[7] = true, true
			a.write("h", noise(3, 50_000))
			c.do(a)
			with(a.bench, func(r *Recorder) (any, error) {
				open, err := r.openTurns()
				require.Less(t, len(open), 2)
				return nil, err
			})
			a.requireSound()
		})
	}
}

// A prompt is kept in its first characters, and no bytes of it break a record.
func TestWhatIsKeptOfAPrompt(t *testing.T) {
	a := newAgents(t)
	e := event(strings.Repeat("../", 200), 7)
	e.Model = "\x1b[31m"
	turn := a.now(a.prompt(e, strings.Repeat("é\xff", 1<<20)).ID)
	require.Len(t, []rune(turn.Turn.Prompt), mostPrompt)
	require.Len(t, turn.Actor.Session, mostID)
	require.Equal(t, turn.ID, a.end(e).ID)
	require.Equal(t, tree.Sum(nil), a.now(turn.ID).DiffSHA256)
	a.requireSound()
}

// A prompt closes the turn before it, also where that has changed what is ignored: both are recorded, each with its own.
func TestPromptAfterAnIgnoreFileChanged(t *testing.T) {
	a := newAgents(t)
	a.write(".gitignore", "*.o\n")
	a.write("f", "one\n")
	mine, other := event("s", 7), event("o", 8)
	one := a.prompt(mine, "one")
	beside := a.prompt(other, "beside it")
	for _, c := range []struct {
		e    TurnEvent
		file string
		open *history.Record
	}{{mine, "f", one}, {other, "g", beside}} {
		a.write(".gitignore", a.read(".gitignore")+"*."+c.file+"\n")
		a.write("ignored."+c.file, "seen by the turn, which began before it was ignored\n")
		a.write(c.file, "two\n")
		next := a.prompt(c.e, "next")
		require.Equal(t, history.StatusOpen, next.Status)
		require.Equal(t, history.StatusSucceeded, a.now(c.open.ID).Status)
		require.Subset(t, a.changed(c.open.ID), []tree.Path{".gitignore", tree.Path(c.file), tree.Path("ignored." + c.file)})
		require.Empty(t, a.found(next.ID))
		a.write(c.file, "three\n")
		require.Equal(t, next.ID, a.end(c.e).ID)
		require.Equal(t, []tree.Path{tree.Path(c.file)}, a.changed(next.ID))
	}
	a.requireSound()
}
