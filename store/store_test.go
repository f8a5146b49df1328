package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"testing"

	"decree/disk"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openDir opens a fresh directory of the system's disk.
func openDir(t testing.TB) disk.Dir {
	t.Helper()
	d, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func openStore(t testing.TB, d disk.Dir, o Options) *Store {
	t.Helper()
	s, err := Open(d, o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func openWriter(t testing.TB, s *Store) *Writer {
	t.Helper()
	w, err := s.Writer(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

// noise returns n bytes that do not compress, the same for the same seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	r.Read(b)
	return b
}

// prose returns n bytes that compress about as source text does.
func prose(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	words := []string{"func ", "return ", "if err != nil {\n", "}\n", "\t", "store", "entry", ".", "(", ") ", "x := ", "range "}
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = append(b, words[r.IntN(len(words))]...)
		if r.IntN(6) == 0 {
			b = append(b, byte('a'+r.IntN(26)), byte('a'+r.IntN(26)))
		}
	}
	return b[:n]
}

// content reads an object whole.
func content(t testing.TB, s *Store, h Hash) []byte {
	t.Helper()
	r, size, err := s.Open(h)
	require.NoError(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.EqualValues(t, size, len(b))
	return b
}

func TestRoundTrip(t *testing.T) {
	const block = 4 << 10
	sizes := []int{0, 1, 100, block - 1, block, block + 1, 2 * block, 100 << 10,
		maxWhole - 1, maxWhole, maxWhole + 1, 20 << 20}
	d := openDir(t)
	s := openStore(t, d, Options{BlockSize: block})
	w := openWriter(t, s)
	var want [][]byte
	for i, n := range sizes {
		want = append(want, noise(uint64(i), n), prose(uint64(i), n))
	}
	for i, b := range want {
		var h Hash
		var n int64
		var err error
		switch i % 3 {
		case 0:
			h, err = w.PutBytes(b)
			n = int64(len(b))
		case 1:
			h, n, err = w.Put(iotestReader{bytes.NewReader(b)}, -1)
		default:
			h, n, err = w.PutFile(bytes.NewReader(b), int64(len(b)))
		}
		require.NoError(t, err)
		require.Equal(t, Hash(sha256.Sum256(b)), h)
		require.EqualValues(t, len(b), n)
		require.True(t, w.Has(h))
		assert.True(t, bytes.Equal(b, content(t, s, h)), "before the flush, %d bytes", len(b))
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	other := openStore(t, d, Options{})
	for _, b := range want {
		h := Hash(sha256.Sum256(b))
		n, ok := other.Size(h)
		assert.True(t, ok)
		assert.EqualValues(t, len(b), n)
		assert.True(t, bytes.Equal(b, content(t, other, h)), "after the flush, %d bytes", len(b))
		assert.NoError(t, other.Verify(h))
	}
}

// iotestReader hands out odd pieces and its end together with the last one.
type iotestReader struct{ r *bytes.Reader }

func (r iotestReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p[:min(len(p), 4099)])
	if r.r.Len() == 0 {
		err = io.EOF
	}
	return n, err
}
