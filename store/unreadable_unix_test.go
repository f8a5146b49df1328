//go:build unix

package store

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"decree/disk"

	"github.com/stretchr/testify/require"
)

// TestMappedIndexThatCannotBeRead cuts an index short that is mapped, which is for the processor what a bad sector
// is: the packs are asked, and who has numbers by it is told that they are worth nothing.
func TestMappedIndexThatCannotBeRead(t *testing.T) {
	all := manyObjects(7, 50)
	cut := func(t *testing.T, open func(disk.Dir) (*Store, error)) *Store {
		path := t.TempDir()
		d, err := disk.OS.OpenRoot(path)
		require.NoError(t, err)
		t.Cleanup(func() { d.Close() })
		w := openWriter(t, openStore(t, d, Options{FoldAt: 1}))
		for _, b := range all {
			_, err := w.PutBytes(b)
			require.NoError(t, err)
		}
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		s, err := open(d)
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		require.NotNil(t, s.base)
		require.NoError(t, os.Truncate(filepath.Join(path, baseName), 0))
		return s
	}
	plain := func(d disk.Dir) (*Store, error) { return Open(d, Options{FoldAt: 1}) }
	t.Run("look", func(t *testing.T) {
		s := cut(t, plain)
		for _, b := range all {
			require.Equal(t, b, content(t, s, sum(b)))
		}
	})
	t.Run("write", func(t *testing.T) {
		s := cut(t, plain)
		w := openWriter(t, s)
		_, err := w.PutBytes(noise(99, 100))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		problems, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, problems)
	})
	t.Run("all", func(t *testing.T) {
		s, n := cut(t, plain), 0
		for _, err := range s.Objects() {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, len(all), n)
	})
	t.Run("numbers", func(t *testing.T) {
		s := cut(t, OpenHeld)
		want := s.Numbers()
		for _, b := range all {
			want.Set(sum(b), 1)
		}
		nowhere := PackSink{Begin: func() (io.Writer, error) { return io.Discard, nil }, End: func([]byte) error { return nil }}
		require.ErrorIs(t, s.CopyPacks(t.Context(), want.Clone(), nowhere), errIndex)
		require.ErrorIs(t, s.Parts(want), errIndex)
		_, err := s.Without(want, new(Numbers))
		require.ErrorIs(t, err, errIndex)
	})
}

// TestPackWithAnotherName: the store was copied with hard links. The pack that is appended to becomes a file of its
// own, and what is written there is read from that one.
func TestPackWithAnotherName(t *testing.T) {
	path := t.TempDir()
	d, err := disk.OS.OpenRoot(path)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	s := openStore(t, d, Options{})
	put := func(b []byte) *Writer {
		w := openWriter(t, s)
		_, err := w.PutBytes(b)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		return w
	}
	require.NoError(t, put(noise(1, 100)).Close())
	require.NoError(t, os.Link(filepath.Join(path, firstPack), filepath.Join(path, "copy")))
	w := put(noise(2, 1<<20))
	require.Equal(t, noise(2, 1<<20), content(t, s, sum(noise(2, 1<<20))))
	require.NoError(t, w.Close())
}
