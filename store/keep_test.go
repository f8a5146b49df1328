package store

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func opening(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

func unopened() (io.ReadCloser, error) { return nil, io.ErrNoProgress }

// TestKeep: where the index says that a content is stored, but the pack does not
// hold it (any more), it is stored again, whether the base or the log has its line,
// in one piece or in chunks.
func TestKeep(t *testing.T) {
	small, large := noise(1, 3000), noise(2, 9<<20)
	for name, tt := range map[string]struct {
		o       Options
		content []byte
		harm    func(pack []byte) []byte
	}{
		"in the log":         {Options{}, small, func(p []byte) []byte { p[len(p)-100] ^= 1; return p }},
		"in the base":        {Options{FoldAt: 1}, small, func(p []byte) []byte { p[len(p)-100] ^= 1; return p }},
		"a chunk":            {Options{}, large, func(p []byte) []byte { p[len(p)/2] ^= 1; return p }},
		"a chunk, base":      {Options{FoldAt: 1}, large, func(p []byte) []byte { p[len(p)/2] ^= 1; return p }},
		"a list":             {Options{}, large, func(p []byte) []byte { p[len(p)-3] ^= 1; return p }},
		"a block's header":   {Options{}, small, func(p []byte) []byte { p[packStart] ^= 1; return p }},
		"nothing is damaged": {Options{}, small, nil},
	} {
		t.Run(name, func(t *testing.T) {
			other := noise(3, 500)
			states := built(t, tt.o, [][]byte{tt.content}, [][]byte{other})
			state := states[0]
			if tt.harm != nil {
				state = state.with(firstPack, tt.harm(append([]byte(nil), state[firstPack]...)))
			}
			d := state.lay(t)
			s := openStore(t, d, tt.o)
			h := sum(tt.content)
			require.True(t, s.Has(h), "the index knows nothing of it")
			w := openWriter(t, s)
			if tt.harm == nil {
				got, err := w.Keep(h, int64(len(tt.content)), unopened)
				require.NoError(t, err)
				require.Equal(t, h, got)
				return
			}
			_, err := w.PutBytes(other)
			require.NoError(t, err)
			for range 2 { // the second time it was kept by the first
				got, err := w.Keep(h, int64(len(tt.content)), opening(tt.content))
				require.NoError(t, err)
				require.Equal(t, h, got)
			}
			require.NoError(t, w.Flush())
			_, err = w.Keep(sum(other), 500, unopened) // just written
			require.NoError(t, err)
			got, err := w.Keep(Hash{1}, 500, opening(other))
			require.NoError(t, err)
			require.Equal(t, sum(other), got, "the hash of what was there")
			require.NoError(t, w.Close())
			for _, st := range []*Store{s, openStore(t, d, tt.o)} {
				assert.True(t, bytes.Equal(tt.content, content(t, st, h)))
				assert.True(t, bytes.Equal(other, content(t, st, sum(other))))
			}
		})
	}
}

// TestKeepThatFails: what overrules a line of the log and is not flushed takes
// nothing along.
func TestKeepThatFails(t *testing.T) {
	lost, other := noise(1, 3000), noise(2, 3000)
	state := built(t, Options{BlockSize: 1 << 10}, [][]byte{lost, other})[0]
	pack := append([]byte(nil), state[firstPack]...)
	pack[packStart+200] ^= 1
	d := state.with(firstPack, pack).lay(t)
	s := openStore(t, d, Options{})
	w := openWriter(t, s)
	require.Error(t, s.Verify(sum(lost)))
	_, err := w.Keep(sum(lost), 3000, opening(lost))
	require.NoError(t, err)
	require.NoError(t, w.Close()) // without a Flush
	for _, st := range []*Store{s, openStore(t, d, Options{})} {
		require.Error(t, st.Verify(sum(lost)))
		require.NoError(t, st.Verify(sum(other)))
	}
	w = openWriter(t, s)
	_, err = w.Keep(sum(lost), 3000, opening(lost))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	for _, st := range []*Store{s, openStore(t, d, Options{})} {
		require.NoError(t, st.Verify(sum(lost)))
		require.NoError(t, st.Verify(sum(other)))
	}
}
