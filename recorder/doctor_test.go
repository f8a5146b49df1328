package recorder

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
)

// damageStore leaves the packs' size and identity, and nothing else of them.
func (b *bench) damageStore() {
	b.t.Helper()
	pack := b.onePack()
	data, err := os.ReadFile(pack)
	require.NoError(b.t, err)
	for i := 40; i < len(data); i++ {
		data[i] ^= 0x55
	}
	require.NoError(b.t, os.WriteFile(pack, data, 0o600))
}

func (b *bench) onePack() string {
	b.t.Helper()
	packs, err := filepath.Glob(filepath.Join(b.base, "store", "*", "packs", "*.pack"))
	require.NoError(b.t, err)
	require.Len(b.t, packs, 1)
	return packs[0]
}

// TestACheckUpReadsLittle: contents that are more than a check-up reads are not read, and that is said; what is damaged
// in a small store is found.
func TestACheckUpReadsLittle(t *testing.T) {
	b := newBench(t)
	b.write("a", "text\n")
	b.checkpoint(CheckpointOptions{})
	b.damageStore()
	r := b.open()
	of := func(most int64) Check {
		d := &doctor{r: r.Reader, most: most}
		require.NoError(t, d.packs(t.Context(), false))
		return d.checks[0]
	}
	require.Equal(t, Error, of(0).Level)
	require.Equal(t, Error, of(momentsReading).Level)
	require.Equal(t, Info, of(1).Level)
	require.Contains(t, of(1).Text, "which were not read")
}

// TestACheckUpHashesRecentFiles: the files of old records are not hashed, and that is said.
func TestACheckUpHashesRecentFiles(t *testing.T) {
	b := newBench(t)
	var first string
	for i := range 3 {
		res := b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", fmt.Sprintf("echo %d >a", i)} })
		if i == 0 {
			first = res.Record.ID
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/runs", first, "changes.diff"), []byte("another\n"), 0o600))
	r := b.open()
	of := func(recent int) (texts []string) {
		d := &doctor{r: r.Reader, recent: recent}
		require.NoError(t, d.files(t.Context(), false))
		for _, c := range d.checks {
			texts = append(texts, string(c.Level)+" "+c.Text)
		}
		return texts
	}
	for _, recent := range []int{0, 3} {
		found := of(recent)
		require.Len(t, found, 2)
		require.Contains(t, found[0], "error changes.diff of "+first)
	}
	found := of(2)
	require.Len(t, found, 2)
	require.Contains(t, found[0], "match their hashes")
	require.Equal(t, "info those of the 1 oldest records were not read", found[1])
}

// TestDisplacedBytesAreReallyStored: the store has lost what its index still names,
// and the tree holds the last copy of what a revert displaces.
func TestDisplacedBytesAreReallyStored(t *testing.T) {
	b := newBench(t)
	rnd := rand.NewChaCha8([32]byte{1})
	work, command := map[string][]byte{"text": nil, "more": nil, "binary": {0}}, ""
	dir := t.TempDir()
	for name, size := range map[string]int{"text": 600_000, "more": maxCached + 5000, "binary": 2 << 20} {
		data := make([]byte, size)
		_, _ = rnd.Read(data)
		work[name] = append(work[name], data...)
		if name != "binary" {
			work[name] = bytes.ReplaceAll(data, []byte{0}, []byte{1})
			b.write(name, "first\n")
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), work[name], 0o600))
		command += fmt.Sprintf("cat %s/%s >%s\n", dir, name, name)
	}
	first := snapshot(t, b.root)
	b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", command} })
	second := snapshot(t, b.root)
	pack := b.onePack()
	data, err := os.ReadFile(pack)
	require.NoError(t, err)
	for name, bytesOf := range work {
		at := bytes.Index(data, bytesOf[500_000:][:100])
		require.Positive(t, at, "%s is not stored as it is", name)
		data[at] ^= 1
	}
	require.NoError(t, os.WriteFile(pack, data, 0o600))
	b.revert("last")
	require.Equal(t, first, snapshot(t, b.root))
	b.revert("last")
	require.Equal(t, second, snapshot(t, b.root))
	problems := with(b, func(r *Recorder) ([]Problem, error) { return r.Verify(context.Background(), VerifyOptions{All: true}) })
	require.Empty(t, problems)
}

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
	b.damageStore()
	r := b.open()
	for _, rec := range records {
		require.Error(t, r.History().VerifyTree(rec.Before))
	}
	require.NoError(t, r.Close())

	with(b, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
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

// TestRepairOfLabelsThatARecoverySets: an interrupted run sets a label, and the labels are damaged. A repair moves them
// aside before it recovers, which needs them.
func TestRepairOfLabelsThatARecoverySets(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write("a", "old\n")
	s.run(0, 0, shell("echo first >g"))
	packs := filepath.Dir(s.onePack())
	labels := filepath.Join(filepath.Dir(packs), history.LabelsFile)
	err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		return disktest.Action{Die: st.Write && s.read("a") == "new\n"}
	}), func(r *Recorder) error {
		return s.execute(r, 0, func(o *RunOptions) { shell("echo new >a")(o); o.Label = "done" })
	})
	require.Error(t, err)
	require.NoError(t, os.WriteFile(labels, nil, 0o600))

	err = s.try(disk.OS, func(r *Recorder) error {
		_, err := r.Recover(t.Context(), false)
		return err
	})
	require.ErrorContains(t, err, history.LabelsFile)
	checks := with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(t.Context()) })
	require.True(t, slices.ContainsFunc(checks, func(c Check) bool { return c.Name == "labels" && c.Level == Error && c.Fixed }))
	all := with(s.bench, func(r *Recorder) (map[string]string, error) { return r.history.Labels() })
	require.Contains(t, all, "done")
}
