//go:build linux || darwin

package recorder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestIsolatedRunAfterAPowerLoss: that an isolated run's command has begun outlives a power loss,
// after which its work is recorded: without that note it would be dropped with its layer. What an
// earlier decree did not flush may be an empty file.
func TestIsolatedRunAfterAPowerLoss(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.run(500, 0, nil)
	before := s.tree()
	var noted []string
	dead := false
	_ = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if !exists(s.mark()) && st.Write && (strings.Contains(st.Path, ".leader") || strings.HasSuffix(st.Path, "/open")) {
			noted = append(noted, st.Op)
		}
		dead = dead || strings.HasSuffix(st.Path, "records.jsonl") && exists(s.mark())
		return disktest.Action{Die: dead}
	}), func(r *Recorder) error { return s.executeIsolated(r, 0, IsolatedOptions{Copy: true}) })
	require.FileExists(t, s.mark())
	require.Equal(t, []string{"FileSync", "Rename", "Sync"}, noted[len(noted)-3:], "the note of its leader is flushed")
	leaders, err := filepath.Glob(filepath.Join(s.base, "store", "*", "open", "*.leader"))
	require.NoError(t, err)
	require.Len(t, leaders, 1)
	require.NoError(t, os.Truncate(leaders[0], 0))
	with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(t.Context(), false) })
	require.Equal(t, before, s.tree())
	require.Len(t, s.waiting(), 1, "its work is a draft")
	s.sound()
}
