//go:build linux

package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/runner"
	"decree/tree"
)

// TestEditedSinceTheSystemWasStartedAnew: what a person did after the machine had gone down during a run, and before
// decree was called again, is no work of that run, and is not taken back with it.
func TestEditedSinceTheSystemWasStartedAnew(t *testing.T) {
	for name, since := range map[string]bool{"another start": true, "the same start": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			long := time.Unix(1e9, 0)
			b.clk = long
			for _, name := range []string{"theirs/mine", "edited", "before"} {
				b.write(name, "old\n")
			}
			b.checkpoint(CheckpointOptions{})
			b.write("before", "edited before the run\n")
			leader := runner.Leader{PID: 1 << 30, PGID: 1 << 30, BootID: runner.BootID()}
			if since {
				leader.BootID = "another"
			}
			b.diesInPlace(leader)
			logs, err := filepath.Glob(filepath.Join(b.root, ".decree/runs/*", logFile))
			require.NoError(t, err)
			for _, at := range append(logs, filepath.Join(b.root, "theirs/mine")) {
				require.NoError(t, os.Chtimes(at, long, long))
			}
			b.write("edited", "by hand\n")
			b.write("made/by", "hand\n")

			found := with(b, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
			id := found[0].Record.ID
			outside := b.outsidePaths(b.outsider(), id)
			b.revert(id)
			require.Equal(t, "old\n", b.read("theirs/mine"))
			if !since { // nobody can tell
				require.Equal(t, []tree.Path{"before"}, outside)
				require.Equal(t, "old\n", b.read("edited"))
				return
			}
			require.Contains(t, found[0].What, "changed since the system was started anew, and so not by the run, in its outside.diff: edited, made, made/by")
			require.Equal(t, []tree.Path{"before", "edited", "made", "made/by"}, outside)
			require.Equal(t, "by hand\n", b.read("edited"))
			require.Equal(t, "hand\n", b.read("made/by"))
			require.Equal(t, "edited before the run\n", b.read("before"))
			b.requireSound()
		})
	}
}
