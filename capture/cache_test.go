//go:build unix

package capture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
	"decree/manifest"
	"decree/tree"
)

func (s *site) cacheFile() string { return filepath.Join(s.cache, cacheName) }

// someTree is a tree with a committed cache in which everything is trusted.
func someTree(t testing.TB) (*site, []byte, Hash) {
	s := newSite(t)
	s.req.start = always
	for i := range 30 {
		s.write(fmt.Sprintf("d%d/e%d/f%d", i%3, i%5, i), fmt.Sprint(i))
	}
	require.NoError(t, os.Symlink("d0", s.path("link")))
	require.NoError(t, s.capture().Commit())
	s.write("d1/late", "1")
	r := s.capture()
	require.NoError(t, r.Commit())
	data, err := os.ReadFile(s.cacheFile())
	require.NoError(t, err)
	return s, data, r.Tree
}

// mustHold captures with a cache of these bytes: it must find the tree as it is, and
// nothing of the cache may be believed that is not as it was.
func mustHold(t testing.TB, s *site, cache []byte, tree Hash) {
	require.NoError(t, os.WriteFile(s.cacheFile(), cache, 0o600))
	for _, writing := range []bool{false, true} {
		r := s.capture(func(q *Request) {
			if !writing {
				q.Writer = nil
			}
		})
		require.Equal(t, tree, r.Tree)
		items, err := manifest.Collect(r.Entries())
		require.NoError(t, err)
		id, err := treeID(items)
		require.NoError(t, err)
		require.Equal(t, tree, id)
		if writing {
			require.NoError(t, r.Commit())
		}
		require.NoError(t, r.Close())
	}
	r := s.capture()
	require.Equal(t, tree, r.Base)
	require.Zero(t, r.Read, "a good cache is there again")
	require.NoError(t, r.Close())
}

func TestDamagedCache(t *testing.T) {
	s, data, tree := someTree(t)
	mustHold(t, s, data, tree)
	for name, cache := range map[string][]byte{
		"empty": {}, "cut head": data[:headSize-1], "only head": data[:headSize], "no head": make([]byte, headSize),
		"zeros": make([]byte, len(data)), "torn end": data[:len(data)-9],
		"longer":  append(append([]byte{}, data...), "torn append of a capture that died"...),
		"garbage": []byte(fmt.Sprint(rand.New(rand.NewPCG(1, 1)).Perm(3000))),
	} {
		t.Run(name, func(t *testing.T) { mustHold(t, s, cache, tree) })
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		bad := append([]byte{}, data...)
		from := r.IntN(len(bad))
		switch r.IntN(3) {
		case 0:
			bad[from] ^= 1 << r.IntN(8)
		case 1: // a lost sector
			clear(bad[from&^511 : min(len(bad), from&^511+512)])
		default: // blocks in each other's place
			to := r.IntN(len(bad))
			n := min(200, len(bad)-from, len(bad)-to)
			copy(bad[to:to+n], data[from:from+n])
		}
		mustHold(t, s, bad, tree)
	}
}

// TestBarredCache: a cache that its user may not open any more is made anew.
func TestBarredCache(t *testing.T) {
	s, data, tree := someTree(t)
	for _, writing := range []bool{false, true} {
		r := s.capture(func(q *Request) {
			q.CacheDir = disktest.InjectDir(q.CacheDir, func(step disktest.Step) disktest.Action {
				if (step.Op == "Open" || step.Op == "OpenWrite") && filepath.Base(step.Path) == cacheName {
					return disktest.Action{Err: syscall.EACCES}
				}
				return disktest.Action{}
			})
			if !writing {
				q.Writer = nil
			}
		})
		require.Equal(t, tree, r.Tree)
		require.True(t, r.Base.IsZero())
		if writing {
			require.NoError(t, r.Commit())
		}
		require.NoError(t, r.Close())
	}
	now, err := os.ReadFile(s.cacheFile())
	require.NoError(t, err)
	mustHold(t, s, now, tree)
	require.NotEqual(t, data, now)
}

// TestOlderSlot: a commit that died while it wrote its slot leaves the one before.
func TestOlderSlot(t *testing.T) {
	s, data, tree := someTree(t)
	for _, at := range []int{0, slotAt} {
		bad := append([]byte{}, data...)
		clear(bad[at : at+slotSize])
		require.NoError(t, os.WriteFile(s.cacheFile(), bad, 0o600))
		r := s.capture()
		require.False(t, r.Base.IsZero())
		require.Equal(t, tree, r.Tree)
	}
}

func TestCacheOfAnotherRoot(t *testing.T) {
	s, data, _ := someTree(t)
	other := newSite(t)
	other.req.start = always
	other.write("x", "1")
	require.NoError(t, os.WriteFile(other.cacheFile(), data, 0o600))
	r := other.capture()
	require.True(t, r.Base.IsZero())
	require.Equal(t, naive2(t, other), mustItems(t, r))
	_ = s
}

func naive2(t *testing.T, s *site) []tree.Item { return naive(t, s.dir) }

func mustItems(t *testing.T, r *Result) []tree.Item {
	items, err := manifest.Collect(r.Entries())
	require.NoError(t, err)
	return items
}

// TestFold: the file stays within a small multiple of what lives in it.
func TestFold(t *testing.T) {
	s := newSite(t)
	for i := range 3000 {
		require.NoError(t, os.WriteFile(s.path(fmt.Sprint("f", i)), nil, 0o644))
	}
	largest := int64(0)
	for i := range 20 {
		s.write("f7", fmt.Sprint(i))
		r := s.capture()
		require.NoError(t, r.Commit())
		require.Len(t, mustItems(t, r), 3000, "the result outlives the fold")
		st, err := os.Stat(s.cacheFile())
		require.NoError(t, err)
		largest = max(largest, st.Size())
		if i > 0 {
			require.Equal(t, []string{"M f7"}, s.changed(r))
		}
	}
	live := int64(3000 * (recordSize + hashSize + 6))
	require.Less(t, largest, 5*live+foldFloor)
	require.Greater(t, largest, 3*live, "there was something to fold")
	left, err := os.ReadDir(s.cache)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// FuzzCache gives a capture a cache with fuzzed bytes, the checksums of its slots and
// blocks made right again in every other case: nothing may panic or run on for ever.
func FuzzCache(f *testing.F) {
	s, data, _ := someTree(f)
	f.Add(uint32(headSize+4), []byte{1, 2, 3, 4}, true)
	f.Add(uint32(20), []byte{0xff}, false)
	f.Fuzz(func(t *testing.T, at uint32, put []byte, fix bool) {
		bad := append([]byte{}, data...)
		from := int(at) % len(bad)
		copy(bad[from:], put)
		if fix {
			repair(bad)
		}
		require.NoError(t, os.WriteFile(s.cacheFile(), bad, 0o600))
		req := s.req
		req.Writer = nil
		req.Full = true
		r, err := Capture(t.Context(), req)
		if err != nil {
			return
		}
		manifest.Collect(r.Entries())
		r.Close()
	})
}

// repair recomputes all checksums that a block refers to its children by.
func repair(data []byte) {
	sums := map[int64]uint32{}
	end := int64(len(data))
	for off := int64(headSize); off+headerSize <= end; {
		n := int64(le.Uint32(data[off+hLen:]))
		if le.Uint32(data[off:]) != blockMagic || n < headerSize || off+n > end {
			return
		}
		b := block(data[off : off+n])
		if count := int64(b.count()); headerSize+count*(recordSize+hashSize) <= n {
			for i := range int(count) {
				if sum, ok := sums[b.child(i).off]; ok && b.kind(i) == kDir {
					le.PutUint32(b.rec(i)[rAux:], sum)
				}
			}
		}
		b.seal(b.sums())
		sums[off] = b.sum()
		off += (n + 7) &^ 7
	}
	for _, at := range []int{0, slotAt} {
		s, _ := decodeSlot(data[at:])
		if sum, ok := sums[s.root.off]; ok {
			s.root.sum = sum
			copy(data[at:], s.encode())
		}
	}
}
