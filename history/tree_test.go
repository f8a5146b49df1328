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
	"decree/patch"
	"decree/project"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// model is a tree as a map, which a test changes at random.
type model map[place]patch.Entry

func (m model) items() []manifest.Item {
	out := []manifest.Item{}
	for p, e := range m {
		out = append(out, manifest.Item{Path: p.path, Entry: e})
	}
	slices.SortFunc(out, itemOrder)
	return out
}

// change edits, adds, deletes and turns the kind of some paths.
func (m model) change(rng *rand.Rand, n int) {
	for range n {
		path := fmt.Sprintf("p%03d", rng.IntN(300))
		isFile, isDir := place{false, path}, place{true, path}
		delete(m, isFile)
		delete(m, isDir)
		switch rng.IntN(5) {
		case 0: // gone
		case 1:
			m[isDir] = patch.Entry{Type: patch.Dir, Mode: 0o700 + uint32(rng.IntN(64))}
		case 2:
			m[isFile] = manifest.Link(fmt.Sprint("to", rng.IntN(9)))
		default:
			m[isFile] = file(fmt.Sprint(rng.IntN(1000)))
		}
	}
}

func compare(t testing.TB, a, b NewTree) []manifest.Change {
	t.Helper()
	ch, err := manifest.Compare(a.Entries, b.Entries)
	require.NoError(t, err)
	return ch
}

// saveChain keeps n trees, each a change of the one before, in a line each.
func (w *world) saveChain(n int) (trees []NewTree, models []model, specs []*TreeSpec, records []*Record) {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	m := model{}
	m.change(rng, 600)
	for i := range n {
		next := tree(w.t, m.items()...)
		if i > 0 {
			next.Base, next.Changes = trees[i-1].ID, compare(w.t, trees[i-1], next)
		}
		s, err := w.SaveTree(w.shelf, next)
		require.NoError(w.t, err)
		r := w.draft()
		r.Before = next.ID
		require.NoError(w.t, w.write(&line{key: recordKey(r), record: r, tree: s}))
		trees, models, specs, records = append(trees, next), append(models, maps.Clone(m)), append(specs, s), append(records, r)
		m.change(rng, 1+rng.IntN(4))
	}
	return trees, models, specs, records
}

func TestTreesOfAChain(t *testing.T) {
	w := newWorld(t)
	trees, models, specs, _ := w.saveChain(120)
	w.reopen()
	keyframes := 0
	for i := range trees {
		if specs[i].Base.IsZero() {
			keyframes++
		}
		assert.Less(t, specs[i].Deltas, specs[i].Whole)
		entries, partial, err := w.Tree(trees[i].ID)
		require.NoError(t, err)
		assert.False(t, partial)
		for range 2 {
			got, err := manifest.Collect(entries)
			require.NoError(t, err)
			require.Equal(t, models[i].items(), got, "tree %d at depth %d", i, specs[i].Depth)
		}
		require.NoError(t, w.VerifyTree(trees[i].ID))
	}
	assert.Greater(t, keyframes, 1, "deltas do not grow beyond a keyframe")
	assert.Less(t, keyframes, 30)
	for _, i := range []int{0, 1, 57, 119} {
		for n := range 300 {
			path := fmt.Sprintf("p%03d", n)
			got, err := w.FindEntry(trees[i].ID, path)
			require.NoError(t, err)
			var want *patch.Entry
			for _, dir := range []bool{true, false} {
				if e, ok := models[i][place{dir, path}]; ok {
					want = &e
				}
			}
			require.Equal(t, want, got, path)
		}
	}
	var b, want bytes.Buffer
	require.NoError(t, w.WriteManifest(trees[119].ID, &b))
	require.NoError(t, manifest.Encode(&want, trees[119].Entries, false))
	assert.Equal(t, want.String(), b.String())
}

func TestSaveTreeTwiceCostsNothing(t *testing.T) {
	w := newWorld(t)
	trees, _, specs, _ := w.saveChain(3)
	n := len(w.shelf.objects)
	for range 2 {
		s, err := w.SaveTree(w.shelf, trees[2])
		require.NoError(t, err)
		assert.Equal(t, specs[2], s)
		w.reopen()
	}
	assert.Len(t, w.shelf.objects, n)
	// An object that is gone is written again, in full if its base is gone too.
	delete(w.shelf.objects, specs[2].Object)
	delete(w.shelf.objects, specs[1].Object)
	s, err := w.SaveTree(w.shelf, trees[2])
	require.NoError(t, err)
	assert.True(t, s.Base.IsZero())
	require.NoError(t, w.VerifyTree(trees[2].ID))
}

func TestPartialTreeIsNoBase(t *testing.T) {
	w := newWorld(t)
	part := tree(t, manifest.Item{Path: "a", Entry: file("x")})
	part.Partial = true
	s, err := w.SaveTree(w.shelf, part)
	require.NoError(t, err)
	assert.True(t, s.Partial)
	next := tree(t, manifest.Item{Path: "b", Entry: file("x")})
	next.Base = part.ID
	s, err = w.SaveTree(w.shelf, next)
	require.NoError(t, err)
	assert.True(t, s.Base.IsZero())
	_, partial, err := w.Tree(part.ID)
	require.NoError(t, err)
	assert.True(t, partial)
}

func TestDamagedTrees(t *testing.T) {
	w := newWorld(t)
	trees, _, specs, _ := w.saveChain(3)
	require.False(t, specs[2].Base.IsZero())
	w.reopen()
	_, _, err := w.Tree(patch.Sum([]byte("unknown")))
	assert.Equal(t, project.Integrity, project.KindOf(err))
	good := w.shelf.objects[specs[1].Object]
	for name, b := range map[string][]byte{"empty": {}, "cut": good[:len(good)-1], "a tree": w.shelf.objects[specs[0].Object], "other bytes": append([]byte("x"), good[1:]...), "long": append(good[:len(good):len(good)], 0)} {
		w.shelf.objects[specs[1].Object] = b
		_, _, err := w.Tree(trees[2].ID)
		assert.Equal(t, project.Integrity, project.KindOf(err), name)
	}
	w.shelf.objects[specs[1].Object] = good
	// A step that is sound but not the right one is found by the id.
	other, err := appendStep(nil, []manifest.Change{{Path: "zz", New: new(file("q"))}})
	require.NoError(t, err)
	bad := *specs[1]
	bad.Object, err = w.shelf.PutBytes(other)
	require.NoError(t, err)
	bad.Size = int64(len(other))
	r := w.draft()
	require.NoError(t, w.write(&line{key: recordKey(r), record: r, tree: &bad}))
	require.Error(t, w.VerifyTree(trees[1].ID))
	// Trees that rest on each other.
	loop := *specs[1]
	loop.ID, loop.Base = loop.Base, loop.ID
	require.NoError(t, w.write(&line{key: recordKey(r), record: r, tree: &loop, afterTree: specs[1]}))
	_, _, err = w.Tree(loop.ID)
	assert.Equal(t, project.Integrity, project.KindOf(err))
}

func TestRemoveAndRebase(t *testing.T) {
	w := newWorld(t)
	trees, _, specs, records := w.saveChain(40)
	from := 0
	for i := range specs[:20] {
		if specs[i].Base.IsZero() {
			from = i
		}
	}
	require.Less(t, from, 20)
	require.False(t, specs[20].Base.IsZero(), "the cut goes through a chain")
	for i := range 20 {
		require.NoError(t, w.Remove([]string{records[i].ID}))
	}
	w.reopen()
	assert.Len(t, w.list().Records, 20)
	for i := 20; i < 40; i++ {
		require.NoError(t, w.VerifyTree(trees[i].ID), "trees that others rest on stay")
	}
	require.NoError(t, w.Rebase(w.shelf, w.shelf.flush))
	live := map[patch.Hash]bool{}
	require.NoError(t, w.Live(func(h patch.Hash) { live[h] = true }))
	want := map[patch.Hash]bool{}
	for i := 20; i < 40; i++ {
		for it := range trees[i].Entries {
			if it.Entry.Type == patch.Regular {
				want[it.Entry.SHA256] = true
			}
		}
	}
	objects := 0
	for h := range live {
		if !want[h] {
			objects++ // a tree's own
			require.Contains(t, w.shelf.objects, h)
		}
	}
	assert.LessOrEqual(t, objects, 20)
	for h := range want {
		require.True(t, live[h])
	}
	for h := range w.shelf.objects {
		if !live[h] {
			delete(w.shelf.objects, h)
		}
	}
	w.reopen()
	for i := 20; i < 40; i++ {
		require.NoError(t, w.VerifyTree(trees[i].ID))
	}
	_, _, err := w.Tree(trees[from].ID)
	require.Error(t, err, "what was removed is gone")
	require.NoError(t, w.Rebase(w.shelf, w.shelf.flush), "again: nothing to do")
}

func TestThinManifests(t *testing.T) {
	w := newWorld(t)
	next := tree(t, manifest.Item{Path: "a", Entry: file("x")})
	var records []*Record
	for i := range 25 {
		s, err := w.SaveTree(w.shelf, next)
		require.NoError(t, err)
		if i == 2 {
			s = nil // not in the store
		}
		r := w.draft()
		r.Before = next.ID
		content := beginsManifest + "1}\n"
		if i == 3 {
			content = "somebody's"
		}
		require.NoError(t, w.Add(Closing{Record: r, Tree: s}, []RunFile{{Name: manifestJSON, Write: Bytes([]byte(content))}}))
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

func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		m := model{}
		m.change(rng, rng.IntN(200))
		a := tree(t, m.items()...)
		m.change(rng, rng.IntN(50))
		b := tree(t, m.items()...)
		step, err := appendStep(nil, compare(t, a, b))
		require.NoError(t, err)
		o := overlay{seen: map[place]bool{}}
		require.NoError(t, o.add(step))
		got, err := manifest.Collect(o.over(a.Entries))
		require.NoError(t, err)
		require.Equal(t, len(m), len(got))
		id, err := manifest.ID(manifest.Of(got...))
		require.NoError(t, err)
		require.Equal(t, b.ID, id)
	}
}

func FuzzStep(f *testing.F) {
	step, err := appendStep(nil, []manifest.Change{{Path: "a", New: new(file("x"))}, {Path: "b", Old: new(file("y"))}, {Path: "c", Old: &goneDir, New: new(file("y"))}})
	require.NoError(f, err)
	f.Add(step)
	f.Add([]byte(stepMagic))
	f.Add([]byte(stepMagic + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := overlay{seen: map[place]bool{}}
		if o.add(b) != nil {
			return
		}
		for range o.over(manifest.Of()) {
		}
	})
}

// Large diffs and logs go with the manifests, where the store has them whole; what
// becomes one of the newest again gets them back.
func TestThinLargeFiles(t *testing.T) {
	w := newWorld(t)
	large, small := strings.Repeat("line\n", plainSize/5+1), strings.Repeat("line\n", plainSize/5)
	names := map[string]string{
		diffName: large, OutsideFile: large, "routine.log": small, "attempts/1/routine.log": large, "notes.md": large,
		"attempts/1/changes.diff": large + "edited", "attempts/2/changes.diff": large + "lost",
	}
	sums := map[string]patch.Hash{}
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
		require.NoError(t, w.Add(Closing{Record: r, Files: sums}, files))
		ids = append(ids, r.ID)
	}
	delete(w.shelf.objects, sums["attempts/2/changes.diff"])
	edited := w.path("runs", ids[0], "attempts/1/changes.diff")
	require.NoError(t, os.WriteFile(edited, bytes.Repeat([]byte("?"), len(names["attempts/1/changes.diff"])), 0o600))

	require.NoError(t, w.ThinRuns(false))
	for i, id := range ids[:3] {
		for name := range names {
			gone := i < 2 && slices.Contains([]string{diffName, OutsideFile, "attempts/1/routine.log", "attempts/1/changes.diff"}, name) && w.path("runs", id, name) != edited
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
	assert.NoFileExists(t, w.path("runs", ids[1], diffName))
}
