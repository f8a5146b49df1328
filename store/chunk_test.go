package store

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func chunksOf(b []byte) (list [][]byte) {
	for len(b) > 0 {
		n := cutChunk(b)
		list = append(list, b[:n])
		b = b[n:]
	}
	return list
}

func TestChunkSizes(t *testing.T) {
	for _, data := range [][]byte{noise(1, 40<<20), prose(2, 40<<20), make([]byte, 9<<20)} {
		list := chunksOf(data)
		assert.True(t, bytes.Equal(data, bytes.Join(list, nil)))
		for _, c := range list[:len(list)-1] {
			assert.Greater(t, len(c), minChunk)
			assert.LessOrEqual(t, len(c), maxChunk)
		}
	}
	list := chunksOf(noise(3, 64<<20))
	assert.InDelta(t, 64, len(list), 20, "about a MiB each")
}

// TestChunksFollowTheContent moves a content by some bytes: but for the first few,
// its chunks are the same.
func TestChunksFollowTheContent(t *testing.T) {
	data := prose(5, 30<<20)
	old := map[Hash]bool{}
	for _, c := range chunksOf(data) {
		old[sum(c)] = true
	}
	moved := chunksOf(append([]byte("inserted at the beginning\n"), data...))
	fresh := 0
	for _, c := range moved {
		if !old[sum(c)] {
			fresh++
		}
	}
	assert.LessOrEqual(t, fresh, 4, "of %d", len(moved))
}

// TestGrowingLog stores a log that grows by a line each time: only its end is stored again.
func TestGrowingLog(t *testing.T) {
	_, d := memDir(t)
	s := openStore(t, d, Options{})
	log := prose(6, 20<<20)
	var first int64
	const rounds = 10
	for i := range rounds {
		w := openWriter(t, s)
		_, _, err := w.PutFile(bytes.NewReader(log), int64(len(log)))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		if i == 0 {
			st, err := s.Stats()
			require.NoError(t, err)
			first = st.Bytes
		}
		log = append(log, "one more line\n"...)
	}
	st, err := s.Stats()
	require.NoError(t, err)
	assert.Less(t, st.Bytes, 2*first, "%d rounds", rounds)
}

// TestRepeatedChunks stores contents whose chunks come again at once, and such as only
// begin like the chunk before: what is stored is what cutting alone makes of them.
func TestRepeatedChunks(t *testing.T) {
	zeros := make([]byte, 21<<20)
	piece := noise(7, 4<<20)
	piece = piece[:cutChunk(piece)]
	for name, data := range map[string][]byte{
		"zeros":          zeros,
		"zeros and more": slices.Concat(zeros, noise(8, 5<<20), zeros, []byte("end")),
		"a piece again":  bytes.Repeat(piece, 12<<20/len(piece)+1),
		"and its half":   slices.Concat(bytes.Repeat(piece, 12<<20/len(piece)+1), piece[:len(piece)/2]),
	} {
		_, d := memDir(t)
		s := openStore(t, d, Options{})
		w := openWriter(t, s)
		h, n, err := w.PutFile(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err, name)
		require.NoError(t, w.Flush(), name)
		assert.Equal(t, int64(len(data)), n, name)
		assert.Equal(t, sum(data), h, name)
		r, _, err := s.Open(h)
		require.NoError(t, err, name)
		got, err := io.ReadAll(r)
		require.NoError(t, err, name)
		assert.True(t, bytes.Equal(data, got), name)
		for _, c := range chunksOf(data) {
			assert.True(t, s.Has(sum(c)), "%s: a chunk was cut elsewhere", name)
		}
		require.NoError(t, w.Close(), name)
	}
}

// TestListOfZeros stores zeros as one chunk and two lines: what comes many times in a row
// and what is left over.
func TestListOfZeros(t *testing.T) {
	_, d := memDir(t)
	s := openStore(t, d, Options{})
	w := openWriter(t, s)
	zeros := make([]byte, 33<<20+5)
	h, _, err := w.PutFile(bytes.NewReader(zeros), int64(len(zeros)))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	chunk, e, err := s.object(&h)
	require.NoError(t, err)
	defer chunk.release()
	assert.Len(t, chunk.member(e), 2*pieceLen)
	require.NoError(t, s.Verify(h))
	require.NoError(t, w.Close())
}

// TestLongRepetition cuts more of one chunk than a line has room for: 5 GiB of zeros.
func TestLongRepetition(t *testing.T) {
	seg := &segment{buf: make([]byte, maxChunk)}
	c := &cutting{jobs: make(chan job, 1)}
	const times = 5000
	for range times {
		rest, err := c.cut(seg, seg.buf, true)
		require.NoError(t, err)
		require.Empty(t, rest)
	}
	require.Len(t, c.jobs, 1)
	zeros := sum(seg.buf)
	copy(c.list, zeros[:])
	c.nameAgain()
	require.NoError(t, checkList(c.list, times*maxChunk))
	require.Len(t, c.list, 3*pieceLen)
	for i := range 3 {
		assert.Equal(t, zeros, pieceAt(c.list, i).hash)
	}
	earlier := slices.Concat(c.list[:pieceLen], c.list[:pieceLen], c.list[:pieceLen]) // as it was written until November 2026
	list, err := soundList(earlier, times*maxChunk)
	require.NoError(t, err)
	require.Equal(t, c.list, list)
	_, err = soundList(earlier, 2*times*maxChunk)
	require.Error(t, err)
}

// TestListWithALineForEachChunk reads the form in which nothing is said to come again.
func TestListWithALineForEachChunk(t *testing.T) {
	_, d := memDir(t)
	s := openStore(t, d, Options{})
	w := openWriter(t, s)
	one := noise(9, 1<<20)
	whole := bytes.Repeat(one, 3)
	list := bytes.Repeat(appendPiece(nil, piece{sum(one), 1 << 20}), 3)
	require.NoError(t, w.putOne(sum(one), one, false))
	require.NoError(t, w.putMember(member{hash: sum(whole), list: true, length: uint32(len(list)), size: 3 << 20}, list, false))
	require.NoError(t, w.Flush())
	require.NoError(t, s.Verify(sum(whole)))
	require.NoError(t, w.Close())
}
