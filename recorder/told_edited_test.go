package recorder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/tree"
)

// TestTurnBesideAnEditedDiff: what a person makes of the changes.diff of a run beside a turn keeps
// the turn from nothing, and does not count.
func TestTurnBesideAnEditedDiff(t *testing.T) {
	a := newAgents(t)
	a.write("f", "one\n")
	a.write("g", "one\n")
	a.checkpoint()
	e := event("s", 7)
	turn := a.prompt(e, "work")
	a.tool(e, "edit", "f")
	a.write("f", "two\n")
	r := a.bench.commanded(func() int { a.write("g", "two\n"); return 0 })
	r.alive = a.open().alive
	res, err := r.Run(t.Context(), command(a.bench))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	a.write(".decree/runs/"+res.Record.ID+"/"+diffFile, "# decree: edited\n")
	require.Equal(t, turn.ID, a.end(e).ID)
	require.Equal(t, history.StatusSucceeded, a.now(turn.ID).Status)
	require.Equal(t, []tree.Path{"f"}, a.changed(turn.ID))
}
