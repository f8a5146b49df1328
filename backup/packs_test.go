package backup

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk/disktest"
	"decree/store"
	"decree/tree"
)

// sendPack sends a pack with these bytes, as a backup does that has listed what is there.
func sendPack(t *testing.T, tt target.Target, data []byte) error {
	p := &Place{Target: tt, Name: "p"}
	c, err := p.packContents(context.Background(), nil, new(store.Numbers), func(tree.Hash, error) {})
	require.NoError(t, err)
	u := &upload{ctx: context.Background(), p: p, have: c.have, said: func(int64) {}, packs: map[tree.Hash]int64{}}
	defer u.abort()
	w, err := u.begin()
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, u.end([]byte("headers")))
	return u.ending.Wait()
}

// TestAPackTakesThePlaceOfADamagedOne: one with the name of what is sent again is replaced at once.
func TestAPackTakesThePlaceOfADamagedOne(t *testing.T) {
	dir, err := target.OpenDirectory(disktest.NewMem(), "/t", true)
	require.NoError(t, err)
	data := []byte("the bytes of a pack")
	name := (&Place{Name: "p"}).packName(tree.Sum(data))
	for _, there := range []string{"the bytes of a pock", "cut", "", "the bytes of a pack, and more"} {
		require.NoError(t, put(t.Context(), dir, name, strings.NewReader(there)))
		require.NoError(t, sendPack(t, dir, data), there)
		require.NoError(t, verify(t.Context(), dir, name, tree.Sum(data), int64(len(data))))
	}
}

// TestAnOrphanOfARecipientsOnlyWriter: a machine that has no identity cannot read the pack of a backup that
// died, once it has forgotten the key of that; it sends it again.
func TestAnOrphanOfARecipientsOnlyWriter(t *testing.T) {
	m := disktest.NewMem()
	memory, err := m.MkdirAll("/store", 0o700)
	require.NoError(t, err)
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	open := func() target.Target {
		dir, err := target.OpenDirectory(m, "/t", true)
		require.NoError(t, err)
		e, err := target.Encrypted(dir, target.Keys{Recipients: id.Recipient().String(), Memory: keyMemory{memory}})
		require.NoError(t, err)
		return e
	}
	data := []byte("the bytes of a pack")
	require.NoError(t, sendPack(t, open(), data))
	_, err = open().Swap(t.Context(), "p/"+manifestFile, []byte("{}"), "") // another backup, which needs other packs
	require.NoError(t, err)
	require.ErrorIs(t, verify(t.Context(), open(), (&Place{Name: "p"}).packName(tree.Sum(data)), tree.Sum(data), int64(len(data))), target.ErrNoIdentity)
	require.NoError(t, sendPack(t, open(), data))
}

// TestAPackThatFailedEndsTheNext: what is wrong with a pack is found while the next one is sent, which is then not kept.
func TestAPackThatFailedEndsTheNext(t *testing.T) {
	m := disktest.NewMem()
	dir, err := target.OpenDirectory(m, "/t", true)
	require.NoError(t, err)
	p := &Place{Target: &failing{Target: dir, now: true}, Name: "p"}
	u := &upload{ctx: t.Context(), p: p, packs: map[tree.Hash]int64{}, said: func(int64) {}}
	for _, want := range []error{nil, errLine} {
		w, err := u.begin()
		require.NoError(t, err)
		_, err = fmt.Fprintf(w, "a pack, then %v", want)
		require.NoError(t, err)
		require.ErrorIs(t, u.end(nil), want)
	}
	u.abort()
	require.Empty(t, u.packs)
	packs, err := m.OpenRoot("/t/p/packs")
	require.NoError(t, err)
	list, err := packs.List()
	require.NoError(t, err)
	require.Len(t, list, 1, "the first one, which may be another generation's, and nothing unfinished")
}

// counting counts the requests of ranges.
type counting struct {
	target.Target
	opened int
}

func (c *counting) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	c.opened++
	return c.Target.Open(ctx, name, offset, length)
}

// TestZipsAreReadInPieces: package zip reads a few KiB at a time, each of which would be a request of a remote target.
func TestZipsAreReadInPieces(t *testing.T) {
	dir, err := target.OpenDirectory(disktest.NewMem(), "/t", true)
	require.NoError(t, err)
	data := make([]byte, 5*aheadSize/2)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	p := &Place{Target: dir, Name: "p"}
	require.NoError(t, put(t.Context(), dir, p.archiveName("g"), bytes.NewReader(data)))
	c := &counting{Target: dir}
	p.Target = c
	r := p.archive(t.Context(), "g", int64(len(data)))
	got, err := io.ReadAll(bufio.NewReaderSize(io.NewSectionReader(r, 0, 1<<40), 4096))
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.Equal(t, 3, c.opened)
	_, err = r.ReadAt(make([]byte, 1), int64(len(data)))
	require.ErrorIs(t, err, io.EOF)
}
