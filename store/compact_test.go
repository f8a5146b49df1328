package store

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"decree/disk"
	"decree/disk/disktest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var smallPacks = Options{PackSize: 4 << 10, BlockSize: 1 << 10, FoldAt: 10}

// packsOf returns a store of several packs and its contents; every third is to live.
func packsOf(t testing.TB) (state files, objects [][]byte, live func(Hash) bool) {
	for i := range 30 {
		objects = append(objects, noise(uint64(i), 300+i*10))
	}
	living := map[Hash]bool{}
	for i, b := range objects {
		living[sum(b)] = i%3 == 0
	}
	states := built(t, smallPacks, objects[:15], objects[15:])
	return states[1], objects, func(h Hash) bool { return living[h] }
}

// What was put since a Writer began lives, and what it is made of; what was put before and
// nobody names goes, wherever it is.
func TestCompactSince(t *testing.T) {
	d := files(nil).lay(t)
	s := openStore(t, d, smallPacks)
	put := func(contents ...[]byte) Mark {
		w, err := s.Writer(t.Context())
		require.NoError(t, err)
		for _, b := range contents {
			_, err := w.PutBytes(b)
			require.NoError(t, err)
		}
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		return w.Began()
	}
	nobody := func(Hash) bool { return false }
	before, large, after := noise(1, 3000), noise(2, 12<<20), noise(3, 3000)
	first := put(before)
	since := put(large, after)
	require.True(t, first.Before(since))
	require.False(t, since.Before(first))
	for range 2 { // the second time they lie elsewhere
		_, err := s.Compact(t.Context(), nobody, CompactOptions{Force: true, Since: since})
		require.NoError(t, err)
		require.False(t, s.Has(sum(before)))
		require.Equal(t, large, content(t, s, sum(large)))
		require.Equal(t, after, content(t, s, sum(after)))
	}
	_, err := s.Compact(t.Context(), nobody, CompactOptions{Force: true})
	require.NoError(t, err)
	st, err := s.Stats()
	require.NoError(t, err)
	require.Zero(t, st.Objects)
}

func TestCompact(t *testing.T) {
	state, objects, live := packsOf(t)
	d := state.lay(t)
	s := openStore(t, d, smallPacks)
	reader, checker := openStore(t, d, smallPacks), openStore(t, d, smallPacks)
	counter, sharer := openStore(t, d, smallPacks), openStore(t, d, smallPacks)
	held, _, err := reader.Open(sum(objects[0]))
	require.NoError(t, err)
	before, err := s.Stats()
	require.NoError(t, err)
	res, err := s.Compact(t.Context(), live, CompactOptions{})
	require.NoError(t, err)
	after, err := s.Stats()
	require.NoError(t, err)
	assert.Equal(t, before.Bytes-after.Bytes, res.Freed)
	assert.Greater(t, res.Freed, before.Bytes/2)
	assert.EqualValues(t, 20, res.Objects)
	for _, st := range []*Store{s, reader, openStore(t, d, smallPacks)} {
		for _, b := range objects {
			if live(sum(b)) {
				require.Equal(t, b, content(t, st, sum(b)))
			}
		}
	}
	counted, err := counter.Stats() // these two saw the packs that are gone
	require.NoError(t, err)
	assert.Equal(t, after, counted)
	_, err = sharer.Shares()
	require.NoError(t, err)
	assert.False(t, s.Has(sum(objects[1])))
	require.ErrorAs(t, s.Verify(sum(objects[1])), new(*MissingError))
	var buf bytes.Buffer
	_, err = buf.ReadFrom(held)
	require.NoError(t, err)
	assert.Equal(t, objects[0], buf.Bytes())
	for _, st := range []*Store{s, checker} { // checker saw the packs that are gone
		problems, err := st.Check(t.Context())
		require.NoError(t, err)
		assert.Empty(t, problems)
	}

	res, err = s.Compact(t.Context(), live, CompactOptions{})
	require.NoError(t, err)
	assert.Zero(t, res)
	res, err = s.Compact(t.Context(), func(Hash) bool { return false }, CompactOptions{})
	require.NoError(t, err)
	assert.Equal(t, after.Bytes, res.Freed, "an empty store takes no packs")
	w := openWriter(t, s)
	_, err = w.PutBytes(objects[1])
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	assert.Equal(t, objects[1], content(t, openStore(t, d, Options{}), sum(objects[1])))
}

// TestForget drops one object: it is in no file afterwards.
func TestForget(t *testing.T) {
	state, objects, _ := packsOf(t)
	d := state.lay(t)
	s := openStore(t, d, smallPacks)
	secret := objects[17]
	hidden := func() bool {
		for _, b := range snapshotOf(t, d) {
			if bytes.Contains(b, secret) {
				return false
			}
		}
		return true
	}
	live := func(h Hash) bool { return h != sum(secret) }
	res, err := s.Compact(t.Context(), live, CompactOptions{})
	require.NoError(t, err)
	require.Zero(t, res, "one object does not make a pack mostly dead")
	require.False(t, hidden(), "stored as it is, so it can be seen")
	res, err = s.Compact(t.Context(), live, CompactOptions{Force: true})
	require.NoError(t, err)
	assert.Equal(t, 1, res.Packs)
	assert.EqualValues(t, 1, res.Objects)
	assert.True(t, hidden())
	for i, b := range objects {
		if i != 17 {
			require.Equal(t, b, content(t, s, sum(b)))
		}
	}
}

func TestCompactKeepsChunks(t *testing.T) {
	d := openDir(t)
	s := openStore(t, d, Options{PackSize: 6 << 20})
	w := openWriter(t, s)
	kept, dropped := noise(1, 11<<20), noise(2, 10<<20)
	for _, b := range [][]byte{kept, dropped} {
		_, err := w.PutBytes(b)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	res, err := s.Compact(t.Context(), func(h Hash) bool { return h == sum(kept) }, CompactOptions{Force: true})
	require.NoError(t, err)
	assert.Greater(t, res.Freed, int64(9<<20))
	assert.True(t, bytes.Equal(kept, content(t, s, sum(kept))))
	assert.False(t, s.Has(sum(dropped)))
}

// TestCompactLeavesDamage keeps a pack with a broken block where it is, and says so.
func TestCompactLeavesDamage(t *testing.T) {
	state, objects, live := packsOf(t)
	pack := append([]byte(nil), state[firstPack]...)
	pack[packStart+3] ^= 1
	d := state.with(firstPack, pack).lay(t)
	s := openStore(t, d, smallPacks)
	res, err := s.Compact(t.Context(), live, CompactOptions{Force: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"00000001.pack"}, res.Kept)
	assert.Equal(t, pack, snapshotOf(t, d)[firstPack])
	for _, b := range objects[5:] {
		if live(sum(b)) {
			require.Equal(t, b, content(t, s, sum(b)))
		}
	}
}

// death is how a sweep ends the process.
type death int

const (
	fails  death = iota // it does not: the step returns an error
	killed              // later steps do not happen, the present write is torn
	power               // the same, and what was not flushed may be lost
)

// TestSweep fails each step of a put with its flush and of a compaction in turn:
// as an error, as the process's death, as a loss of power. What was flushed before is
// whole after it, an error surfaced, and the next Writer's work succeeds and leaves
// nothing wrong.
func TestSweep(t *testing.T) {
	state, objects, live := packsOf(t)
	more := [][]byte{noise(100, 900), prose(101, 5000), noise(102, 20)}
	put := func(s *Store, flushed *bool) error {
		w, err := s.Writer(context.Background())
		if err != nil {
			return err
		}
		for _, b := range more {
			if _, err := w.PutBytes(b); err != nil {
				return errors.Join(err, w.Close())
			}
		}
		if err := w.Flush(); err != nil {
			return errors.Join(err, w.Close())
		}
		*flushed = true
		return w.Close()
	}
	compact := func(s *Store, _ *bool) error {
		_, err := s.Compact(context.Background(), live, CompactOptions{})
		return err
	}
	fold := Options{PackSize: smallPacks.PackSize, BlockSize: smallPacks.BlockSize, FoldAt: 1}
	for _, c := range []struct {
		name string
		do   func(*Store, *bool) error
		o    Options
	}{{"put", put, smallPacks}, {"put and fold", put, fold}, {"compact", compact, smallPacks}} {
		for how, causes := range map[death][]error{fails: {syscall.ENOSPC, syscall.EIO}, killed: {disktest.ErrDead}, power: {disktest.ErrDead}} {
			for _, cause := range causes {
				n, fired := 0, true
				for ; fired; n++ {
					fired = false
					read := false // what cannot be read is as what is damaged
					rng := rand.New(rand.NewPCG(uint64(n), uint64(how)))
					m, d := state.disk(t)
					inject := disktest.InjectDir(d, func(s disktest.Step) disktest.Action {
						if s.N != n {
							return disktest.Action{}
						}
						fired = true
						if how == fails {
							read = cause == syscall.EIO && !s.Write
							return disktest.Action{Err: cause}
						}
						return disktest.Action{Die: true, Torn: rng.IntN(s.Size + 1)}
					})
					flushed := false
					s, err := Open(inject, c.o)
					if err == nil {
						err = c.do(s, &flushed)
						s.Close()
					}
					switch {
					case fired && !read:
						require.ErrorIs(t, err, cause, "%s, step %d", c.name, n)
					case !fired:
						require.NoError(t, err)
					}
					if how == power {
						d, err = m.Crash(rng).OpenRoot("/store")
						require.NoError(t, err)
					}
					afterFault(t, d, objects, more, live, c.name == "compact", flushed)
				}
				require.Greater(t, n, 20)
			}
		}
	}
}

func afterFault(t *testing.T, dir disk.Dir, objects, more [][]byte, live func(Hash) bool, compacted, flushed bool) {
	t.Helper()
	s, err := Open(dir, smallPacks)
	require.NoError(t, err)
	defer s.Close()
	check := func(s *Store, more [][]byte) {
		for _, b := range objects {
			if !compacted || live(sum(b)) {
				require.Equal(t, b, content(t, s, sum(b)))
			}
		}
		for _, b := range more {
			require.Equal(t, b, content(t, s, sum(b)))
		}
	}
	if flushed {
		check(s, more)
	} else {
		check(s, nil)
	}
	w, err := s.Writer(t.Context())
	require.NoError(t, err)
	for _, b := range more {
		_, err := w.PutBytes(b)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	check(s, more)
	problems, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	all := func(h Hash) bool {
		return live(h) || h == sum(more[0]) || h == sum(more[1]) || h == sum(more[2])
	}
	_, err = s.Compact(t.Context(), all, CompactOptions{Force: true})
	require.NoError(t, err)
	for _, b := range objects {
		if live(sum(b)) {
			require.Equal(t, b, content(t, s, sum(b)))
		} else {
			require.False(t, s.Has(sum(b)))
		}
	}
	fresh, err := Open(dir, smallPacks)
	require.NoError(t, err)
	defer fresh.Close()
	st, err := fresh.Stats()
	require.NoError(t, err)
	total := int64(0)
	for name, b := range snapshotOf(t, dir) {
		if len(name) > 6 && name[:6] == packsName+"/" {
			total += int64(len(b))
		}
	}
	require.Equal(t, st.Bytes, total, "no pack is left behind")
	require.EqualValues(t, 10+len(more), st.Objects)
}

// TestFullDisk fills the disk while a Writer works: the error comes out of Put or
// Flush, the space is given back at once, and the same Store works again afterwards.
func TestFullDisk(t *testing.T) {
	_, d := memDir(t)
	left := -1
	s := openStore(t, disktest.InjectDir(d, func(step disktest.Step) disktest.Action {
		if step.Op == "WriteAt" && left >= 0 {
			if left--; left < 0 {
				return disktest.Action{Err: syscall.ENOSPC}
			}
		}
		return disktest.Action{}
	}), Options{BlockSize: 4 << 10})
	w := openWriter(t, s)
	first, err := w.PutBytes(noise(1, 10<<10))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	kept := len(snapshotOf(t, d)[firstPack])
	left = 3
	for i := 0; err == nil; i++ {
		_, err = w.PutBytes(noise(uint64(10+i), 3<<10))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Len(t, snapshotOf(t, d)[firstPack], kept)
	_, err = w.PutBytes([]byte("x"))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, w.Flush(), syscall.ENOSPC)
	require.NoError(t, w.Close())
	assert.Equal(t, noise(1, 10<<10), content(t, s, first))
	w = openWriter(t, s)
	h, err := w.PutBytes(noise(10, 3<<10))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	assert.Equal(t, noise(10, 3<<10), content(t, s, h))
}

// TestFullDiskAtTheIndex: what a Flush has brought into the pack and not into the index, of which it is a part
// by its log or by a fold, is found by the same Store's next Writer.
func TestFullDiskAtTheIndex(t *testing.T) {
	for name, o := range map[string]Options{"log": {}, "fold": {FoldAt: 1}} {
		t.Run(name, func(t *testing.T) {
			_, d := memDir(t)
			full := false
			s := openStore(t, disktest.InjectDir(d, func(step disktest.Step) disktest.Action {
				if full && (step.Op == "WriteAt" || step.Op == "Write") && strings.Contains(step.Path, "/index") {
					return disktest.Action{Err: syscall.ENOSPC}
				}
				return disktest.Action{}
			}), o)
			put := func(b []byte, want error) {
				w := openWriter(t, s)
				_, err := w.PutBytes(b)
				require.NoError(t, err)
				require.ErrorIs(t, w.Flush(), want)
				require.NoError(t, w.Close())
			}
			put(noise(1, 10<<10), nil)
			full = true
			put(noise(2, 10<<10), syscall.ENOSPC)
			full = false
			put(noise(3, 10<<10), nil)
			for i := range uint64(3) {
				assert.Equal(t, noise(1+i, 10<<10), content(t, s, sum(noise(1+i, 10<<10))))
			}
			problems, err := s.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, problems)
		})
	}
}

// TestEarlyFlush fails the flushes that are made while a pack grows, each in
// turn: the error comes out though the system reports it only once.
func TestEarlyFlush(t *testing.T) {
	for n := range 3 {
		_, d := memDir(t)
		flushes := 0
		s := openStore(t, disktest.InjectDir(d, func(step disktest.Step) disktest.Action {
			if step.Op == "FileSync" {
				if flushes++; flushes == n {
					return disktest.Action{Err: syscall.EIO}
				}
			}
			return disktest.Action{}
		}), Options{BlockSize: 4 << 10})
		w := openWriter(t, s)
		w.early.step = 16 << 10
		err := error(nil)
		for i := 0; i < 100 && err == nil; i++ {
			_, err = w.PutBytes(noise(uint64(i), 3<<10))
		}
		if err == nil {
			err = w.Flush()
		}
		if n == 0 {
			require.NoError(t, err)
			require.Greater(t, flushes, 1)
			continue
		}
		require.ErrorIs(t, err, syscall.EIO)
		require.NoError(t, w.Close())
		require.False(t, s.Has(sum(noise(0, 3<<10))), "nothing is believed of a pack whose flush failed")
	}
}
