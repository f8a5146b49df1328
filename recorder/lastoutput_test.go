package recorder

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// TestChangedAfterTheLastOutput: a run that has said nothing has no last output, after which
// somebody else may have changed a file.
func TestChangedAfterTheLastOutput(t *testing.T) {
	b := newBench(t)
	id := b.run(1, 0, nil).Record.ID
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "late"), nil, 0o644))
	for said, want := range map[string][]tree.Path{"": nil, "said\n": {"late"}} {
		log := filepath.Join(b.root, ".decree/runs", id, logFile)
		require.NoError(t, os.WriteFile(log, []byte(said), 0o600))
		require.NoError(t, os.Chtimes(log, time.Unix(1, 0), time.Unix(1, 0)))
		require.Equal(t, want, with(b, func(r *Recorder) ([]tree.Path, error) {
			return r.changedAfter(id, changesInMemory([]tree.Change{{Path: "late", New: &tree.Entry{}}}))
		}))
	}
}
