package backup

import (
	"context"
	"io"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

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
	data, err := project.ReadFile(dir, path.Base(name), maxManifest)
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
				with(func(o Options) { _, err := generate(t.Context(), o); require.NoError(t, err) })
				had := w.generations("before the damage")
				w.spoil(at+manifestFile, change)
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
					out, err := o.Prune(t.Context(), project.BackupRetention{}, false)
					require.NoError(t, err)
					require.Empty(t, out.Removed)
					require.Equal(t, place.Damage, out.Held)
					made, err := generate(t.Context(), o)
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
					made, err := generate(t.Context(), o)
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
	w.rewrite(at+markerFile, func(s string) string {
		i := strings.Index(s, `"manifest":"`) + 12
		return s[:i] + "00000000" + s[i+8:]
	})
	require.NoError(t, w.copy().newest(), "the marker is an older one, and the generation's own manifest says the same")
	w.rewrite(at+"current/"+manifestFile, func(string) string { return "{" })
	w.rewrite(at+manifestFile, changed)
	err := w.newest()
	require.ErrorContains(t, err, "tree/manifest.json is damaged: it is not what decree-backup.json says was written there")
	require.Equal(t, project.Integrity, project.KindOf(err))
	damaged := w.read(at + manifestFile)
	require.NoError(t, w.with(func(o Options) error {
		_, err := o.keepBefore(t.Context(), nil, nil)
		require.ErrorContains(t, err, "tree/manifest.json is damaged", "what a restore keeps there would have it pass for sound")
		return nil
	}))
	require.Equal(t, damaged, w.read(at+manifestFile))
	w = newWorld(t)
	w.spoil(at+manifestFile, nil)
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
	w.rewrite("target/tree/"+manifestFile, func(s string) string {
		i := strings.Index(s, `"generations": {`)
		j := i + strings.Index(s[i:], `"packs": [`)
		k := j + strings.IndexByte(s[j+11:], '"') + 12
		pack = s[k : k+64]
		return s[:k] + "00000000" + s[k+8:]
	})
	require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }))
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
	data, err := project.ReadFile(dir, path.Base(name), maxManifest)
	require.NoError(w.t, err)
	return string(data)
}

// TestMarkerAndManifestLost: where both are lost, or cut, at once, the copies say what stands there: to readers at once, to who writes when the marker
// that the refusal gives is made again. No words of an empty target.
func TestMarkerAndManifestLost(t *testing.T) {
	const at = "target/tree/"
	cut := func(s string) string { return s[:len(s)/2] }
	w := newWorld(t)
	had := w.generations("before")
	for name, c := range map[string]struct{ marker, manifest func(string) string }{
		"both lost":                 {nil, nil},
		"marker lost, manifest cut": {nil, cut},
		"marker cut, manifest lost": {cut, nil},
		"both cut":                  {cut, cut},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.copy()
			w.t = t
			w.spoil(at+markerFile, c.marker)
			w.spoil(at+manifestFile, c.manifest)
			w.flushAll()
			require.Equal(t, had, w.generations("read from the copies"))
			make := func() error {
				return w.with(func(o Options) error { _, err := generate(t.Context(), o); return err })
			}
			if c.marker == nil {
				err := make()
				require.ErrorContains(t, err, "/w/target/tree has backups, but no decree-backup.json, which says whose they are")
				_, line, _ := strings.Cut(project.HintOf(err), "with this line in it: ")
				dir, derr := w.m.OpenRoot("/w/target/tree")
				require.NoError(t, derr)
				defer dir.Close()
				require.NoError(t, project.ReplaceFile(dir, markerFile, []byte(line+"\n"), 0o600, true))
			}
			require.NoError(t, make())
			now := w.generations("after another backup")
			require.Len(t, now, len(had)+1)
			for name, key := range had {
				require.Equal(t, key, now[name], name)
			}
		})
	}
}

// TestACopyDoesNotWinWithoutAMarker: of a sound manifest.json and a flipped copy of it, or the other way round, none is taken without a marker that
// says which was written.
func TestACopyDoesNotWinWithoutAMarker(t *testing.T) {
	const at = "target/tree/"
	for _, name := range []string{"current/" + manifestFile, manifestFile} {
		w := newWorld(t)
		w.spoil(at+markerFile, nil)
		require.NoError(t, w.newest(), "both say the same")
		w.rewrite(at+name, func(s string) string { return strings.Replace(s, `"config.yml"`, `"config.yml2"`, 1) })
		err := w.newest()
		require.ErrorContains(t, err, "there is no decree-backup.json that says what was written")
		require.Equal(t, project.Integrity, project.KindOf(err))
	}
}

// brokenReads is a target of which what is read from a name fails, but for the first bytes.
type brokenReads struct {
	target.Target
	at  string
	err error
}

func (b *brokenReads) Open(ctx context.Context, name string, off, n int64) (io.ReadCloser, int64, error) {
	if strings.Contains(name, b.at) && n != 0 {
		return nil, 0, b.err
	}
	return b.Target.Open(ctx, name, off, n)
}

// TestAnOlderCopyIsNotTakenSilently: where manifest.json is damaged, and the newest generation's zip cannot be read just now, that is the error; where it is damaged
// too it is named, and an older generation is restored by its name alone.
func TestAnOlderCopyIsNotTakenSilently(t *testing.T) {
	const at = "target/tree/"
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		_, err := generate(t.Context(), Options{Recorder: o.Recorder, Target: &flat{Target: o.Target}, Where: o.Where, Version: o.Version, Host: o.Host, Now: o.Now, Tell: o.Tell, Progress: o.Progress})
		return err
	}))
	var names []string
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		names = place.Generations()
		return nil
	}))
	newest, older := names[len(names)-1], names[len(names)-2]
	w.spoil(at+manifestFile, func(string) string { return "{" })
	require.NoError(t, w.with(func(o Options) error {
		_, err := One(t.Context(), &brokenReads{&flat{Target: o.Target}, "archives/" + newest, syscall.EIO}, "tree")
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, project.Failed, project.KindOf(err))
		require.Contains(t, project.HintOf(err), "repeat it")
		return nil
	}))
	w.rewrite(at+"archives/"+newest+".zip", func(s string) string { return s[:len(s)/2] })
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), &flat{Target: o.Target}, "tree")
		require.NoError(t, err)
		require.Contains(t, place.Damage, "since there is none that can be read of the newer "+newest)
		_, err = place.Resolve("")
		require.ErrorContains(t, err, "and so is the newest generation there, "+newest)
		require.Equal(t, project.Integrity, project.KindOf(err))
		require.Contains(t, project.HintOf(err), older)
		name, err := place.Resolve(older)
		require.NoError(t, err)
		require.Equal(t, older, name)
		return nil
	}))
}

// TestAReadErrorOfAZipIsNoDamage: a generation whose zip cannot be read just now is not called damaged.
func TestAReadErrorOfAZipIsNoDamage(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		name := place.Generations()[0]
		place.Target = &brokenReads{o.Target, "archives/", syscall.EIO}
		_, err = place.Generation(t.Context(), name)
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, project.Failed, project.KindOf(err))
		return nil
	}))
}

// bucket is a target without directories, as an object store is.
type bucket struct{ target.Target }

func (bucket) String() string { return "s3://keep/all?endpoint=http://host:9000&region=r" }

// TestDisagreedInABucket names the objects of a bucket by their URLs, and no directory that a bucket has not.
func TestDisagreedInABucket(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		p := &Place{Target: o.Target, Name: "tree", Manifest: &Manifest{Timestamp: at}}
		said := p.disagreed()
		require.ErrorContains(t, said, "/w/target/tree/manifest.json: there is no decree-backup.json that says what was written")
		require.ErrorContains(t, said, "/w/target/tree/current/manifest.json says something else of generation 2026-03-01T120000Z")
		p.Target = bucket{o.Target}
		for _, marker := range []*Marker{nil, {Manifest: tree.Sum([]byte("other"))}} {
			p.Marker = marker
			said := p.disagreed()
			text := said.Error() + project.HintOf(said)
			require.Contains(t, text, "s3://keep/all/tree/manifest.json")
			require.Contains(t, text, "manifest.json in s3://keep/all/tree/archives/2026-03-01T120000Z.zip")
			require.NotContains(t, text, "current")
			require.NotContains(t, text, "region=r")
		}
		return nil
	}))
}
