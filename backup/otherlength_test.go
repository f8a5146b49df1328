package backup

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/project"
	"decree/tree"
)

// provable lists the generations, oldest first, that a look finds provable.
func (w *world) provable() (out []string) {
	require.NoError(w.t, w.with(func(o Options) error {
		place, err := One(w.t.Context(), o.Target, "tree")
		require.NoError(w.t, err)
		list, err := place.List(w.t.Context(), project.BackupRetention{Last: 9})
		for _, l := range list {
			if l.Provable {
				out = append(out, l.Generation)
			}
		}
		slices.Reverse(out)
		return err
	}))
	return out
}

// TestAPackOfAnotherLength, cut or with the bytes of another, never counts as what it was: backups that follow are whole, and the older
// generations that need it go on being named, also where the manifest of an earlier decree does not say how long it was.
func TestAPackOfAnotherLength(t *testing.T) {
	for name, change := range map[string]func(own, other string) string{
		"cut":  func(own, _ string) string { return own[:len(own)/2] },
		"swap": func(_, other string) string { return other },
	} {
		for _, earlier := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				again := func(text string) {
					w.write("tree/new", text)
					require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }))
				}
				pack := largest(w.place().Manifest.Packs)
				again("much more than before, of which another pack is made")
				var other tree.Hash
				for h := range w.place().Manifest.Packs {
					if h != pack {
						other = h
					}
				}
				packs := w.place()
				spoiled := change(w.read("target/"+packs.packName(pack)), w.read("target/"+packs.packName(other)))
				w.write("target/"+packs.packName(pack), spoiled)
				before, sound := w.place().Generations(), w.provable()
				require.Greater(t, len(before), len(sound)+1, "no older generation needs the pack")
				for i, text := range []string{"second", "third", "fourth"} {
					if earlier && i == 1 {
						require.NoError(t, w.with(func(o Options) error {
							place, err := One(t.Context(), o.Target, "tree")
							require.NoError(t, err)
							place.Manifest.Lengths = nil
							return place.commit(t.Context(), place.Manifest)
						}))
					}
					again(text)
					made := slices.Concat(sound, w.place().Generations()[len(before):])
					require.Equal(t, made, w.provable(), text)
					require.NotContains(t, w.place().Manifest.Packs, pack)
				}
				require.NoError(t, w.with(func(o Options) error {
					proof, err := Drill(t.Context(), o, true)
					require.True(t, proof.OK, proof.Problems)
					return err
				}))
			})
		}
	}
}

func largest(packs map[tree.Hash]int64) (out tree.Hash) {
	for h, size := range packs {
		if size > packs[out] {
			out = h
		}
	}
	return out
}
