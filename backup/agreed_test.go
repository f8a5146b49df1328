package backup

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/project"
	"decree/tree"
)

// rewrite puts what change makes of it into a file's place, as a disk that flips bits would.
func (w *world) rewrite(name string, change func(string) string) {
	dir, err := w.m.OpenRoot(path.Join("/w", path.Dir(name)))
	require.NoError(w.t, err)
	defer dir.Close()
	data, err := project.ReadFile(dir, path.Base(name), MaxManifest)
	require.NoError(w.t, err)
	now := change(string(data))
	require.NotEqual(w.t, string(data), now, name)
	require.NoError(w.t, dir.Remove(path.Base(name))) // current/ may have a hard link of it
	require.NoError(w.t, project.ReplaceFile(dir, path.Base(name), []byte(now), 0o600, true))
}

// newest opens the newest generation as a machine does that knows nothing of it.
func (w *world) newest() (err error) {
	return w.with(func(o Options) error {
		place, err := One(context.Background(), o.Target, "tree")
		if err == nil {
			_, err = place.Generation(context.Background(), place.Manifest.Generation())
		}
		return err
	})
}

// TestAFlippedManifestIsRefused: what manifest.json says counts only where the marker, or else the
// generation's own manifest, says that this was written there.
func TestAFlippedManifestIsRefused(t *testing.T) {
	const at = "target/tree/"
	replaced := func(old, now string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, now, 1) }
	}
	otherHash := func(s string) string {
		i := strings.Index(s, `"manifest":"`) + 12
		return s[:i] + "00000000" + s[i+8:]
	}
	w := newWorld(t)
	require.NoError(t, w.copy().newest())
	for name, change := range map[string]func(string) string{
		"the name of a file": replaced(`"config.yml"`, `"config.yml2"`),
		"of a message":       replaced(`"inbox/m1.md"`, `"inbox/m9.md"`),
		"the root":           replaced(`/w/tree"`, `/w/trea"`),
		"a mode":             replaced(`"mode": "644"`, `"mode": "666"`),
	} {
		t.Run(name, func(t *testing.T) {
			w := w.copy()
			w.t = t
			w.rewrite(at+ManifestFile, change)
			err := w.newest()
			require.ErrorContains(t, err, "tree/manifest.json is damaged: it is not what decree-backup.json says was written there")
			require.Equal(t, project.Integrity, project.KindOf(err))
			require.Contains(t, project.HintOf(err), "'decree backup' in the project itself writes it anew")
			require.NoError(t, w.with(func(o Options) error {
				proof, err := Drill(t.Context(), o, false)
				require.NoError(t, err)
				require.False(t, proof.OK)
				out, err := o.Rotate(t.Context(), project.BackupRetention{}, false)
				require.NoError(t, err)
				require.Empty(t, out.Removed)
				require.Equal(t, "decree-backup.json does not say that manifest.json is what was written there; the next backup mends that", out.Held)
				_, err = Make(t.Context(), o)
				return err
			}))
			require.NoError(t, w.newest(), "another backup mends it")
		})
	}
	// The marker is lost, or an older one: the generation's own manifest has the same.
	w.rewrite(at+MarkerFile, otherHash)
	require.NoError(t, w.copy().newest())
	w.rewrite(at+ManifestFile, replaced(`"config.yml"`, `"config.yml2"`))
	require.Error(t, w.copy().newest())
}

// TestAFlippedListOfPacksLosesNone: a pack that an older generation needs is not condemned because manifest.json does not
// name it any more.
func TestAFlippedListOfPacksLosesNone(t *testing.T) {
	w := newWorld(t)
	pack := ""
	w.rewrite("target/tree/"+ManifestFile, func(s string) string {
		i := strings.Index(s, `"generations": {`)
		j := i + strings.Index(s[i:], `"packs": [`)
		k := j + strings.IndexByte(s[j+11:], '"') + 12
		pack = s[k : k+64]
		return s[:k] + "00000000" + s[k+8:]
	})
	require.NoError(t, w.with(func(o Options) error { _, err := Make(t.Context(), o); return err }))
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		h, err := tree.ParseHash(pack)
		require.NoError(t, err)
		require.Contains(t, place.Manifest.Others[place.Generations()[0]].Packs, h)
		return nil
	}))
}

// read is a file's text.
func (w *world) read(name string) string {
	dir, err := w.m.OpenRoot(path.Join("/w", path.Dir(name)))
	require.NoError(w.t, err)
	defer dir.Close()
	data, err := project.ReadFile(dir, path.Base(name), MaxManifest)
	require.NoError(w.t, err)
	return string(data)
}
