package backup

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
)

// TestAnOlderManifestTakesNoGeneration: where an old manifest.json was put back, the next backup lists again what is there of
// the newer generations, and says what is gone.
func TestAnOlderManifestTakesNoGeneration(t *testing.T) {
	w := newWorld(t)
	old := w.read("target/tree/manifest.json")
	for range 2 {
		require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }))
	}
	look := func(w *world) (out []string) {
		require.NoError(t, w.with(func(o Options) error {
			place, err := One(t.Context(), o.Target, "tree")
			out = place.Generations()
			return err
		}))
		return out
	}
	names := look(w)
	require.Len(t, names, 4)
	w.rewrite("target/tree/manifest.json", func(string) string { return old })
	root, err := w.m.OpenRoot("/")
	require.NoError(t, err)
	flush(t, root)

	back := func(told string, gone []string, kept []string) {
		w := w.copy()
		for _, name := range gone {
			dir, err := w.m.OpenRoot(path.Join("/w/target/tree", path.Dir(name)))
			require.NoError(t, err)
			require.NoError(t, disk.RemoveTree(dir, path.Base(name)))
			dir.Close()
		}
		require.NoError(t, w.with(func(o Options) error {
			proof, err := Drill(t.Context(), o, false)
			require.NoError(t, err)
			require.Contains(t, proof.String(), told)
			pruned, err := o.Prune(t.Context(), project.BackupRetention{Last: 1}, false)
			require.NoError(t, err)
			require.Contains(t, pruned.Held, told)
			out, err := Run(t.Context(), o, RunOptions{Prove: true, Ping: "http://127.0.0.1:1"})
			require.NoError(t, err)
			require.True(t, out.Proof.OK, out.Proof.String())
			require.Nil(t, out.Pruned)
			for _, name := range names[2:] {
				if slices.Contains(kept, name) {
					require.Regexp(t, "listed again: [^;]*"+name, out.Older)
				} else {
					require.Regexp(t, "gone: .*"+name, out.Older)
				}
			}
			require.Equal(t, []string{out.Older}, ReadMemory(o.Recorder.Project().Store).Targets[o.Target.String()].Problems)
			return nil
		}))
		all := look(w)
		require.Equal(t, append(slices.Clone(names[:2]), kept...), all[:len(all)-1])
		require.Len(t, w.generations("what is listed"), len(all))
		require.NoError(t, w.with(func(o Options) error {
			out, err := generate(t.Context(), o)
			require.NoError(t, err)
			require.Empty(t, out.Older, "it was said once")
			return nil
		}))
	}
	back("tree/current/manifest.json of generation "+names[3]+" is read in its place", nil, names[2:])
	back("that in tree/archives/"+names[2]+".zip of generation "+names[2]+" is read in its place", []string{"current"}, names[2:3])
	back("somebody has put an old state there", []string{"current", "archives/" + names[2] + ".zip"}, nil)
}

// TestAGenerationOfADamagedManifestIsNamed: a generation that was archived as a flipped manifest.json described it is listed as one that cannot
// be restored, and a drill of the whole names it.
func TestAGenerationOfADamagedManifestIsNamed(t *testing.T) {
	w := newWorld(t)
	w.rewrite("target/tree/current/manifest.json", func(string) string { return "{}" })
	w.rewrite("target/tree/manifest.json", func(s string) string { return strings.Replace(s, `"config.yml"`, `"config.yml2"`, 1) })
	require.NoError(t, w.with(func(o Options) error {
		out, err := generate(t.Context(), o)
		require.NoError(t, err)
		bad := out.Place.Generations()[1]
		proof, err := Drill(t.Context(), o, true)
		require.NoError(t, err)
		require.True(t, proof.OK, proof.String())
		require.Equal(t, []string{bad}, proof.Damaged)
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		list, err := place.List(t.Context(), project.BackupRetention{Last: -1})
		require.NoError(t, err)
		for _, l := range list {
			require.Equal(t, l.Generation != bad, l.Provable, l.Generation)
		}
		_, err = place.Generation(t.Context(), bad)
		require.ErrorContains(t, err, "its zip was made of a damaged manifest.json")
		require.Equal(t, project.Integrity, project.KindOf(err))
		return nil
	}))
}

// TestAManifestOfAZipListsTheOthersAgain: where a person has put the manifest of the newest zip in the place of a manifest.json that
// was damaged, which is what the message says, on a target without current/, nothing older is lost from the list.
func TestAManifestOfAZipListsTheOthersAgain(t *testing.T) {
	w := newWorld(t)
	bucket := func(do func(o Options) error) {
		require.NoError(t, w.with(func(o Options) error {
			o.Target = &flat{Target: o.Target}
			return do(o)
		}))
	}
	make := func(o Options) error { _, err := generate(t.Context(), o); return err }
	for range 2 {
		w.clk = w.clk.Add(time.Hour)
		bucket(make)
	}
	had := w.generations("before")
	require.Len(t, had, 4)
	bucket(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		m, err := place.manifestInZip(t.Context(), place.Manifest.Generation())
		require.NoError(t, err)
		data, err := m.Encode()
		require.NoError(t, err)
		w.rewrite("target/tree/"+manifestFile, func(string) string { return string(data) })
		return nil
	})
	require.Len(t, w.generations("as it was put there"), 1)
	bucket(func(o Options) error {
		made, err := generate(t.Context(), o)
		require.NoError(t, err)
		require.Contains(t, made.Older, "tree/manifest.json is not what decree-backup.json says was written there; found there, and listed again: ")
		return nil
	})
	now := w.generations("after another backup")
	require.Len(t, now, 5)
	for name, key := range had {
		require.Equal(t, key, now[name])
	}
	bucket(func(o Options) error {
		made, err := generate(t.Context(), o)
		require.NoError(t, err)
		require.Empty(t, made.Older)
		return nil
	})
}
