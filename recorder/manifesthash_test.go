package recorder

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// TestManifestOfTheTrees: a manifest.json that says what the record's trees say is no damage, also where the hash that was recorded of it
// is another's, as of records of earlier versions that a recovery has finished. One that says anything else is damage.
func TestManifestOfTheTrees(t *testing.T) {
	b := newBench(t)
	b.write("a", "one\n")
	b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", "echo two >a"} })
	res, err := b.open().Revert(t.Context(), MoveOptions{Refs: []string{"last"}})
	require.NoError(t, err)
	rec := res.Record
	hash := []byte(rec.ManifestSHA256.String())
	another := []byte(tree.Sum([]byte("another")).String())
	logs, err := filepath.Glob(filepath.Join(b.base, "store", "*", "records.jsonl"))
	require.NoError(t, err)
	plain := filepath.Join(b.root, ".decree/runs", rec.ID)
	for _, name := range append(logs, filepath.Join(plain, "run.json")) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.True(t, bytes.Contains(data, hash), name)
		require.NoError(t, os.WriteFile(name, bytes.ReplaceAll(data, hash, another), 0o600))
	}
	found := func() []Problem {
		v, err := b.open().verifyAll(t.Context())
		require.NoError(t, err)
		return v.found
	}
	require.Empty(t, found())
	require.NoError(t, os.WriteFile(filepath.Join(plain, "manifest.json"), []byte("{}\n"), 0o600))
	require.Len(t, found(), 1)
	require.Equal(t, "manifest.json", found()[0].Path)
}
