package backup

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk/disktest"
	"decree/store"
	"decree/tree"
)

// random is text that no compression makes shorter, always the same for a seed.
func random(seed byte) string {
	b := make([]byte, 1000)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // never an error
	return string(b)
}

// twin sends a pack that has one content alone.
func twin(t *testing.T, p *Place, text string) map[tree.Hash]int64 {
	dir, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	s, err := store.Open(dir, store.Options{})
	require.NoError(t, err)
	defer s.Close()
	writer, err := s.Writer(t.Context())
	require.NoError(t, err)
	h, err := writer.PutBytes([]byte(text))
	require.NoError(t, err)
	require.NoError(t, writer.Flush())
	require.NoError(t, writer.Close())
	held, err := store.OpenHeld(dir)
	require.NoError(t, err)
	defer held.Close()
	left := held.Numbers()
	left.Set(h, 1)
	u := &upload{ctx: t.Context(), p: p, packs: map[tree.Hash]int64{}, said: func(int64) {}}
	require.NoError(t, held.CopyPacks(t.Context(), left, store.PackSink{Begin: u.begin, End: u.end}))
	require.NoError(t, u.ending.Wait())
	return u.packs
}

// TestIndexesOfTwins: the indexes of two packs of one length that were exchanged are not believed, and are made anew: a generation that takes a
// content from one of these packs names the one that has it.
func TestIndexesOfTwins(t *testing.T) {
	w := newWorld(t)
	one, other := random(1), random(2)
	var first, second, ofFirst, ofSecond string
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		a, b := twin(t, place, one), twin(t, place, other)
		require.Equal(t, slices.Collect(maps.Values(a)), slices.Collect(maps.Values(b)), "they are as long as each other")
		for _, packs := range []map[tree.Hash]int64{a, b} {
			for h := range packs {
				place.Manifest.Condemned[h] = w.clk.UTC().Format(time.RFC3339)
				first, second = second, "target/"+place.indexName(h)
			}
		}
		require.NoError(t, place.commit(t.Context(), place.Manifest))
		ofFirst, ofSecond = w.read(first), w.read(second)
		return nil
	}))
	for i, content := range []string{one, other} {
		cut := 32 * i // an earlier decree has written indexes without the hash of their pack
		w.rewrite(first, func(string) string { return ofSecond[:len(ofSecond)-cut] })
		w.rewrite(second, func(string) string { return ofFirst[:len(ofFirst)-cut] })
		w.write("tree/a", content)
		require.NoError(t, w.with(func(o Options) error {
			_, err := generate(t.Context(), o)
			return err
		}))
		w.generations([]string{"one", "other"}[i])
		require.Equal(t, ofFirst, w.read(first))
		require.Equal(t, ofSecond, w.read(second))
	}
}

// asked counts how often bytes of packs are asked for, and how many.
type asked struct {
	target.Target
	packs int
	bytes int64
}

func (a *asked) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	if strings.HasSuffix(name, ".pack") {
		a.packs++
		a.bytes += length
	}
	return a.Target.Open(ctx, name, offset, length)
}

// TestIndexesOfAnEarlierDecree do not say which pack they are of: each costs one look at its pack, once.
func TestIndexesOfAnEarlierDecree(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		var now []string
		total := int64(0)
		for h, size := range place.Manifest.Packs {
			total += size
			name := "target/" + place.indexName(h)
			now = append(now, w.read(name))
			w.rewrite(name, func(s string) string { return s[:len(s)-len(h)] })
		}
		look := func() (*contents, int) {
			a := &asked{Target: o.Target}
			place.Target = a
			c, err := place.packContents(t.Context(), place.Manifest.Packs, new(store.Numbers), func(_ tree.Hash, err error) { require.NoError(t, err) })
			require.NoError(t, err)
			require.Less(t, a.bytes, total/2, "the header of one block each, and nothing behind it")
			return c, a.packs
		}
		c, times := look()
		require.Equal(t, len(now), times)
		require.Len(t, c.unindexed, len(now))
		require.NoError(t, c.reindex(t.Context()))
		for h := range place.Manifest.Packs {
			require.Contains(t, now, w.read("target/"+place.indexName(h)))
		}
		c, times = look()
		require.Zero(t, times)
		require.Empty(t, c.unindexed)
		return nil
	}))
}
