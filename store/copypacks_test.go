package store

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// copied is a sink that keeps packs as files of another store.
type copied struct {
	t       *testing.T
	dir     string
	n       int
	packs   []*bytes.Buffer
	headers [][]byte
}

func (c *copied) sink(size int64) PackSink {
	return PackSink{Size: size, Begin: func() (io.Writer, error) {
		c.packs = append(c.packs, &bytes.Buffer{})
		return c.packs[len(c.packs)-1], nil
	}, End: func(headers []byte) error {
		c.n++
		in, name := PackFile(c.n)
		require.NoError(c.t, os.MkdirAll(filepath.Join(c.dir, in), 0o700))
		require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, in, name), c.packs[c.n-1].Bytes(), 0o600))
		c.headers = append(c.headers, headers)
		return nil
	}}
}

func contents(t *testing.T, s *Store, n int) map[Hash][]byte {
	random := rand.NewChaCha8([32]byte{7})
	w, err := s.Writer(t.Context())
	require.NoError(t, err)
	out := map[Hash][]byte{}
	for i := range n {
		data := make([]byte, 1+i*37)
		if i == n-1 {
			data = make([]byte, 9<<20) // cut into chunks
		}
		_, _ = random.Read(data)
		if i%3 == 0 && i < n-1 {
			data = bytes.Repeat([]byte{byte(i)}, 1+i*41)
		}
		h, err := w.PutBytes(data)
		require.NoError(t, err)
		out[h] = data
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	return out
}

func testStore(t *testing.T, path string) *Store {
	dir, err := disk.OS.MkdirAll(path, 0o700)
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	s, err := Open(dir, Options{BlockSize: 8 << 10, PackSize: 4 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func held(t *testing.T, path string) *Store {
	dir, err := disk.OS.OpenRoot(path)
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	s, err := OpenHeld(dir)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestCopiedPacksAreAStore(t *testing.T) {
	for name, some := range map[string]bool{"all": false, "every other object": true} {
		t.Run(name, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "from")
			all := contents(t, testStore(t, from), 301)
			s := held(t, from)
			want, i := s.Numbers(), 0
			kept := map[Hash][]byte{}
			for h, data := range all {
				if i++; !some || i%2 == 0 || len(data) > 8<<20 {
					want.Set(h, 1)
					kept[h] = data
				}
			}
			require.NoError(t, s.Parts(want))
			require.Greater(t, want.Len(), len(kept), "the large one has chunks")
			to := &copied{t: t, dir: filepath.Join(t.TempDir(), "to")}
			require.NoError(t, s.CopyPacks(t.Context(), want, to.sink(1<<20)))
			require.Zero(t, want.Len())
			require.Greater(t, to.n, 1)

			copy := testStore(t, to.dir)
			problems, err := copy.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, problems)
			for h, data := range kept {
				r, _, err := copy.Open(h)
				require.NoError(t, err)
				got, err := io.ReadAll(r)
				require.NoError(t, err)
				require.True(t, bytes.Equal(data, got))
			}
			named := 0
			for i, headers := range to.headers {
				pack := bytes.NewReader(to.packs[i].Bytes())
				again, err := Headers(t.Context(), pack, pack.Size())
				require.NoError(t, err)
				require.Equal(t, headers, again, "the headers can be read from the pack too")
				require.NoError(t, ReadHeaders(headers, func(p Packed) {
					named++
					block := make([]byte, p.Length)
					_, err := pack.ReadAt(block, p.Block)
					require.NoError(t, err)
					data, same, err := FromBlock(block, p.Block, p.Hash)
					require.NoError(t, err)
					require.Equal(t, p, same)
					if want, ok := kept[p.Hash]; ok && !p.List {
						require.True(t, bytes.Equal(want, data))
					}
					block[len(block)-1] ^= 1
					_, _, err = FromBlock(block, p.Block, p.Hash)
					require.Error(t, err, "a flipped bit")
				}))
			}
			require.GreaterOrEqual(t, named, len(kept))
		})
	}
}

func TestCopyPacksLeavesWhatIsMissing(t *testing.T) {
	path := t.TempDir()
	contents(t, testStore(t, path), 10)
	s := held(t, path)
	to := &copied{t: t, dir: t.TempDir()}
	left := s.Numbers()
	left.Set(Hash{1}, 1)
	require.NoError(t, s.CopyPacks(t.Context(), left, to.sink(0)))
	require.EqualValues(t, 1, left.Get(Hash{1}))
	require.Zero(t, to.n)
}

func TestAHeldStoreOutlastsACompaction(t *testing.T) {
	path := t.TempDir()
	other := testStore(t, path)
	all := contents(t, other, 200)
	s := held(t, path)
	want := s.Numbers()
	n := 0
	for h := range all {
		if n++; n%2 == 0 {
			want.Set(h, 1)
		}
	}
	require.NoError(t, s.Parts(want))
	to := &copied{t: t, dir: t.TempDir()}
	sink := to.sink(256 << 10)
	begin, compacted := sink.Begin, false
	sink.Begin = func() (io.Writer, error) {
		if !compacted {
			compacted = true
			_, err := other.Compact(t.Context(), func(Hash) bool { return false }, CompactOptions{Force: true})
			if err != nil {
				return nil, err
			}
		}
		return begin()
	}
	require.NoError(t, s.CopyPacks(t.Context(), want, sink))
	require.Zero(t, want.Len())
}

func TestHeadersThatLieAreRefused(t *testing.T) {
	path := t.TempDir()
	all := contents(t, testStore(t, path), 20)
	s := held(t, path)
	want := s.Numbers()
	for h := range all {
		want.Set(h, 1)
	}
	require.NoError(t, s.Parts(want))
	to := &copied{t: t, dir: t.TempDir()}
	require.NoError(t, s.CopyPacks(t.Context(), want, to.sink(0)))
	for i := range to.headers[0] {
		bad := bytes.Clone(to.headers[0])
		bad[i] ^= 0x10
		var damaged *DamagedError
		if i < 16 || i >= 36 { // what lies between is the payload's, or the header's own checksum's
			err := ReadHeaders(bad, func(Packed) {})
			require.True(t, errors.As(err, &damaged), "byte %d: %v", i, err)
		}
		if i > 4096 {
			break
		}
	}
	require.Error(t, ReadHeaders(to.headers[0][:len(to.headers[0])-1], func(Packed) {}))
}

// TestHeldBesideADamagedHead: of a pack whose head has another identity than the index has, the blocks say what they hold.
func TestHeldBesideADamagedHead(t *testing.T) {
	at := t.TempDir()
	dir, err := disk.OS.OpenRoot(at)
	require.NoError(t, err)
	defer dir.Close()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	w, err := s.Writer(t.Context())
	require.NoError(t, err)
	h, err := w.PutBytes([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	require.NoError(t, s.Close())
	packs, err := filepath.Glob(filepath.Join(at, packsName, "*"+packSuffix))
	require.NoError(t, err)
	require.Len(t, packs, 1)
	data, err := os.ReadFile(packs[0])
	require.NoError(t, err)
	data[len(packMagic)] ^= 1
	require.NoError(t, os.WriteFile(packs[0], data, 0o600))

	held, err := OpenHeld(dir)
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, held.Verify(h))
}
