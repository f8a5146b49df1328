package history

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTidyRemovesWhatEarlierVersionsKept(t *testing.T) {
	w := newWorld(t)
	w.checkpoint()
	w.put(w.stored("records.idx"), "dindex1\n")
	require.NoError(t, w.Tidy())
	assert.NoFileExists(t, w.stored("records.idx"))
	assert.FileExists(t, w.stored(logFile))
}

// TestTidyLeavesTheDaemonsDraft: the daemon notes a firing, and a backup what it has written, while another process has the lock.
func TestTidyLeavesTheDaemonsDraft(t *testing.T) {
	w := newWorld(t)
	w.checkpoint()
	for _, name := range []string{"cron.json.new", "backup.json.new", "backup-keys.json.new", "labels.json.new"} {
		w.put(w.stored(name), "{}\n")
	}
	require.NoError(t, w.Tidy())
	for _, name := range []string{"cron.json.new", "backup.json.new", "backup-keys.json.new"} {
		assert.FileExists(t, w.stored(name))
	}
	assert.NoFileExists(t, w.stored("labels.json.new"))
}

func TestTidyProbes(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.TidyProbes(), "there are no layers")
	layers := filepath.Join(w.p.StorePath, "layers")
	require.NoError(t, os.MkdirAll(filepath.Join(layers, "clock-2"), 0o700))
	for _, name := range []string{"clock-1z", "works"} {
		w.put(filepath.Join(layers, name), "")
	}
	require.NoError(t, w.TidyProbes())
	assert.NoFileExists(t, filepath.Join(layers, "clock-1z"))
	assert.FileExists(t, filepath.Join(layers, "works"))
	assert.DirExists(t, filepath.Join(layers, "clock-2"), "a probe is a file")
}
