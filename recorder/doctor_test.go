package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
)

// TestRepairTakesTreesFromPlainManifests: where all that is stored is damaged, the
// plain manifest.json of records still says what their trees were, and the tree has
// the bytes.
func TestRepairTakesTreesFromPlainManifests(t *testing.T) {
	b := newBench(t)
	var records []*history.Record
	for i, name := range []string{"a", "b", "d/c"} {
		b.write(name, noise(i, 3000))
		records = append(records, b.checkpoint(CheckpointOptions{}))
	}
	packs, err := filepath.Glob(filepath.Join(b.base, "store", "*", "packs", "*.pack"))
	require.NoError(t, err)
	require.NotEmpty(t, packs)
	for _, p := range packs {
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		for i := 40; i < len(data); i++ {
			data[i] ^= 0x55
		}
		require.NoError(t, os.WriteFile(p, data, 0o600))
	}
	r := b.open()
	for _, rec := range records {
		require.Error(t, r.History().VerifyTree(rec.Before))
	}
	require.NoError(t, r.Close())

	with(b, func(r *Recorder) ([]Check, error) { return r.Doctor(context.Background(), true) })
	r = b.open()
	for _, rec := range records {
		require.NoError(t, r.History().VerifyTree(rec.Before))
	}
	require.NoError(t, r.Close())
	b.checkpoint(CheckpointOptions{}) // stores again what the tree has
	problems := with(b, func(r *Recorder) ([]Problem, error) { return r.Verify(context.Background(), VerifyOptions{All: true}) })
	require.Empty(t, problems)
	with(b, func(r *Recorder) (*Collected, error) { return r.Gc(context.Background()) })
}
