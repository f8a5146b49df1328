package backup

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/project"
)

// rotate proves a sample and keeps all generations.
func (w *world) rotate() (out *Prune) {
	require.NoError(w.t, w.with(func(o Options) (err error) {
		o = asBucket(o, true)
		proof, err := Drill(w.t.Context(), o, false)
		require.NoError(w.t, err)
		require.True(w.t, proof.OK, proof.Problems)
		out, err = o.Prune(w.t.Context(), project.BackupRetention{Last: 9}, false)
		return err
	}))
	return out
}

func (w *world) deleted(name string) {
	require.NoError(w.t, w.with(func(o Options) error { return o.Target.Delete(w.t.Context(), name) }))
}

// TestWhatARestoreHasReplacedMayBeRemoved by hand: it needs no pack, so that packs go on being deleted, and the next backup does
// not list it any more.
func TestWhatARestoreHasReplacedMayBeRemoved(t *testing.T) {
	w, _ := outdated(t)
	w.write("tree/back", "third")
	require.NoError(t, w.with(func(o Options) error { _, err := asBucket(o, true).keepIn(t.Context()); return err }))
	kept := w.place().Generations()
	name := kept[len(kept)-1]
	require.True(t, IsPreRestore(name), kept)
	w.deleted("tree/archives/" + name + ".zip")
	out := w.rotate()
	require.Positive(t, out.Packs)
	require.Empty(t, out.Unread)
	told := ""
	require.NoError(t, w.with(func(o Options) error {
		o = asBucket(o, true)
		o.Tell = func(text string) { told += text }
		_, err := generate(t.Context(), o)
		return err
	}))
	require.Contains(t, told, name+".zip was removed, and is not listed any more")
	require.NotContains(t, w.place().Generations(), name)
}

// TestAnOlderGenerationThatHasLostAPack keeps no other: which it needs is known. One whose zip is gone keeps all, and that is said.
func TestAnOlderGenerationThatHasLostAPack(t *testing.T) {
	for _, lost := range []string{"pack", "zip"} {
		t.Run(lost, func(t *testing.T) {
			w, _ := outdated(t)
			w.write("tree/back", "third")
			_, err := w.bucketBackup()
			require.NoError(t, err)
			place, name := w.place(), ""
			older := place.Generations()[len(place.Generations())-2]
			for _, h := range place.Manifest.Others[older].Packs {
				if _, newest := place.Manifest.Packs[h]; !newest {
					name = place.packName(h)
				}
			}
			require.NotEmpty(t, name, "no pack is the older generation's own")
			if lost == "zip" {
				name = place.archiveName(older)
			}
			w.deleted(name)
			out := w.rotate()
			if lost == "pack" {
				require.Positive(t, out.Packs)
				require.Empty(t, out.Unread)
			} else {
				require.Zero(t, out.Packs)
				require.Equal(t, older, out.Unread)
			}
		})
	}
}

// TestZipsThatNobodyLists are removed by the next prune, a day later: backups that died have left them. What is another project's, or
// nobody's, stays.
func TestZipsThatNobodyLists(t *testing.T) {
	w, _ := outdated(t)
	place := w.place()
	newest := place.Manifest.Timestamp
	zip := func(before time.Duration) string { return place.archiveName(NameOf(newest.Add(-before))) }
	require.NoError(t, w.with(func(o Options) error {
		data, _, err := o.Target.Read(t.Context(), zip(0), 1<<20)
		require.NoError(t, err)
		var foreign bytes.Buffer
		other := *place.Manifest
		other.Project = strings.Repeat("0", 32)
		z := newZip(&foreign, &other)
		require.NoError(t, z.manifest())
		require.NoError(t, z.Close())
		for name, data := range map[string][]byte{zip(25 * time.Hour): data, zip(23 * time.Hour): data, zip(26 * time.Hour): foreign.Bytes(), zip(27 * time.Hour): []byte("no zip")} {
			_, err := o.Target.Swap(t.Context(), name, data, "")
			require.NoError(t, err)
		}
		return nil
	}))
	out := w.rotate()
	require.Positive(t, out.Freed)
	require.NoError(t, w.with(func(o Options) error {
		for before, stays := range map[time.Duration]bool{0: true, 23: true, 25: false, 26: true, 27: true} {
			_, version, err := o.Target.Read(t.Context(), zip(before*time.Hour), 1<<20)
			require.NoError(t, err)
			require.Equal(t, stays, version != "", "%d hours older than the newest", before)
		}
		return nil
	}))
}
