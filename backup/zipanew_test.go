package backup

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk/disktest"
	"decree/store"
	"decree/tree"
)

// keeping is a bucket of which no zip may be missing for a moment: another backup may have mended it, and be acknowledged.
type keeping struct{ *flat }

func (k *keeping) Delete(ctx context.Context, name string) error {
	if strings.Contains(name, "/"+archivesDir+"/") {
		return errors.New(name + " must not be deleted")
	}
	return k.flat.Delete(ctx, name)
}

// TestAMendedZipStays: what another backup has put in the place of a changed zip since that was looked at is not replaced.
func TestAMendedZipStays(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		name := place.archiveName(place.Generations()[0])
		require.NoError(t, put(t.Context(), o.Target, name, strings.NewReader("theirs")))
		m := *place.Manifest
		m.Timestamp = place.Manifest.Others[place.Generations()[0]].Timestamp
		c, err := place.packContents(t.Context(), m.Packs, new(store.Numbers), func(pack tree.Hash, err error) { t.Error(pack, err) })
		require.NoError(t, err)
		_, err = place.zipAnew(t.Context(), &m, c, oldZip{version: "what was read before"})
		require.ErrorContains(t, err, "was faster")
		require.Equal(t, "theirs", w.read("target/"+name))
		return nil
	}))
}

// TestADamagedPackIsNotForgotten: the pack that a proof has found damaged is sent again although proofs.jsonl was lost, or cut, since.
func TestADamagedPackIsNotForgotten(t *testing.T) {
	for name, change := range map[string]func(string) string{"lost": nil, "damaged": func(string) string { return "}" }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			drill := func() (proof *Proof) {
				require.NoError(t, w.with(func(o Options) (err error) {
					proof, err = Drill(t.Context(), o, true)
					return err
				}))
				return proof
			}
			require.NoError(t, w.with(func(o Options) error {
				place, err := One(t.Context(), o.Target, "tree")
				require.NoError(t, err)
				w.rewrite("target/"+place.packName(sortedPacks(place.Manifest)[0]), func(s string) string { return s[:len(s)-1] + string(s[len(s)-1]^1) })
				return nil
			}))
			require.NotEmpty(t, drill().Damaged)
			w.spoil("target/tree/"+proofsFile, change)
			require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }))
			proof := drill()
			require.True(t, proof.OK, proof.String())
		})
	}
}

// TestZipsAreMadeAnew: on a target without current/ the newest generation has its zip at once. Where that was changed or
// lost, the next backup, after which the zip alone has that generation, makes it anew.
func TestZipsAreMadeAnew(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"lost":     nil,
		"cut":      func(s string) string { return s[:30] },
		"replaced": func(string) string { return "mine" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bucket := func(do func(o Options) error) string {
				w.clk = w.clk.Add(time.Hour)
				return w.told(func(o Options) error {
					o.Target = &keeping{&flat{Target: o.Target}}
					return do(o)
				})
			}
			make := func(o Options) error { _, err := generate(t.Context(), o); return err }
			for range 2 {
				bucket(make)
			}
			bucket(func(o Options) error {
				place, err := One(t.Context(), o.Target, "tree")
				require.NoError(t, err)
				zip := place.archiveName(place.Manifest.Generation())
				if change == nil {
					return o.Target.(*keeping).flat.Target.Delete(t.Context(), zip)
				}
				w.rewrite("target/"+zip, change)
				return nil
			})
			require.Contains(t, bucket(make), "was changed, or is missing, and is made anew")
			require.NotContains(t, bucket(make), "made anew")
			bucket(func(o Options) error {
				place, err := One(t.Context(), o.Target, "tree")
				require.NoError(t, err)
				require.Len(t, place.Manifest.Others, 6)
				for of, g := range place.Manifest.Others {
					sum, err := place.zipSum(t.Context(), of)
					require.NoError(t, err, of)
					require.Equal(t, g.SHA256, sum, of)
				}
				return nil
			})
		})
	}
}

// TestDamagedProofs: an encrypted proofs.jsonl that is not what was written there costs the proofs in it alone.
func TestDamagedProofs(t *testing.T) {
	m := disktest.NewMem()
	memory, err := m.MkdirAll("/store", 0o700)
	require.NoError(t, err)
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	dir, err := target.OpenDirectory(m, "/t", true)
	require.NoError(t, err)
	e, err := target.Encrypted(dir, target.Keys{Recipients: id.Recipient().String(), Memory: keyMemory{memory}})
	require.NoError(t, err)
	p := &Place{Target: e, Name: "p"}
	require.NoError(t, p.addProof(t.Context(), Proof{At: time.Unix(1, 0), Generation: "a"}))
	for _, data := range []string{"", "none of age's", "age-encryption.org/v1\n"} {
		require.NoError(t, dir.Delete(t.Context(), p.At(proofsFile)))
		require.NoError(t, put(t.Context(), dir, p.At(proofsFile), strings.NewReader(data)))
		list, err := p.proofs(t.Context())
		require.NoError(t, err, "%q", data)
		require.Empty(t, list)
		require.NoError(t, p.addProof(t.Context(), Proof{At: time.Unix(2, 0), Generation: "b"}))
		list, err = p.proofs(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
	}
}

// TestHeadersOfAnotherPack: an index that is another pack's is not believed, and the headers in the pack itself are taken.
func TestHeadersOfAnotherPack(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		var packs []tree.Hash
		for h := range place.Manifest.Packs {
			packs = append(packs, h)
		}
		require.GreaterOrEqual(t, len(packs), 2)
		require.NotEqual(t, place.Manifest.Packs[packs[0]], place.Manifest.Packs[packs[1]])
		name := "target/" + place.indexName(packs[0])
		other := w.read("target/" + place.indexName(packs[1]))
		w.rewrite(name, func(string) string { return other })
		proof, err := Drill(t.Context(), o, false)
		require.NoError(t, err)
		require.True(t, proof.OK, proof.Problems)
		c, err := place.packContents(t.Context(), place.Manifest.Packs, new(store.Numbers), func(pack tree.Hash, err error) { t.Error(pack, err) })
		require.NoError(t, err)
		for h := range c.at.All() {
			require.NoError(t, c.Write(t.Context(), io.Discard, h))
		}
		return nil
	}))
}

// shelf is a target with a current/ and no lock, as by sftp.
type shelf struct {
	*keeping
	target.Shelf
}

// TestAZipThatADeadBackupLeft: the zip of the generation before stands there already, written by a backup that died, with other bytes than today's. A sound
// one is taken as it is, anything else is replaced; both are read then.
func TestAZipThatADeadBackupLeft(t *testing.T) {
	for name, c := range map[string]struct {
		left  func(zip []byte) []byte
		taken bool
	}{
		"packed otherwise": {func(b []byte) []byte { return repacked(t, b, "") }, true},
		"without a file":   {func(b []byte) []byte { return repacked(t, b, "inbox/m0.md") }, true},
		"torn":             {func(b []byte) []byte { return b[:len(b)/2] }, false},
		"with other bytes": {func(b []byte) []byte { return repacked(t, b, "inbox/m0.md", "mine") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var left []byte
			var newest string
			require.NoError(t, w.with(func(o Options) error {
				place, err := One(t.Context(), o.Target, "tree")
				require.NoError(t, err)
				var zip bytes.Buffer
				known, err := place.packContents(t.Context(), place.Manifest.Packs, new(store.Numbers), func(pack tree.Hash, err error) { t.Error(pack, err) })
				require.NoError(t, err)
				require.NoError(t, place.writeZip(t.Context(), &zip, place.Manifest, known))
				newest, left = place.Manifest.Generation(), c.left(zip.Bytes())
				return put(t.Context(), o.Target, place.archiveName(newest), bytes.NewReader(left))
			}))
			require.NoError(t, w.with(func(o Options) error {
				o.Target = &shelf{&keeping{&flat{Target: o.Target}}, o.Target.(target.Shelf)}
				made, err := generate(t.Context(), o)
				require.NoError(t, err)
				require.Equal(t, c.taken, made.Manifest.Others[newest].SHA256 == tree.Sum(left))
				return nil
			}))
			require.Contains(t, w.generations(name), newest)
		})
	}
}

// repacked is a zip with the same files, not compressed, but for one that is left out, or has another content.
func repacked(t *testing.T, data []byte, but string, text ...string) []byte {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	var out bytes.Buffer
	to := zip.NewWriter(&out)
	for _, f := range z.File {
		if f.Name == but && len(text) == 0 {
			continue
		}
		w, err := to.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		require.NoError(t, err)
		if f.Name == but {
			_, err = io.WriteString(w, text[0])
			require.NoError(t, err)
			continue
		}
		r, err := f.Open()
		require.NoError(t, err)
		_, err = io.Copy(w, r)
		require.NoError(t, err)
	}
	require.NoError(t, to.Close())
	return out.Bytes()
}

// TestZipsThatAreNotHeld: where the zips, or what somebody has put in the place of one, are too large to be held in memory, they are made anew all the same,
// and a sound one that a dead backup left is taken.
func TestZipsThatAreNotHeld(t *testing.T) {
	smallest := func(t *testing.T, most int64) {
		was := maxZip
		maxZip = most
		t.Cleanup(func() { maxZip = was })
	}
	make := func(o Options) error { _, err := generate(t.Context(), o); return err }
	for name, c := range map[string]struct {
		most   int64
		change func(string) string
	}{
		"the zip":         {100, func(string) string { return "mine" }},
		"what is there":   {4000, func(string) string { return strings.Repeat("mine", 2000) }},
		"both":            {100, func(s string) string { return s + strings.Repeat("mine", 2000) }},
		"one that is cut": {100, func(s string) string { return s[:len(s)/2] }},
	} {
		t.Run(name, func(t *testing.T) {
			smallest(t, c.most)
			w := newWorld(t)
			bucket := func(do func(o Options) error) string {
				w.clk = w.clk.Add(time.Hour)
				return w.told(func(o Options) error {
					o.Target = &flat{Target: o.Target}
					return do(o)
				})
			}
			bucket(make)
			var newest string
			bucket(func(o Options) error {
				place, err := One(t.Context(), o.Target, "tree")
				require.NoError(t, err)
				newest = place.Manifest.Generation()
				w.rewrite("target/"+place.archiveName(newest), c.change)
				return nil
			})
			require.Contains(t, bucket(make), newest+".zip was changed, or is missing, and is made anew")
			require.Contains(t, w.generations(name), newest)
		})
	}
	t.Run("left by a dead backup", func(t *testing.T) {
		smallest(t, 100)
		w := newWorld(t)
		require.NoError(t, w.with(func(o Options) error {
			place, err := One(t.Context(), o.Target, "tree")
			require.NoError(t, err)
			known, err := place.packContents(t.Context(), place.Manifest.Packs, new(store.Numbers), func(pack tree.Hash, err error) { t.Error(pack, err) })
			require.NoError(t, err)
			var zip bytes.Buffer
			require.NoError(t, place.writeZip(t.Context(), &zip, place.Manifest, known))
			newest, left := place.Manifest.Generation(), repacked(t, zip.Bytes(), "")
			require.NoError(t, put(t.Context(), o.Target, place.archiveName(newest), bytes.NewReader(left)))
			o.Target = &shelf{&keeping{&flat{Target: o.Target}}, o.Target.(target.Shelf)}
			made, err := generate(t.Context(), o)
			require.NoError(t, err)
			require.Equal(t, tree.Sum(left), made.Manifest.Others[newest].SHA256)
			return nil
		}))
	})
}
