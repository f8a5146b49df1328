package store

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestABlockIsReadByOneReader: who asks for a block that another reads waits for it; where that one kept none, each reads for itself.
func TestABlockIsReadByOneReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, at := &blockCache{}, place{pack: 1, off: 40, pos: 3}
		ask := func(got chan *decoded) {
			d, done := c.get(place{at.pack, at.off, 7})
			got <- d
			if d == nil {
				done()
			}
		}
		for _, keeps := range []bool{false, true} {
			d, done := c.get(at)
			require.Nil(t, d)
			got := make(chan *decoded, 2)
			go ask(got)
			go ask(got)
			synctest.Wait()
			require.Empty(t, got, "they read what is being read")
			if keeps {
				d = &decoded{at: place{pack: at.pack, off: at.off}}
				d.refs.Store(1)
				c.put(d)
			}
			done()
			require.Same(t, d, <-got)
			require.Same(t, d, <-got)
			synctest.Wait()
			require.Empty(t, c.coming)
		}
	})
}

// TestASmallBlockHasNoLargeBuffer: what a large content was read into does not come to blocks that are kept.
func TestASmallBlockHasNoLargeBuffer(t *testing.T) {
	s := openStore(t, openDir(t), Options{})
	w := openWriter(t, s)
	put := func(data []byte) Hash {
		h, err := w.PutBytes(data)
		require.NoError(t, err)
		return h
	}
	large := put(bytes.Repeat([]byte("large"), 1<<20))
	small := []Hash{put([]byte("a")), put([]byte("b"))}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	s.cache.forget()
	for range 20 {
		require.NoError(t, s.Verify(large))
		s.cache.forget()
		require.NoError(t, s.Verify(small[0]))
		e, ok, err := s.find(&small[0])
		require.NoError(t, err)
		require.True(t, ok)
		d, done := s.cache.get(e.place)
		require.NotNil(t, d, "it is kept")
		require.Nil(t, done)
		require.LessOrEqual(t, cap(d.raw), ordinary)
		d.release()
	}
}
