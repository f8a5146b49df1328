//go:build unix

package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/tree"
)

// TestPublishThatIsTriedAgainEndsNoTurn: a publish for which something has to be put right before leaves the turns of agents open; one that is
// made ends them, and what they did is theirs.
func TestPublishThatIsTriedAgainEndsNoTurn(t *testing.T) {
	ctx := context.Background()
	a := newAgents(t)
	a.write(".decree/config.yml", "capture: {max_file: 100}\n")
	a.write("log", "")
	a.checkpoint()
	(&sweep{bench: a.bench, t: t}).age()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	r := a.open()
	defer r.Close()
	res, err := r.RunIsolated(ctx, RunOptions{Args: []string{"sh", "-c", "echo did >>log"}, Dir: a.root, Stdin: null, Env: os.Environ()}, IsolatedOptions{Copy: !overlays()})
	require.NoError(t, err)
	turn := a.prompt(event("s", 7), "work")
	a.write("theirs", "an agent's\n")
	a.write("big", strings.Repeat("x", 200))
	publish := func() (*MoveResult, error) {
		return r.Publish(ctx, PublishOptions{Ref: res.Record.ID, Unasked: true})
	}
	for range 2 {
		_, err = publish()
		require.ErrorAs(t, err, new(*WaitError))
		require.Equal(t, history.StatusOpen, a.now(turn.ID).Status)
	}
	require.NoError(t, os.Remove(filepath.Join(a.root, "big")))
	moved, err := publish()
	require.NoError(t, err)
	require.Equal(t, "did\n", a.read("log"))
	require.Equal(t, history.StatusSucceeded, a.now(turn.ID).Status)
	require.Equal(t, []tree.Path{"theirs"}, a.changed(turn.ID))
	require.Empty(t, a.found(moved.Record.ID))
	a.requireSound()
}
