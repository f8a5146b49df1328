package store

import (
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	"decree/disk"
	"decree/disk/disktest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// files is what a store's directory holds, by name; packs with their directory.
type files map[string][]byte

func snapshotOf(t testing.TB, d disk.Dir) files {
	t.Helper()
	out := files{}
	collect(t, d, "", out)
	return out
}

func collect(t testing.TB, d disk.Dir, prefix string, out files) {
	list, err := d.List()
	require.NoError(t, err)
	for _, e := range list {
		if e.Kind == disk.Directory {
			sub, err := d.OpenDir(e.Name)
			require.NoError(t, err)
			collect(t, sub, prefix+e.Name+"/", out)
			sub.Close()
			continue
		}
		f, err := d.Open(e.Name)
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		f.Close()
		out[prefix+e.Name] = b
	}
}

// lay writes files to a fresh disk, durably, and opens the directory.
func (f files) lay(t testing.TB) disk.Dir {
	_, d := f.disk(t)
	return d
}

func (f files) disk(t testing.TB) (*disktest.Mem, disk.Dir) {
	t.Helper()
	m, d := memDir(t)
	packs, err := m.MkdirAll("/store/"+packsName, 0o700)
	require.NoError(t, err)
	for name, b := range f {
		dir := d
		if base, ok := strings.CutPrefix(name, packsName+"/"); ok {
			dir, name = packs, base
		}
		g, err := dir.Create(name, 0o600)
		require.NoError(t, err)
		_, err = g.Write(b)
		require.NoError(t, err)
		require.NoError(t, g.Sync())
		require.NoError(t, g.Close())
	}
	for _, path := range []string{"/", "/store", "/store/" + packsName} {
		dir, err := m.OpenRoot(path)
		require.NoError(t, err)
		require.NoError(t, dir.Sync())
	}
	return m, d
}

func (f files) with(name string, b []byte) files {
	out := files{}
	for k, v := range f {
		out[k] = v
	}
	if b == nil {
		delete(out, name)
	} else {
		out[name] = b
	}
	return out
}

const firstPack = packsName + "/00000001.pack"

// built returns a store's files after each of its flushes, and what each put.
func built(t testing.TB, o Options, puts ...[][]byte) []files {
	_, d := memDir(t)
	var states []files
	for _, objects := range puts {
		s, err := Open(d, o)
		require.NoError(t, err)
		w, err := s.Writer(t.Context())
		require.NoError(t, err)
		for _, b := range objects {
			_, err := w.PutBytes(b)
			require.NoError(t, err)
		}
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		require.NoError(t, s.Close())
		states = append(states, snapshotOf(t, d))
	}
	return states
}

func sum(b []byte) Hash { return sha256.Sum256(b) }

// TestTornTail tears the last block at every byte, under an index that does not
// know it yet, and under none: what was flushed before is whole, the torn part is
// cut by the next Writer, and nothing of it remains to complain about.
func TestTornTail(t *testing.T) {
	old := [][]byte{noise(1, 100), prose(2, 150)}
	late := [][]byte{noise(3, 60), prose(4, 90)}
	states := built(t, Options{}, old, late)
	before, after := len(states[0][firstPack]), len(states[1][firstPack])
	for _, index := range []bool{true, false} {
		for _, fill := range []int{-1, 0, 0xdc} { // cut, or bytes that never came to the disk
			for cut := before; cut < after; cut++ {
				pack := append([]byte(nil), states[1][firstPack][:cut]...)
				for fill >= 0 && len(pack) < after {
					pack = append(pack, byte(fill))
				}
				state := states[0].with(firstPack, pack)
				if !index {
					state = state.with(logName, nil)
				}
				tornTail(t, state, old, late, before)
			}
		}
	}
}

func tornTail(t *testing.T, state files, old, late [][]byte, before int) {
	d := state.lay(t)
	s, err := Open(d, Options{})
	require.NoError(t, err)
	defer s.Close()
	for _, b := range old {
		require.Equal(t, b, content(t, s, sum(b)))
	}
	require.False(t, s.Has(sum(late[0])))
	w, err := s.Writer(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	st, err := s.packs.Stat("00000001.pack")
	require.NoError(t, err)
	require.EqualValues(t, before, st.Size)
	for _, b := range late {
		_, err := w.PutBytes(b)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	problems, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, b := range append(late, old...) {
		require.Equal(t, b, content(t, s, sum(b)))
	}
}

// TestTornFirstPack tears the very first write at every byte.
func TestTornFirstPack(t *testing.T) {
	objects := [][]byte{prose(1, 50)}
	whole := built(t, Options{}, objects)[0][firstPack]
	for cut := range whole {
		d := files{firstPack: whole[:cut]}.lay(t)
		s, err := Open(d, Options{})
		require.NoError(t, err)
		require.False(t, s.Has(sum(objects[0])))
		w, err := s.Writer(t.Context())
		require.NoError(t, err)
		_, err = w.PutBytes(objects[0])
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		require.Equal(t, objects[0], content(t, s, sum(objects[0])))
		problems, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, problems)
		require.NoError(t, s.Close())
	}
}

// TestDamageInTheMiddle flips each byte of a flushed block: it is never cut, its
// objects are named or answered with an error, and what lies behind is whole, with
// the index and without.
func TestDamageInTheMiddle(t *testing.T) {
	first, second, third := [][]byte{noise(1, 80)}, [][]byte{prose(2, 120), noise(3, 30)}, [][]byte{prose(4, 70)}
	states := built(t, Options{}, first, second, third)
	from, to := len(states[0][firstPack]), len(states[1][firstPack])
	for _, index := range []bool{true, false} {
		for at := from; at < to; at++ {
			pack := append([]byte(nil), states[2][firstPack]...)
			pack[at] ^= 0x10
			state := states[2].with(firstPack, pack)
			if !index {
				state = state.with(logName, nil)
			}
			d := state.lay(t)
			s, err := Open(d, Options{})
			require.NoError(t, err)
			for _, b := range [][]byte{first[0], third[0]} {
				require.Equal(t, b, content(t, s, sum(b)), "byte %d", at)
			}
			hurt := 0
			for _, b := range second {
				if err := s.Verify(sum(b)); err != nil {
					hurt++
					if index {
						var damaged *DamagedError
						require.ErrorAs(t, err, &damaged)
						require.EqualValues(t, from, damaged.Offset)
					}
				}
			}
			require.NotZero(t, hurt, "byte %d", at)
			problems, err := s.Check(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, problems)
			require.EqualValues(t, from, problems[0].Offset)
			require.False(t, problems[0].Torn)
			_, err = s.Rebuild(t.Context())
			require.NoError(t, err)
			st, err := s.packs.Stat("00000001.pack")
			require.NoError(t, err)
			require.EqualValues(t, len(pack), st.Size, "nothing is cut")
			w, err := s.Writer(t.Context())
			require.NoError(t, err)
			for _, b := range second {
				_, err := w.PutBytes(b)
				require.NoError(t, err)
			}
			require.NoError(t, w.Flush())
			require.NoError(t, w.Close())
			for _, b := range second {
				require.Equal(t, b, content(t, s, sum(b)), "stored again, byte %d", at)
			}
			require.NoError(t, s.Close())
		}
	}
}

// TestPackInsidePack keeps a pack as an object, uncompressed, and damages the
// block before it: the inner blocks are not taken for the outer pack's.
func TestPackInsidePack(t *testing.T) {
	inner := built(t, Options{}, [][]byte{noise(1, 5000)})[0][firstPack]
	states := built(t, Options{}, [][]byte{append(noise(2, 50), inner...)}, [][]byte{noise(3, 10)})
	pack := append([]byte(nil), states[1][firstPack]...)
	pack[packStart+9] ^= 1
	s := openStore(t, states[1].with(firstPack, pack).with(logName, nil).lay(t), Options{})
	require.False(t, s.Has(sum(noise(1, 5000))))
	require.True(t, s.Has(sum(noise(3, 10))))
	_, err := s.Rebuild(t.Context())
	require.NoError(t, err)
	assert.False(t, s.Has(sum(noise(1, 5000))))
}

func TestNewerVersion(t *testing.T) {
	state := built(t, Options{}, [][]byte{noise(1, 50)})[0]
	pack := append([]byte(nil), state[firstPack]...)
	copy(pack, "decree pack 2\n")
	s := openStore(t, state.with(firstPack, pack).lay(t), Options{})
	var version *VersionError
	_, _, err := s.Open(sum(noise(1, 50)))
	require.ErrorAs(t, err, &version)
	assert.Equal(t, "decree pack 2", version.Version)
	_, err = s.Writer(t.Context())
	require.ErrorAs(t, err, &version)
}
