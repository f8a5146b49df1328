//go:build unix

package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/plan"
	"decree/project"
	"decree/runner"
)

// TestPerhapsByHand: what was changed after the last output of a run whose decree died is taken back by the command that finds the
// run once a person has confirmed it, who has not read yet that it counts as the run's; where nobody is there, it is named. A later command takes it back as it is recorded.
func TestPerhapsByHand(t *testing.T) {
	for name, back := range map[string]func(r *Recorder, confirm func(*plan.Plan, []string) (bool, error)) (*MoveResult, error){
		"undo": func(r *Recorder, confirm func(*plan.Plan, []string) (bool, error)) (*MoveResult, error) {
			return r.Undo(context.Background(), UndoOptions{Confirm: confirm})
		},
		"revert": func(r *Recorder, confirm func(*plan.Plan, []string) (bool, error)) (*MoveResult, error) {
			return r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}, Confirm: confirm})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			require.NoError(t, os.MkdirAll(filepath.Join(b.root, "theirs"), 0o755))
			b.checkpoint(CheckpointOptions{})
			b.diesInPlace(runner.Leader{PID: 1 << 30, PGID: 1 << 30})
			logs, err := filepath.Glob(filepath.Join(b.root, ".decree/runs/*/routine.log"))
			require.NoError(t, err)
			require.Len(t, logs, 1)
			require.NoError(t, os.WriteFile(logs[0], []byte("said\n"), 0o600))
			before := time.Now().Add(-time.Hour)
			require.NoError(t, os.Chtimes(logs[0], before, before))
			require.NoError(t, os.Chtimes(filepath.Join(b.root, "theirs/mine"), before, before))
			b.write("work", "by hand\n")

			r := b.open()
			asked := ""
			_, err = back(r, func(p *plan.Plan, _ []string) (bool, error) {
				asked = strings.Join(p.Warnings, "; ")
				return false, nil
			})
			require.ErrorContains(t, err, "not confirmed")
			require.Equal(t, project.Refused, project.KindOf(err))
			require.Contains(t, asked, "was changed after its last output, perhaps by hand, goes with it: work")
			require.NoError(t, r.Close())
			require.Equal(t, "by hand\n", b.read("work"))
			require.Equal(t, "mine\n", b.read("theirs/mine"))

			require.Empty(t, with(b, func(r *Recorder) (*MoveResult, error) { return back(r, nil) }).Notes)
			require.NoFileExists(t, filepath.Join(b.root, "work"))
			require.NoFileExists(t, filepath.Join(b.root, "theirs/mine"))
			b.requireSound()
		})
	}
}
