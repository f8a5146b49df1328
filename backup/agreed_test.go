package backup

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk"
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

// TestAManifestThatIsNotWhatWasWritten: where manifest.json is missing, malformed or changed, the generation's own copy of it says what
// stands there, to readers too that know nothing of the project; a proof fails, nothing is removed, and the next backup writes it anew.
func TestAManifestThatIsNotWhatWasWritten(t *testing.T) {
	const at = "target/tree/"
	replaced := func(old, now string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, now, 1) }
	}
	shelf := func(t target.Target) target.Target { return t }
	w := newWorld(t)
	before := w.generations("before")
	require.Len(t, before, 2)
	for name, change := range map[string]func(string) string{
		"the name of a file": replaced(`"config.yml"`, `"config.yml2"`),
		"of a message":       replaced(`"inbox/m1.md"`, `"inbox/m9.md"`),
		"the root":           replaced(`/w/tree"`, `/w/trea"`),
		"a mode":             replaced(`"mode": "644"`, `"mode": "666"`),
		"a time":             replaced(`"timestamp": "2026`, `"timestamp": "2025`),
		"no JSON":            func(string) string { return "{" },
		"missing":            nil,
	} {
		for kind, open := range map[string]func(target.Target) target.Target{"a shelf": shelf, "no current": func(t target.Target) target.Target { return &flat{Target: t} }} {
			if kind == "no current" && name != "missing" && name != "a mode" {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				w := w.copy()
				w.t = t
				with := func(do func(o Options)) {
					require.NoError(t, w.with(func(o Options) error {
						o.Target = open(o.Target)
						do(o)
						return nil
					}))
				}
				with(func(o Options) { _, err := Make(t.Context(), o); require.NoError(t, err) })
				had := w.generations("before the damage")
				w.spoil(at+ManifestFile, change)
				w.flushAll()
				is := w.generations("read from the copy")
				require.Equal(t, had, is, "no generation is lost for readers")
				with(func(o Options) {
					place, err := One(t.Context(), o.Target, "tree")
					require.NoError(t, err)
					require.Contains(t, place.Damage, "tree is damaged: manifest.json: ")
					st, err := place.Status(t.Context(), &o.Recorder.Project().Site, o.Now())
					require.NoError(t, err)
					require.Contains(t, strings.Join(st.Problems, "\n"), "is read in its place; the next backup writes it anew")
					proof, err := Drill(t.Context(), o, false)
					require.NoError(t, err)
					require.False(t, proof.OK)
					out, err := o.Rotate(t.Context(), project.BackupRetention{}, false)
					require.NoError(t, err)
					require.Empty(t, out.Removed)
					require.Equal(t, place.Damage, out.Held)
					made, err := Make(t.Context(), o)
					require.NoError(t, err)
					require.Contains(t, made.Older, place.Damage)
					require.NotContains(t, made.Older, "gone")
				})
				now := w.generations("after another backup")
				require.Len(t, now, len(had)+1)
				for name, key := range had {
					require.Equal(t, key, now[name], name)
				}
				with(func(o Options) {
					made, err := Make(t.Context(), o)
					require.NoError(t, err)
					require.Empty(t, made.Older, "it was said once")
					proof, err := Drill(t.Context(), o, true)
					require.NoError(t, err)
					require.True(t, proof.OK, proof.String())
					require.Empty(t, proof.Damaged)
				})
			})
		}
	}
}

// spoil rewrites a file, or removes it where change is nil.
func (w *world) spoil(name string, change func(string) string) {
	if change != nil {
		w.rewrite(name, change)
		return
	}
	dir, err := w.m.OpenRoot(path.Join("/w", path.Dir(name)))
	require.NoError(w.t, err)
	defer dir.Close()
	require.NoError(w.t, dir.Remove(path.Base(name)))
}

func (w *world) flushAll() {
	root, err := w.m.OpenRoot("/")
	require.NoError(w.t, err)
	flush(w.t, root)
	root.Close()
}

// TestAManifestWithoutACopyIsRefused: where nothing else says the same, what manifest.json says of the newest generation does not count.
func TestAManifestWithoutACopyIsRefused(t *testing.T) {
	const at = "target/tree/"
	changed := func(s string) string { return strings.Replace(s, `"config.yml"`, `"config.yml2"`, 1) }
	w := newWorld(t)
	w.rewrite(at+MarkerFile, func(s string) string {
		i := strings.Index(s, `"manifest":"`) + 12
		return s[:i] + "00000000" + s[i+8:]
	})
	require.NoError(t, w.copy().newest(), "the marker is an older one, and the generation's own manifest says the same")
	w.rewrite(at+"current/"+ManifestFile, func(string) string { return "{" })
	w.rewrite(at+ManifestFile, changed)
	err := w.newest()
	require.ErrorContains(t, err, "tree/manifest.json is damaged: it is not what decree-backup.json says was written there")
	require.Equal(t, project.Integrity, project.KindOf(err))
	w = newWorld(t)
	w.spoil(at+ManifestFile, nil)
	for _, dir := range []string{"current", "archives"} {
		root, err := w.m.OpenRoot("/w/target/tree")
		require.NoError(t, err)
		require.NoError(t, disk.RemoveTree(root, dir))
		root.Close()
	}
	err = w.newest()
	require.ErrorContains(t, err, "/w/target/tree: manifest.json: it is missing")
	require.Equal(t, project.Integrity, project.KindOf(err))
	require.Contains(t, project.HintOf(err), "no generation there has a copy of it that can be read")
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
