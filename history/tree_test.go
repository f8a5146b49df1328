package history

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"decree/manifest"
	"decree/project"
	"decree/tree"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// model is a tree as a map, which a test changes at random.
type model map[tree.Path]tree.Entry

func (m model) items() []tree.Item {
	out := []tree.Item{}
	for _, dirs := range []bool{false, true} {
		for _, path := range slices.Sorted(maps.Keys(m)) {
			if (m[path].Type == tree.Dir) == dirs {
				out = append(out, tree.Item{Path: path, Entry: m[path]})
			}
		}
	}
	return out
}

// change edits, adds, deletes and turns the kind of some paths.
func (m model) change(rng *rand.Rand, n int) {
	for range n {
		path := tree.Path(fmt.Sprintf("p%03d", rng.IntN(300)))
		delete(m, path)
		switch rng.IntN(5) {
		case 0: // gone
		case 1:
			m[path] = tree.Entry{Type: tree.Dir, Mode: 0o700 + uint32(rng.IntN(64))}
		case 2:
			m[path] = manifest.Link(fmt.Sprint("to", rng.IntN(9)))
		default:
			m[path] = file(fmt.Sprint(rng.IntN(1000)))
		}
	}
}

// keep makes the objects of a tree.
func (w *world) keep(items ...tree.Item) tree.Hash {
	w.t.Helper()
	changes := make([]tree.Change, len(items))
	for i := range items {
		changes[i] = tree.Change{Path: items[i].Path, New: &items[i].Entry}
	}
	id, err := w.Apply(w.shelf, tree.Hash{}, changes)
	require.NoError(w.t, err)
	return id
}

// saveTrees keeps n trees, each a change of the one before, each of a record.
func (w *world) saveTrees(n int) (models []model, records []*Record) {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	m := model{}
	m.change(rng, 600)
	for range n {
		r := w.draft()
		r.Before = w.keep(m.items()...)
		require.NoError(w.t, w.write(&line{key: recordKey(r), record: r}))
		models, records = append(models, maps.Clone(m)), append(records, r)
		m.change(rng, 1+rng.IntN(4))
	}
	return models, records
}

func TestTreesOfRecords(t *testing.T) {
	w := newWorld(t)
	models, records := w.saveTrees(40)
	w.reopen()
	for i, r := range records {
		entries, err := w.Tree(r.Before)
		require.NoError(t, err)
		for range 2 {
			got, err := manifest.Collect(entries)
			require.NoError(t, err)
			require.Equal(t, models[i].items(), got, "tree %d", i)
		}
		require.NoError(t, w.VerifyTree(r.Before))
		var b, want bytes.Buffer
		require.NoError(t, w.WriteManifest(r, &b))
		require.NoError(t, manifest.Encode(&want, manifest.Of(models[i].items()...), false))
		require.Equal(t, want.String(), b.String())
	}
	for n := range 300 {
		path := tree.Path(fmt.Sprintf("p%03d", n))
		got, err := w.FindEntry(records[7].Before, path)
		require.NoError(t, err)
		var want *tree.Entry
		if e, ok := models[7][path]; ok {
			want = &e
		}
		require.Equal(t, want, got, path)
	}
}

// A revert's manifest.json has the paths that it touched, its trees are whole.
func TestManifestOfARevert(t *testing.T) {
	w := newWorld(t)
	id := w.keep(tree.Item{Path: "a", Entry: file("x")}, tree.Item{Path: "b", Entry: file("y")})
	changes := []tree.Change{{Path: "a", Old: new(file("now")), New: new(file("then"))}, {Path: "b/c", Old: new(file("z"))}}
	r := w.draft()
	r.Reason = Revert
	var err error
	r.Before, err = w.Overlay(w.shelf, id, changes)
	require.NoError(t, err, "b is a directory by now")
	r.After, err = w.Apply(w.shelf, r.Before, changes)
	require.NoError(t, err)
	got, err := w.Compare(r.Before, r.After)
	require.NoError(t, err)
	require.Equal(t, changes, got)
	var b bytes.Buffer
	require.NoError(t, w.WriteManifest(r, &b))
	assert.Contains(t, b.String(), `"partial": true`)
	assert.Equal(t, 2, strings.Count(b.String(), "sha256"))
}

// What a move makes in a directory is in one before the move, where the newest record knows
// something else there; what the move itself replaces by a directory is what it was.
func TestOverlayOfWhatIsMade(t *testing.T) {
	w := newWorld(t)
	id := w.keep(tree.Item{Path: "a", Entry: file("x")}, tree.Item{Path: "b", Entry: tree.Entry{Type: tree.Symlink, Mode: 0o777, Target: "a"}},
		tree.Item{Path: "c", Entry: file("z")}, tree.Item{Path: "d", Entry: file("z")})
	dir := tree.Entry{Type: tree.Dir, Mode: 0o755}
	for _, changes := range [][]tree.Change{
		{{Path: "a/p/q", New: new(file("made"))}},
		{{Path: "b/p", New: new(file("made"))}},
		{{Path: "c", Old: new(file("z")), New: &dir}, {Path: "c/p", New: new(file("made"))}},
		{{Path: "d", New: &dir}, {Path: "d/p", New: new(file("made"))}},
	} {
		before, err := w.Overlay(w.shelf, id, changes)
		require.NoError(t, err)
		after, err := w.Apply(w.shelf, before, changes)
		require.NoError(t, err, changes[0].Path)
		got, err := w.Compare(before, after)
		require.NoError(t, err)
		require.Subset(t, got, changes)
	}
}

func TestDamagedTrees(t *testing.T) {
	w := newWorld(t)
	id := w.keep(tree.Item{Path: "d/e/f", Entry: file("x")}, tree.Item{Path: "g", Entry: file("x")})
	_, err := w.Tree(tree.Sum([]byte("unknown")))
	assert.Equal(t, project.Integrity, project.KindOf(err))
	require.ErrorIs(t, err, ErrNotKept)
	n, err := w.find(id, "d/e")
	require.NoError(t, err)
	for name, b := range map[string][]byte{"empty": {}, "of another kind": []byte("dtree1"), "cut": w.shelf.objects[n.SHA256][:20]} {
		w.shelf.objects[n.SHA256] = b
		err := w.VerifyTree(id)
		assert.Equal(t, project.Integrity, project.KindOf(err), name)
		require.ErrorContains(t, err, "directory d/e", name)
		var dirs []string
		var paths []string
		c := &closure{h: w.History, enter: Once(), each: func(p *Part) error {
			if p.Err != nil {
				dirs = append(dirs, string(p.Path))
			} else if p.Kind == InTree {
				paths = append(paths, string(p.Path))
			}
			return nil
		}}
		require.NoError(t, c.tree(id))
		assert.Equal(t, []string{"d/e"}, dirs)
		assert.ElementsMatch(t, []string{"d", "d/e", "g"}, paths)
	}
}

// needed are the objects of the closures.
func (w *world) needed(keep func(id string) bool) (map[tree.Hash]bool, error) {
	objects := map[tree.Hash]bool{}
	err := w.Closures(keep, Once(), func(p *Part) error {
		if !p.Object.IsZero() {
			objects[p.Object] = true
		}
		return p.Err
	})
	return objects, err
}

// What the records that stay need is what their closures say, and it is enough.
func TestClosuresAreEnough(t *testing.T) {
	w := newWorld(t)
	models, records := w.saveTrees(40)
	for i := range 20 {
		require.NoError(t, w.Remove([]string{records[i].ID}))
	}
	w.reopen()
	assert.Len(t, w.list().Records, 20)
	require.NoError(t, w.Settle())
	gone, live, err := w.Removed()
	require.NoError(t, err)
	assert.Equal(t, []int{0, 20}, []int{gone, live})
	needed, err := w.needed(nil)
	require.NoError(t, err)
	before := len(w.shelf.objects)
	maps.DeleteFunc(w.shelf.objects, func(h tree.Hash, _ []byte) bool { return !needed[h] })
	assert.Less(t, len(w.shelf.objects), before)
	w.reopen()
	for i := 20; i < 40; i++ {
		require.NoError(t, w.VerifyTree(records[i].Before))
		for _, e := range models[i] {
			require.True(t, e.Type != tree.Regular || needed[e.SHA256])
		}
	}
	require.Error(t, w.VerifyTree(records[0].Before), "what was removed is gone")
	among, err := w.needed(func(string) bool { return true })
	require.NoError(t, err)
	assert.Equal(t, needed, among)
	require.NoError(t, w.Settle(), "again: nothing to do")
}

func TestThinManifests(t *testing.T) {
	w := newWorld(t)
	id := w.keep(tree.Item{Path: "a", Entry: file("x")})
	var records []*Record
	for i := range 25 {
		r := w.draft()
		r.Before = id
		if i == 2 {
			r.Before = tree.Sum([]byte("not in the store"))
		}
		content := beginnings[manifestJSON] + "1}\n"
		if i == 3 {
			content = "somebody's"
		}
		require.NoError(t, w.End(Closing{Record: r, Build: []RunFile{{Name: manifestJSON, Write: Bytes([]byte(content))}}}))
		records = append(records, r)
	}
	require.NoError(t, w.ThinRuns(false))
	for i, r := range records {
		path := w.path("runs", r.ID, manifestJSON)
		if i < 5 && i != 2 && i != 3 {
			assert.NoFileExists(t, path)
		} else {
			assert.FileExists(t, path)
		}
	}
	assert.Empty(t, w.list().Warnings())
}

// Large diffs and logs go with the manifests, where the store has them whole; what
// becomes one of the newest again gets them back.
func TestThinLargeFiles(t *testing.T) {
	w := newWorld(t)
	large, small := strings.Repeat("line\n", plainSize/5+1), strings.Repeat("line\n", plainSize/5)
	names := map[string]string{
		ChangesFile: large, OutsideFile: large, "routine.log": small, "attempts/1/routine.log": large, "notes.md": large,
		"attempts/1/changes.diff": large + "edited", "attempts/2/changes.diff": large + "lost",
	}
	sums := map[string]tree.Hash{}
	for name, text := range names {
		sum, err := w.shelf.PutBytes([]byte(text))
		require.NoError(t, err)
		sums[name] = sum
	}
	var ids []string
	for range 22 {
		r := w.draft()
		var files []RunFile
		for name, text := range names {
			files = append(files, RunFile{Name: name, Write: Bytes([]byte(text))})
		}
		require.NoError(t, w.End(Closing{Record: r, Files: sums, Build: files}))
		ids = append(ids, r.ID)
	}
	delete(w.shelf.objects, sums["attempts/2/changes.diff"])
	edited := w.path("runs", ids[0], "attempts/1/changes.diff")
	require.NoError(t, os.WriteFile(edited, bytes.Repeat([]byte("?"), len(names["attempts/1/changes.diff"])), 0o600))

	require.NoError(t, w.ThinRuns(false))
	for i, id := range ids[:3] {
		for name := range names {
			gone := i < 2 && slices.Contains([]string{ChangesFile, OutsideFile, "attempts/1/routine.log", "attempts/1/changes.diff"}, name) && w.path("runs", id, name) != edited
			_, err := os.Stat(w.path("runs", id, name))
			assert.Equal(t, gone, errors.Is(err, fs.ErrNotExist), "%d %s", i, name)
			f, err := w.OpenFile(id, name)
			require.NoError(t, err, name)
			f.Close()
		}
	}
	require.NoError(t, w.UnthinRuns(ids[:1]))
	for name := range names {
		assert.FileExists(t, w.path("runs", ids[0], name))
	}
	assert.NoFileExists(t, w.path("runs", ids[1], ChangesFile))
}
