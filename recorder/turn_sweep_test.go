package recorder

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/agent"
	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
)

// turnOperations are the swept ones of turns. The agent's process is not known, so that
// only events close a turn.
func turnOperations() []operation {
	ctx := context.Background()
	e := TurnEvent{Event: agent.Event{Agent: "codex", Session: "s", Prompt: "work"}}
	begin := func(_ *sweep, r *Recorder) error { _, err := r.BeginTurn(ctx, e); return err }
	opened := func(s *sweep) {
		s.ids = append(s.ids, s.run(500, 0, nil).Record.ID)
		s.edit(8)
		s.before = s.tree()
		s.ids = append(s.ids, with(s.bench, func(r *Recorder) (*history.Record, error) { return r.BeginTurn(ctx, e) }).ID)
		s.edit(9)
	}
	next := e
	next.Prompt = "more"
	return []operation{
		{"turn opens", func(s *sweep) { s.run(500, 0, nil); s.edit(8) }, begin, judgeOpening},
		{"turn closes", opened, func(_ *sweep, r *Recorder) error { _, err := r.EndTurn(ctx, e); return err }, judgeClosing},
		{"turn closes the one before", opened, func(_ *sweep, r *Recorder) error { _, err := r.BeginTurn(ctx, next); return err }, judgeClosing},
		{"session begins", func(s *sweep) { s.run(500, 0, nil); s.edit(8) }, func(_ *sweep, r *Recorder) error {
			_, err := r.BeginSession(ctx, e)
			return err
		}, judgeCheckpoint},
	}
}

// judgeOpening: the tree is untouched, and there is a turn or none. What follows is its work.
func judgeOpening(s *sweep, v verdict) {
	require.Equal(s.t, s.before, v.state)
	if v.err == nil {
		require.Len(s.t, v.newest, 1, "acknowledged and lost")
	}
	for _, rec := range v.newest {
		require.Equal(s.t, history.StatusOpen, rec.Status)
		s.edit(9)
		with(s.bench, func(r *Recorder) (*history.Record, error) {
			return r.EndTurn(context.Background(), TurnEvent{Event: agent.Event{Agent: "codex", Session: "s"}})
		})
		if s.revert("turn-1"); len(rec.Unrecorded) == 0 {
			require.Equal(s.t, s.before, s.tree())
		}
	}
}

// judgeClosing: the tree is untouched, the turn is open or closed, and never lost: what was
// done in it is taken back. Where the store could not read what was there before, the turn is closed
// without its changes, which is told: they count as edits from outside.
func judgeClosing(s *sweep, v verdict) {
	require.Equal(s.t, s.start, v.state)
	turn := s.ids[1]
	rec := with(s.bench, func(r *Recorder) (*history.Record, error) { return r.history.Get(turn) })
	if v.err == nil {
		require.Equal(s.t, history.StatusSucceeded, rec.Status)
	}
	if rec.Status == history.StatusOpen {
		with(s.bench, func(r *Recorder) (*history.Record, error) {
			return r.EndTurn(context.Background(), TurnEvent{Event: agent.Event{Agent: "codex", Session: "s"}})
		})
	}
	labels := with(s.bench, func(r *Recorder) (map[string]string, error) { return r.history.Labels() })
	require.Equal(s.t, turn, labels["turn-1"])
	rec = with(s.bench, func(r *Recorder) (*history.Record, error) { return r.history.Get(turn) })
	if strings.Contains(strings.Join(s.said, "\n"), "turn "+turn+" is closed without what the store has lost: ") {
		require.Zero(s.t, rec.Changes)
		return
	}
	if s.revert(turn); len(rec.Unrecorded) == 0 {
		require.Equal(s.t, s.before, s.tree())
	}
}

// TestTurnOpensWhereRecordsCannotBeRead: what had ended before a prompt did not work beside its
// turn, also where the disk hid that at the prompt.
func TestTurnOpensWhereRecordsCannotBeRead(t *testing.T) {
	list := operations()
	op := list[slices.IndexFunc(list, func(op operation) bool { return op.name == "turn opens" })]
	s := begin(t, op, 1)
	s.reset()
	i, captured, steps := 0, false, []int(nil)
	require.NoError(t, s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		captured = captured || st.Write && strings.HasSuffix(st.Path, "/cache")
		if captured && !st.Write && (strings.Contains(st.Path, "/open") || strings.Contains(st.Path, "/.decree/runs")) {
			steps = append(steps, i)
		}
		i++
		return disktest.Action{}
	}), func(r *Recorder) error { return op.do(s, r) }))
	require.NotEmpty(t, steps)
	for i, n := range steps {
		if testing.Short() && i%4 > 0 {
			continue
		}
		require.True(t, s.once(n, syscall.EIO))
	}
}
