package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
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

func TestDedupe(t *testing.T) {
	d := openDir(t)
	s := openStore(t, d, Options{})
	w := openWriter(t, s)
	big := prose(1, 12<<20)
	for range 3 {
		for i := range 50 {
			_, err := w.PutBytes(noise(uint64(i), 3000))
			require.NoError(t, err)
		}
		_, _, err := w.Put(bytes.NewReader(big), int64(len(big)))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
	}
	require.NoError(t, w.Close())
	st, err := s.Stats()
	require.NoError(t, err)
	chunks := st.Objects - 51
	assert.Greater(t, chunks, int64(5), "the large content is in chunks")
	assert.Less(t, chunks, int64(25))
	assert.Less(t, st.Bytes, int64(50*3000+len(big)/2))

	// One line more at the end costs the last chunk and the list.
	before := st.Bytes
	w = openWriter(t, s)
	_, _, err = w.Put(bytes.NewReader(append(big, "one line\n"...)), -1)
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	st, err = s.Stats()
	require.NoError(t, err)
	assert.Less(t, st.Bytes-before, int64(maxChunk))
}

func TestFlushesAreFew(t *testing.T) {
	syncs := 0
	_, d := memDir(t)
	s := openStore(t, countSyncs(d, &syncs), Options{})
	flush := func(put ...string) int {
		syncs = 0
		w := openWriter(t, s)
		for _, p := range put {
			_, err := w.PutBytes([]byte(p))
			require.NoError(t, err)
		}
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		return syncs
	}
	assert.Equal(t, 3, flush("a", "b"), "the pack, its name, the new directory's name")
	assert.Equal(t, 1, flush("c", "d"), "the pack")
	assert.Equal(t, 0, flush("c", "a"), "nothing new")
	assert.Equal(t, 0, flush())
}

func TestModesWhateverTheUmask(t *testing.T) {
	withUmask(t, 0o777)
	d := openDir(t)
	s := openStore(t, d, Options{FoldAt: 1})
	w := openWriter(t, s)
	for i := range 5 {
		_, err := w.PutBytes([]byte{byte(i)})
		require.NoError(t, err)
		require.NoError(t, w.Flush())
	}
	require.NoError(t, w.Close())
	packs, err := d.OpenDir(packsName)
	require.NoError(t, err)
	defer packs.Close()
	for _, dir := range []disk.Dir{d, packs} {
		list, err := dir.List()
		require.NoError(t, err)
		require.NotEmpty(t, list)
		for _, e := range list {
			st, err := dir.Stat(e.Name)
			require.NoError(t, err)
			want := uint32(0o600)
			if st.Kind == disk.Directory {
				want = 0o700
			}
			assert.Equal(t, want, st.Mode, e.Name)
		}
	}
}

// grower yields more than it said, or less.
type grower struct{ left int }

func (g *grower) Read(p []byte) (int, error) {
	n := min(len(p), g.left)
	g.left -= n
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = byte(g.left)
	}
	return n, nil
}

func TestPutFileReadsWhatIsThere(t *testing.T) {
	s := openStore(t, openDir(t), Options{})
	w := openWriter(t, s)
	for _, c := range []struct{ said, real int }{
		{10, 0}, {0, 10}, {100, 70}, {100, 1 << 20}, {1 << 20, 3}, {20 << 20, 5}, {20 << 20, 9 << 20}, {3, 9 << 20},
		{300 << 10, 2 << 20}, {2 << 20, 300 << 10}, {512 << 10, 9 << 20},
	} {
		h, n, err := w.PutFile(&grower{c.real}, int64(c.said))
		require.NoError(t, err)
		assert.EqualValues(t, c.real, n, "said %d", c.said)
		size, ok := s.Size(h)
		assert.True(t, ok)
		assert.EqualValues(t, c.real, size)
		require.NoError(t, s.Verify(h))
	}
}

func TestReadErrorStoresNothing(t *testing.T) {
	s := openStore(t, openDir(t), Options{})
	w := openWriter(t, s)
	for _, n := range []int{10, 600 << 10, 5 << 20, 12 << 20} {
		_, _, err := w.Put(io.MultiReader(bytes.NewReader(prose(3, n)), broke{}), -1)
		require.ErrorIs(t, err, io.ErrNoProgress)
		h, err := w.PutBytes(prose(3, n)) // the Writer goes on
		require.NoError(t, err)
		assert.True(t, bytes.Equal(prose(3, n), content(t, s, h)))
	}
}

type broke struct{}

func (broke) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

func TestConcurrentPuts(t *testing.T) {
	s := openStore(t, openDir(t), Options{BlockSize: 32 << 10, PackSize: 4 << 20})
	w := openWriter(t, s)
	var objects [][]byte
	for i := range 400 {
		objects = append(objects, prose(uint64(i), i*37), noise(uint64(i), i*11))
	}
	objects = append(objects, prose(1000, 700<<10), noise(1001, 3<<20), prose(1002, 10<<20), noise(1003, 9<<20))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range objects {
				b := objects[(i+g*97)%len(objects)]
				h, _, err := w.PutFile(bytes.NewReader(b), int64(len(b)))
				assert.NoError(t, err)
				if i%50 == 0 {
					assert.True(t, bytes.Equal(b, content(t, s, h)))
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	for _, b := range objects {
		assert.True(t, bytes.Equal(b, content(t, s, Hash(sha256.Sum256(b)))))
	}
	st, err := s.Stats()
	require.NoError(t, err)
	assert.Greater(t, st.Packs, 1)
	problems, err := s.Check(t.Context())
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// TestPutReadsFromTheStore puts a content whose reader reads what lies in the
// same open block: a Put that held its lock while it reads would wait for itself.
func TestPutReadsFromTheStore(t *testing.T) {
	s := openStore(t, openDir(t), Options{})
	w := openWriter(t, s)
	h, err := w.PutBytes([]byte("first"))
	require.NoError(t, err)
	got, _, err := w.Put(lazy(func() []byte { return append(content(t, s, h), " and second"...) }).reader(), -1)
	require.NoError(t, err)
	assert.Equal(t, "first and second", string(content(t, s, got)))
	assert.Equal(t, "first", string(content(t, s, h)))
}

type lazy func() []byte

func (l lazy) reader() io.Reader { return &lazyReader{l: l} }

type lazyReader struct {
	l lazy
	r io.Reader
}

func (l *lazyReader) Read(p []byte) (int, error) {
	if l.r == nil {
		l.r = bytes.NewReader(l.l())
	}
	return l.r.Read(p)
}

func TestReaderBesideWriter(t *testing.T) {
	d := openDir(t)
	reader := openStore(t, d, Options{})
	s := openStore(t, d, Options{})
	w := openWriter(t, s)
	for i := range 20 {
		b := prose(uint64(i), 1000*i)
		h, err := w.PutBytes(b)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		assert.True(t, bytes.Equal(b, content(t, reader, h)), "found though flushed after the opening")
	}
	var missing *MissingError
	_, _, err := reader.Open(Hash{1})
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, Hash{1}, missing.Hash)
}

func TestCloseWithoutFlush(t *testing.T) {
	d := openDir(t)
	s := openStore(t, d, Options{BlockSize: 1 << 10})
	w := openWriter(t, s)
	var hashes []Hash
	for i := range 10 {
		h, err := w.PutBytes(noise(uint64(i), 600))
		require.NoError(t, err)
		hashes = append(hashes, h)
	}
	require.NoError(t, w.Close())
	_, err := w.PutBytes([]byte("x"))
	require.ErrorIs(t, err, errClosed)
	assert.True(t, s.Has(hashes[0]), "its block was written, and is adopted")
	assert.False(t, s.Has(hashes[9]), "it was in memory")
	syncs := 0
	again := openStore(t, countSyncs(d, &syncs), Options{})
	w = openWriter(t, again)
	require.NoError(t, w.Flush())
	assert.NotZero(t, syncs, "what is adopted is made durable before it is relied on")
	require.NoError(t, w.Close())
	problems, err := again.Check(t.Context())
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Equal(t, noise(0, 600), content(t, again, hashes[0]))
}

func TestOneWriter(t *testing.T) {
	s := openStore(t, openDir(t), Options{})
	w := openWriter(t, s)
	_, err := s.Writer(t.Context())
	require.ErrorIs(t, err, errWriterOpen)
	_, err = s.Rebuild(t.Context())
	require.ErrorIs(t, err, errWriterOpen)
	require.NoError(t, w.Close())
	_, err = s.Compact(t.Context(), func(Hash) bool { return true }, CompactOptions{})
	require.NoError(t, err)
}

func TestCancelled(t *testing.T) {
	s := openStore(t, openDir(t), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.Writer(ctx)
	require.NoError(t, err)
	defer w.Close()
	cancel()
	_, err = w.PutBytes([]byte("x"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, w.Flush(), context.Canceled)
}

// stingy takes one byte of what it is given and fails.
type stingy struct{}

func (stingy) Put(r io.Reader, _ int64) (Hash, int64, error) {
	_, err := io.ReadFull(r, make([]byte, 1))
	return Hash{}, 1, errors.Join(err, io.ErrNoProgress)
}

// TestPutWrittenWaits: what writes may read from what its caller closes next.
func TestPutWrittenWaits(t *testing.T) {
	var ended atomic.Bool
	_, err := PutWritten(stingy{}, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 100))
		for range 1000 {
			runtime.Gosched()
		}
		ended.Store(true)
		return err
	})
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.True(t, ended.Load())

	w := openWriter(t, openStore(t, openDir(t), Options{}))
	_, err = PutWritten(w, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, io.ErrNoProgress)
	})
	require.ErrorIs(t, err, io.ErrNoProgress)
	h, err := PutWritten(w, func(w io.Writer) error {
		_, err := io.WriteString(w, "whole")
		return err
	})
	require.NoError(t, err)
	require.Equal(t, sum([]byte("whole")), h)
}
