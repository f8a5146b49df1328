//go:build unix

package cmd

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
)

// TestABackupAfterADeathInASwapBySSH: by ssh a manifest.json gets its name by a link and a rename. A death between the two
// leaves neither a refusal nor work by hand: whatever command comes next, it finds the generation acknowledged.
func TestABackupAfterADeathInASwapBySSH(t *testing.T) {
	for _, next := range [][]string{{"backup"}, {"backup", "list"}, {"backup", "drill", "--whole"}, {"backup", "prune"}, {"backup", "restore", "--yes"}} {
		t.Run(fmt.Sprint(next), func(t *testing.T) {
			b := newBattered(t, rand.New(rand.NewPCG(1, 11)))
			b.begin(b.ssh(), false)
			stores, err := filepath.Glob(filepath.Join(b.base, "data/decree/*/backup.json"))
			require.NoError(t, err)
			require.Len(t, stores, 1)
			dir := filepath.Join(b.base, "target/tree")
			manifest, marker := filepath.Join(dir, "manifest.json"), filepath.Join(dir, "decree-backup.json")
			was := map[string][]byte{manifest: nil, marker: nil, stores[0]: nil}
			for name := range was {
				was[name], err = os.ReadFile(name)
				require.NoError(t, err)
			}
			b.backup()
			was[stores[0]] = withWritten(t, was[stores[0]], stores[0])
			successor := filepath.Join(dir, fmt.Sprintf("%smanifest.json-after-%x", target.Unfinished, sha256.Sum256(was[manifest])))
			require.NoError(t, os.Rename(manifest, successor))
			long := time.Now().Add(-time.Hour) // a younger one is waited for
			require.NoError(t, os.Chtimes(successor, long, long))
			for name, data := range was {
				require.NoError(t, os.WriteFile(name, data, 0o600))
			}
			code, out := b.call(b.root, 0, next...)
			require.Zero(t, code, "%s", b.log)
			b.acknowledged(out)
			require.NoFileExists(t, successor)
			require.NotContains(t, out, "another copy of this project")
			b.backup()
			b.restores("current")
		})
	}
}

// withWritten is a backup.json as it is while a manifest.json is being written: it has the hash of that already.
func withWritten(t *testing.T, was []byte, now string) []byte {
	t.Helper()
	type memory struct {
		Targets map[string]map[string]any
	}
	var before, after memory
	data, err := os.ReadFile(now)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(was, &before))
	require.NoError(t, json.Unmarshal(data, &after))
	for name, r := range before.Targets {
		require.NotEqual(t, r["written"], after.Targets[name]["written"])
		r["written"] = after.Targets[name]["written"]
	}
	data, err = json.Marshal(map[string]any{"version": 1, "targets": before.Targets})
	require.NoError(t, err)
	return data
}
