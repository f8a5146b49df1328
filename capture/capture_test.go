//go:build unix

package capture

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/manifest"
	"decree/tree"
)

// bothWalks runs a test where a directory's times tell whether it must be listed, and
// where every directory is.
func bothWalks(t *testing.T, test func(t *testing.T, s *site)) {
	for _, steady := range []bool{true, false} {
		t.Run(map[bool]string{true: "steady", false: "unsteady"}[steady], func(t *testing.T) {
			s := newSite(t)
			if !steady {
				unsteady(&s.req)
			}
			test(t, s)
		})
	}
}

// unsteady makes the tree one on a file system of which nothing is known.
func unsteady(q *Request) { q.Root = (&fakeDisk{}).wrap(q.Root) }

// paths returns the tree's paths in manifest order.
func paths(t *testing.T, r *Result) (all []string) {
	items, err := manifest.Collect(r.Entries())
	require.NoError(t, err)
	for _, it := range items {
		all = append(all, string(it.Path))
	}
	return all
}

// changes is what leads from the tree that the cache knew to the captured one.
func (s *site) changes(r *Result) []tree.Change {
	s.t.Helper()
	if r.Base.IsZero() {
		return nil
	}
	changes, err := tree.Reader{From: r.Objects(s.store)}.Compare(r.Base, r.Tree)
	require.NoError(s.t, err)
	return changes
}

func (s *site) changed(r *Result) (all []string) {
	for _, ch := range s.changes(r) {
		sign := "M "
		if ch.Old == nil {
			sign = "A "
		} else if ch.New == nil {
			sign = "D "
		}
		all = append(all, sign+string(ch.Path))
	}
	return all
}

var (
	never  = &threshold{near: -1 << 62, far: -1 << 62} // no time lies before it
	always = &threshold{near: 1 << 62, far: 1 << 62}
)

// TestRacyRule: facts that may be younger than the reading vouch for nothing.
func TestRacyRule(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("a", "1")
		s.req.start = never
		require.NoError(t, s.capture().Commit())
		require.Equal(t, 1, s.store.puts)
		r := s.capture()
		require.Equal(t, 2, s.store.puts, "an untrusted file is read again")
		require.Empty(t, s.changes(r))
		s.req.start = always
		require.NoError(t, s.capture().Commit())
		require.Equal(t, 3, s.store.puts, "and once more, and then it is trusted")
		require.NoError(t, s.capture().Commit())
		require.Equal(t, 3, s.store.puts)
		s.capture(func(q *Request) { q.Full = true })
		require.Equal(t, 4, s.store.puts)
	})
}

// TestALargeFileIsReadOnce: the facts of a large file that was just written vouch for it, since its reading begins later.
func TestALargeFileIsReadOnce(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	s.write("large", "1")
	require.NoError(t, os.Truncate(s.path("large"), worthWaiting))
	s.req.start = never
	require.NoError(t, s.capture().Commit())
	require.Equal(t, 2, s.store.puts)
	s.capture()
	require.Equal(t, 3, s.store.puts, "only the small one is read again")
	require.NoError(t, os.Chtimes(s.path("large"), time.Now(), time.Now().Add(-time.Hour)))
	s.capture()
	require.Equal(t, 5, s.store.puts, "what was touched since is")
}

// TestHiddenEdit changes a file behind unchanged facts: only the racy rule finds it.
func TestHiddenEdit(t *testing.T) {
	s := newSite(t)
	const when = 1_000_000
	fake := fakeDisk{stat: func(_ string, in *disk.Info) { in.Mtime, in.Ctime, in.Ino = when, when, 7 }}
	s.req.Root = fake.wrap(s.req.Root)
	s.write("a", "1")
	for _, c := range []struct {
		limit int64
		found bool
	}{{when - 1, true}, {when, true}, {when + 1, false}} {
		s.write("a", "1")
		require.NoError(t, s.capture(func(q *Request) { q.Full = true; q.start = &threshold{near: c.limit, far: c.limit} }).Commit())
		s.write("a", "2")
		r := s.capture(func(q *Request) { q.start = &threshold{near: when + 5, far: when + 5} })
		assert.Equal(t, c.found, len(s.changes(r)) == 1, "limit %d", c.limit)
	}
}

// TestWithoutChangeTimes changes a file behind unchanged facts, as one can on FAT by
// setting the time of its last write back: it is read each time.
func TestWithoutChangeTimes(t *testing.T) {
	for _, fat := range []bool{true, false} {
		s := newSite(t)
		fake := fakeDisk{fat: fat, stat: func(_ string, in *disk.Info) { in.Mtime, in.Ctime, in.Ino = 1, 1, 7 }}
		s.req.Root, s.req.start = fake.wrap(s.req.Root), always
		s.write("a", "1")
		require.NoError(t, s.capture().Commit())
		s.write("a", "2")
		assert.Equal(t, fat, len(s.changes(s.capture())) == 1)
	}
}

// TestChangeTimesAreTried does the same on a file system of which it is not known: one whose change time
// goes back with the time of the last write has none.
func TestChangeTimesAreTried(t *testing.T) {
	for _, mtimeAlone := range []bool{true, false} {
		s := newSite(t)
		fake := fakeDisk{fuse: true, stat: func(at string, in *disk.Info) {
			if mtimeAlone {
				in.Ctime = in.Mtime
			}
			if at == "a" {
				in.Mtime, in.Ctime, in.Ino = 1, 1, 7
			}
		}}
		s.req.Root = fake.wrap(s.req.Root)
		tried := s.req
		tried.CacheDir = fake.wrap(s.req.CacheDir)
		start := startOf(&tried)
		assert.Equal(t, !mtimeAlone, start.keeps)
		left, err := os.ReadDir(s.cache)
		require.NoError(t, err)
		assert.Empty(t, left, "the probe is removed")
		start.near = math.MaxInt64
		s.req.start = &start
		s.write("a", "1")
		require.NoError(t, s.capture().Commit())
		s.write("a", "2")
		assert.Equal(t, mtimeAlone, len(s.changes(s.capture())) == 1)
	}
}

func TestThreshold(t *testing.T) {
	th := threshold{dev: 1, near: 100, far: 50}
	for _, c := range []struct {
		dev          uint64
		mtime, ctime int64
		want         bool
	}{{1, 99, 99, true}, {1, 100, 99, false}, {1, 99, 100, false}, {2, 49, 49, true}, {2, 60, 40, false}} {
		assert.Equal(t, c.want, th.trusts(&disk.Info{Dev: c.dev, Mtime: c.mtime, Ctime: c.ctime}), c)
	}
	assert.Equal(t, disk.FineTick, disk.TickOf(1_700_000_000_123_456_789))
	for _, mtime := range []int64{1_700_000_000_000_000_000, 1_700_000_000_120_000_000} { // FAT, exFAT
		assert.Equal(t, disk.CoarseTick, disk.TickOf(mtime))
	}
	s := newSite(t)
	s.write("now", "")
	in, err := s.req.Root.Stat("now")
	require.NoError(t, err)
	start := startOf(&s.req)
	assert.False(t, start.trusts(&in), "a file just made is too young")
	assert.Equal(t, in.Dev, start.dev)
	left, err := os.ReadDir(s.cache)
	require.NoError(t, err)
	assert.Empty(t, left, "the probe is removed")
}

// TestEachFactCounts changes one fact at a time.
func TestEachFactCounts(t *testing.T) {
	s := newSite(t)
	var change func(in *disk.Info)
	fake := fakeDisk{stat: func(at string, in *disk.Info) {
		*in = disk.Info{Kind: in.Kind, Mode: in.Mode, Size: in.Size, Mtime: 5, Ctime: 5, Dev: 3, Ino: 4}
		if at == "a" && change != nil {
			change(in)
		}
	}}
	s.req.Root, s.req.start = fake.wrap(s.req.Root), always
	s.write("a", "1")
	for name, c := range map[string]func(*disk.Info){
		"mtime": func(in *disk.Info) { in.Mtime++ }, "ctime": func(in *disk.Info) { in.Ctime++ },
		"dev": func(in *disk.Info) { in.Dev++ }, "ino": func(in *disk.Info) { in.Ino++ },
		"mode": func(in *disk.Info) { in.Mode ^= 1 },
	} {
		change = nil
		require.NoError(t, s.capture().Commit())
		puts := s.store.puts
		require.NoError(t, s.capture().Commit())
		require.Equal(t, puts, s.store.puts)
		change = c
		require.NoError(t, s.capture().Commit())
		require.Equal(t, puts+1, s.store.puts, name)
	}
}

func TestWhatIsRecorded(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("src/main.go", "x")
		s.write("src/.git", "gitdir: elsewhere")
		s.write(".git/config", "x")
		s.write("src/deep/.decree/y", "x")
		s.write("store/pack", "x")
		require.NoError(t, os.Mkdir(s.path("empty"), 0o700))
		require.NoError(t, os.Symlink("src", s.path("link")))
		require.NoError(t, os.Symlink("/nowhere", s.path("dangling")))
		require.NoError(t, syscall.Mkfifo(s.path("src/pipe"), 0o600))
		store, err := s.req.Root.Stat("store")
		require.NoError(t, err)
		s.req.Exclude = []disk.Info{store}
		for range 2 {
			r := s.capture()
			require.Equal(t, []string{"dangling", "link", "src/main.go", "empty", "src", "src/deep"}, paths(t, r))
			require.Equal(t, []tree.Path{"src/pipe"}, r.Special)
			require.NoError(t, r.Commit())
		}
		require.NoError(t, os.Rename(s.path("store"), s.path("src/moved")))
		r := s.capture()
		require.Empty(t, s.changes(r), "the store is left out wherever it lies")
		s.write("store/new", "x")
		r = s.capture()
		require.Equal(t, []string{"A store", "A store/new"}, s.changed(r))
	})
}

// TestReplaced puts other things in the place of a directory and of a file.
func TestReplaced(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("d/f", "1")
		s.write("d/g", "1")
		s.write("d-", "1")
		s.write("e", "1")
		outside := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o644))
		require.NoError(t, s.capture().Commit())

		require.NoError(t, os.Rename(s.path("d"), s.path("old")))
		require.NoError(t, os.Symlink(outside, s.path("d")))
		r := s.capture()
		require.Equal(t, []string{"M d", "D d/f", "D d/g", "A old", "A old/f", "A old/g"}, s.changed(r))
		require.Equal(t, tree.Dir, s.changes(r)[0].Old.Type)
		require.Equal(t, tree.Symlink, s.changes(r)[0].New.Type)
		require.NoError(t, r.Commit())

		require.NoError(t, os.Remove(s.path("d")))
		require.NoError(t, os.Rename(s.path("old"), s.path("d")))
		require.NoError(t, os.Remove(s.path("e")))
		s.write("e/below", "1")
		r = s.capture()
		require.Equal(t, []string{"M d", "A d/f", "A d/g", "M e", "A e/below", "D old", "D old/f", "D old/g"}, s.changed(r))
		require.NoError(t, r.Commit())

		s.write("d2/f", "2")
		s.write("d2/g", "1")
		require.NoError(t, os.RemoveAll(s.path("d")))
		require.NoError(t, os.Rename(s.path("d2"), s.path("d")))
		r = s.capture()
		require.Equal(t, []string{"M d/f"}, s.changed(r))
	})
}

func TestUnreadable(t *testing.T) {
	s := newSite(t)
	fake := &fakeDisk{refuse: map[string]error{}}
	s.req.Root = fake.wrap(s.req.Root)
	s.write("a", "1")
	s.write("d/x", "1")
	s.write("d/e/y", "1")
	s.write("z", "1")
	before := s.capture()
	require.NoError(t, before.Commit())
	s.write("a", "22")
	s.write("d/x", "22")
	s.write("n/new", "1")

	for _, at := range []string{"a", "d", "d/", "n"} {
		fake.refuse = map[string]error{at: eacces}
		path := strings.TrimSuffix(at, "/")
		_, err := s.try()
		var unreadable *UnreadableError
		require.ErrorAs(t, err, &unreadable, at)
		require.Equal(t, tree.Path(path), unreadable.Path)
		require.ErrorIs(t, err, eacces)
		require.Equal(t, path+": permission denied", err.Error())
	}

	fake.refuse = map[string]error{"a": eacces, "d": eacces, "n": eacces}
	r := s.capture(func(q *Request) { q.AfterRun = true })
	require.Equal(t, []tree.Path{"a", "d", "n"}, r.Unrecorded)
	require.Equal(t, []string{"A n"}, s.changed(r), "what was recorded does not look deleted")
	require.Equal(t, []string{"a", "d/e/y", "d/x", "z", "d", "d/e", "n"}, paths(t, r))
	require.Equal(t, before.Files, r.Files)
	require.NoError(t, r.Commit())

	fake.refuse = map[string]error{}
	r = s.capture()
	require.Equal(t, []string{"M a", "M d/x", "A n/new"}, s.changed(r), "found out once it can be read")
	require.NoError(t, r.Commit())

	s.write("a", "333")
	fake.refuse = map[string]error{"a": eacces, "d/e": eacces}
	r = s.capture(func(q *Request) { q.SkipUnreadable = true })
	require.Equal(t, []tree.Path{"a", "d/e"}, r.Unrecorded)
	require.Equal(t, []string{"d/x", "n/new", "z", "d", "d/e", "n"}, paths(t, r))
	require.NoError(t, r.Commit())
	fake.refuse = map[string]error{}
	r = s.capture()
	require.Equal(t, []string{"A a", "A d/e/y"}, s.changed(r), "what was missed is found by the next")
}

// TestListedButNotSearched is a directory with its mode 0644: its names can be read, and
// nothing is known of what they are.
func TestListedButNotSearched(t *testing.T) {
	s := newSite(t)
	fake := &fakeDisk{refuse: map[string]error{}}
	s.req.Root = fake.wrap(s.req.Root)
	s.write("d/x", "1")
	s.write("d/e/y", "1")
	require.NoError(t, s.capture().Commit())
	s.write("d/new/z", "1")
	for _, at := range []string{"d/x", "d/e", "d/new"} {
		fake.refuse[at], fake.refuse[at+"?"] = eacces, eacces
	}
	_, err := s.try()
	require.ErrorIs(t, err, eacces)
	r := s.capture(func(q *Request) { q.AfterRun = true })
	require.Subset(t, r.Unrecorded, []tree.Path{"d/e", "d/new"})
	require.Empty(t, s.changed(r), "what was recorded does not look deleted")
	require.NoError(t, r.Commit())
	r = s.capture(func(q *Request) { q.SkipUnreadable = true })
	require.Equal(t, []string{"d"}, paths(t, r))
	require.NoError(t, r.Commit())
	fake.refuse = map[string]error{}
	require.Equal(t, []string{"A d/e", "A d/e/y", "A d/new", "A d/new/z", "A d/x"}, s.changed(s.capture()), "found out once it can be read")
}

func TestRunsOutOfDescriptors(t *testing.T) {
	s := newSite(t)
	s.write("d/x", "1")
	for _, at := range []string{"d", "d/x"} {
		fake := &fakeDisk{refuse: map[string]error{at: syscall.EMFILE}}
		_, err := s.try(func(q *Request) { q.Root = fake.wrap(s.req.Root); q.AfterRun = true })
		require.ErrorIs(t, err, syscall.EMFILE, "it must not pass for a file that cannot be read")
	}
}

// TestChangingFile changes a file while it is read, some of the times or always.
func TestChangingFile(t *testing.T) {
	for times := range 6 {
		s := newSite(t)
		s.write("a", "0")
		left := times
		fake := &fakeDisk{reading: func(at string) error {
			if left > 0 {
				left--
				s.write("a", strings.Repeat("x", 2+left))
			}
			return nil
		}}
		s.req.Root = fake.wrap(s.req.Root)
		s.req.Writer = readOnce1{s.store}
		r, err := s.try()
		if times < readAttempts {
			require.NoError(t, err, times)
			require.Equal(t, naive(t, s.dir), mustCollect(t, r))
			continue
		}
		var changing *ChangingError
		require.ErrorAs(t, err, &changing)
		require.Equal(t, tree.Path("a"), changing.Path)
		left = times
		r = s.capture(func(q *Request) { q.AfterRun = true })
		require.Equal(t, []tree.Path{"a"}, r.Unrecorded)
		require.Empty(t, paths(t, r))
	}
}

// readOnce1 reads in one call, so that a hook is called once a reading.
type readOnce1 struct{ *memStore }

func (w readOnce1) PutFile(f io.Reader, size int64) (Hash, int64, error) {
	b := make([]byte, 100)
	n, err := f.Read(b)
	if err != nil && err != io.EOF {
		return Hash{}, 0, err
	}
	h, err := w.PutBytes(b[:n])
	return h, int64(n), err
}

func mustCollect(t *testing.T, r *Result) []tree.Item {
	items, err := manifest.Collect(r.Entries())
	require.NoError(t, err)
	return items
}

func TestReadError(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	fake := &fakeDisk{reading: func(string) error { return syscall.EIO }}
	s.req.Root = fake.wrap(s.req.Root)
	_, err := s.try()
	var unreadable *UnreadableError
	require.ErrorAs(t, err, &unreadable)
	r := s.capture(func(q *Request) { q.AfterRun = true })
	require.Equal(t, []tree.Path{"a"}, r.Unrecorded)
}

// TestStoreError: no space for the store is never taken for a file that cannot be read.
func TestStoreError(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("a", "1")
		_, err := s.try(func(q *Request) { q.Writer = fullStore{}; q.AfterRun = true })
		require.ErrorIs(t, err, syscall.ENOSPC)
		s.write(".gitignore", "x")
		_, err = s.try(func(q *Request) { q.Writer = fullStore{}; q.AfterRun = true })
		require.ErrorIs(t, err, syscall.ENOSPC)
	})
}

type fullStore struct{}

func (fullStore) PutFile(f io.Reader, _ int64) (Hash, int64, error) {
	return Hash{}, 0, fmt.Errorf("pack: %w", syscall.ENOSPC)
}
func (fullStore) PutBytes([]byte) (Hash, error) {
	return Hash{}, fmt.Errorf("pack: %w", syscall.ENOSPC)
}
func (fullStore) PutTree([]byte) (Hash, error) {
	return Hash{}, fmt.Errorf("pack: %w", syscall.ENOSPC)
}

// TestVanishing removes things between the listing and the look at them.
func TestVanishing(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"a", "b", "d/x", "e"} {
		s.write(name, "1")
	}
	fake := &fakeDisk{
		listed: func(dir string, ents []disk.Entry) []disk.Entry {
			if dir == "" {
				os.Remove(s.path("a"))
				os.RemoveAll(s.path("d"))
			}
			return ents
		},
		opened: func(at string) {
			if at == "b" {
				os.Remove(s.path("b"))
			}
		},
	}
	s.req.Root = fake.wrap(s.req.Root)
	r := s.capture()
	require.Equal(t, []string{"e"}, paths(t, r))
	require.Empty(t, r.Unrecorded)
	require.NoError(t, r.Commit())
	fake.listed = nil
	s.write("a", "1")
	require.Equal(t, []string{"A a"}, s.changed(s.capture()))
}

// TestReplacedInBetween makes a directory a file and the other way round between the
// listing and the look at them; names are chosen so that the order changes too.
func TestReplacedInBetween(t *testing.T) {
	for _, workers := range []int{1, 4} {
		s := newSite(t)
		for _, name := range []string{"a", "a-", "a0", "b/x", "b-", "b0", "c"} {
			s.write(name, "1")
		}
		fake := &fakeDisk{listed: func(dir string, ents []disk.Entry) []disk.Entry {
			if dir == "" {
				os.Remove(s.path("a"))
				s.write("a/y", "2")
				os.RemoveAll(s.path("b"))
				s.write("b", "3")
				os.Remove(s.path("c"))
				os.Symlink("b", s.path("c"))
			}
			return ents
		}}
		s.req.Root, s.req.Workers = fake.wrap(s.req.Root), workers
		r := s.capture()
		require.Equal(t, naive(t, s.dir), mustCollect(t, r))
		require.NoError(t, r.Commit())
		fake.listed = nil
		r = s.capture()
		require.Empty(t, s.changes(r))
		require.Equal(t, naive(t, s.dir), mustCollect(t, r))
	}
}

// TestUnknownKinds lists as file systems do that keep no kinds in directories.
func TestUnknownKinds(t *testing.T) {
	s := newSite(t)
	s.write("d/a", "1")
	require.NoError(t, os.Symlink("d", s.path("l")))
	require.NoError(t, syscall.Mkfifo(s.path("p"), 0o600))
	fake := &fakeDisk{listed: func(dir string, ents []disk.Entry) []disk.Entry {
		for i := range ents {
			ents[i].Kind = disk.Unknown
		}
		return ents
	}}
	s.req.Root = fake.wrap(s.req.Root)
	for range 2 {
		r := s.capture()
		require.Equal(t, naive(t, s.dir), mustCollect(t, r))
		require.Equal(t, []tree.Path{"p"}, r.Special)
		require.NoError(t, r.Commit())
	}
}

// TestDoubleListing: a directory that is changed while it is listed can give a name twice.
func TestDoubleListing(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	s.write("d/b", "1")
	fake := &fakeDisk{listed: func(_ string, ents []disk.Entry) []disk.Entry { return append(ents, ents...) }}
	s.req.Root = fake.wrap(s.req.Root)
	for range 2 {
		r := s.capture()
		require.Equal(t, naive(t, s.dir), mustCollect(t, r))
		require.NoError(t, r.Commit())
		fake.listed = nil
	}
}

// TestUnlistedDirectories: where a directory's times vouch for its names, each change of
// a name is found all the same.
func TestUnlistedDirectories(t *testing.T) {
	s := newSite(t)
	s.req.start = always
	for _, name := range []string{"d/a", "d/b", "d/sub/c"} {
		s.write(name, "1")
	}
	require.NoError(t, s.capture().Commit())
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return os.WriteFile(s.path("d/new"), nil, 0o644) }, []string{"A d/new"}},
		{func() error { return os.Rename(s.path("d/a"), s.path("d/b")) }, []string{"D d/a"}},
		{func() error { return os.Rename(s.path("d/sub"), s.path("d/sub2")) }, []string{"D d/sub", "D d/sub/c", "A d/sub2", "A d/sub2/c"}},
		{func() error { return os.Chmod(s.path("d"), 0o700) }, []string{"M d"}},
		{func() error { return os.WriteFile(s.path("d/sub2/.gitignore"), []byte("c"), 0o644) }, []string{"A d/sub2/.gitignore", "D d/sub2/c"}},
		{func() error { return os.WriteFile(s.path("d/sub2/.gitignore"), []byte("x"), 0o644) }, []string{"M d/sub2/.gitignore", "A d/sub2/c"}},
		{func() error { return os.Remove(s.path("d/new")) }, []string{"D d/new"}},
	} {
		s.tick()
		require.NoError(t, step.do())
		r := s.capture()
		require.Equal(t, step.want, s.changed(r))
		require.NoError(t, r.Commit())
		r = s.capture()
		require.Empty(t, s.changes(r))
		require.NoError(t, r.Commit())
	}
}

func TestForget(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	require.NoError(t, Forget(s.req.CacheDir))
	require.NoError(t, s.capture().Commit())
	require.NoError(t, Forget(s.req.CacheDir))
	require.True(t, s.capture().Base.IsZero())
}

func TestLimitsAndLarge(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.write("a", "12345")
		s.write("b", "12345")
		for _, l := range []Limits{{MaxFiles: 1}, {MaxBytes: 9}} {
			_, err := s.try(func(q *Request) { q.Limits = l })
			var limit *LimitError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, 2, limit.Files)
			require.Equal(t, int64(10), limit.Bytes)
			require.Zero(t, s.store.puts, "refused before a file is read")
		}
		require.NoError(t, s.capture(func(q *Request) { q.Limits = Limits{MaxFiles: 2, MaxBytes: 10} }).Commit())
		s.write("c", "")
		s.capture(func(q *Request) { q.Limits = Limits{MaxFiles: 2} }) // not the first
		require.NoError(t, os.Truncate(s.path("c"), LargeFile+1))
		r := s.capture(func(q *Request) { q.Writer = nil })
		require.Equal(t, []Large{{"c", LargeFile + 1}}, r.Large)
	})
}

// TestMaxFile asks before a file that is too large is read, and leaves one that comes later.
func TestMaxFile(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		capped := func(q *Request) { q.MaxFile = 10 }
		s.write("small", "0123456789")
		s.write("d/large", "0123456789A")
		_, err := s.try(capped)
		var limit *LimitError
		require.ErrorAs(t, err, &limit)
		require.Equal(t, []Unread{{Large{"d/large", 11}, false}}, limit.TooLarge)
		require.Zero(t, s.store.puts, "refused before a file is read")
		require.NoError(t, s.capture().Commit())

		s.write("d/large", "0123456789AB")
		r := s.capture(capped)
		require.Empty(t, r.Unrecorded, "it is known as a large one")
		require.NoError(t, r.Commit())

		s.write("another", "0123456789A")
		s.write("small", "0123456789A")
		_, err = s.try(capped)
		require.ErrorAs(t, err, &limit)
		require.Equal(t, []Unread{{Large{"another", 11}, false}, {Large{"small", 11}, true}}, limit.TooLarge)
		r = s.capture(capped, func(q *Request) { q.AfterRun = true })
		require.Equal(t, []tree.Path{"another", "small"}, r.Unrecorded)
		require.Equal(t, limit.TooLarge, r.TooLarge)
		require.Empty(t, s.changes(r), "what is not read keeps its entry")
	})
}

// TestBiggest names what holds the most, where it branches.
func TestBiggest(t *testing.T) {
	s := newSite(t)
	for i := range 8 {
		s.write(fmt.Sprintf("vendor/all/d%d/f", i), strings.Repeat("x", 100*i+1))
	}
	_, err := s.try(func(q *Request) { q.Limits.MaxFiles = 1 })
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.Len(t, limit.Biggest, 5)
	require.Equal(t, Part{"vendor/all/d7/", 1, 701}, limit.Biggest[0])
	require.Equal(t, Part{"vendor/all/d3/", 1, 301}, limit.Biggest[4])
}

func TestWideDirectory(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		for i := range 3*lookBatch + 7 {
			require.NoError(t, os.WriteFile(s.path(fmt.Sprint("f", i)), []byte(fmt.Sprint(i%7)), 0o644))
		}
		r := s.capture()
		require.Equal(t, naive(t, s.dir), mustCollect(t, r))
		require.NoError(t, r.Commit())
		s.write("f1500", "changed")
		require.NoError(t, os.Remove(s.path("f2500")))
		r = s.capture()
		require.Equal(t, []string{"M f1500", "D f2500"}, s.changed(r))
	})
}

// TestDeepTree goes down where no path fits in a system call any more, with few
// descriptors.
func TestDeepTree(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		const depth = 2100
		_, err := s.req.Root.OpenDir(".")
		require.Error(t, err, "a handle takes plain names only")
		dir := s.req.Root
		for i := range depth {
			require.NoError(t, dir.Mkdir("d", 0o755))
			next, err := dir.OpenDir("d")
			require.NoError(t, err)
			if i > 0 {
				dir.Close()
			}
			dir = next
		}
		f, err := dir.Create("f", 0o644)
		require.NoError(t, err)
		f.Close()
		dir.Close()
		var old syscall.Rlimit
		require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 400, Max: old.Max}))
		defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)
		for range 2 {
			r := s.capture()
			require.Equal(t, depth, r.Dirs)
			require.Equal(t, 1, r.Files)
			require.Len(t, paths(t, r), depth+1)
			require.NoError(t, r.Commit())
		}
	})
}

func TestCancelled(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	ctx, cancel := context.WithCancel(context.Background())
	fake := &fakeDisk{listed: func(_ string, ents []disk.Entry) []disk.Entry { cancel(); return ents }}
	s.req.Root = fake.wrap(s.req.Root)
	_, err := Capture(ctx, s.req)
	require.ErrorIs(t, err, context.Canceled)
}

func TestProgress(t *testing.T) {
	s := newSite(t)
	s.write("a", "12")
	files, size := 0, int64(0)
	s.capture(func(q *Request) { q.Progress = func(f int, b int64) { files, size = f, b } })
	assert.Equal(t, 1, files)
	assert.Equal(t, int64(2), size)
}

func TestReadOnlyWritesNothing(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	require.NoError(t, s.capture().Commit())
	before, err := os.ReadFile(filepath.Join(s.cache, cacheName))
	require.NoError(t, err)
	s.write("b", "1")
	r := s.capture(func(q *Request) { q.Writer = nil })
	require.Equal(t, []string{"A b"}, s.changed(r))
	require.Error(t, r.Commit())
	after, err := os.ReadFile(filepath.Join(s.cache, cacheName))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, 1, s.store.puts)
}

func TestCheckStore(t *testing.T) {
	s := newSite(t)
	s.req.start = always
	s.write("a", "1")
	require.NoError(t, s.capture().Commit())
	clear(s.store.data)
	s.capture()
	require.Empty(t, s.store.data, "the cache is believed")
	s.capture(func(q *Request) { q.Store, q.CheckStore = s.store, true })
	require.Len(t, s.store.data, 1)
}

// TestTargetsKeepTo32Bits: the offsets of a directory's link targets must not wrap.
func TestTargetsKeepTo32Bits(t *testing.T) {
	const links = 4 << 8
	b := newBlock(links, links)
	long, targets := strings.Repeat("x", 4<<20), map[int]string{}
	for i := range links - 1 {
		b.setName(i, "n", kLink)
		targets[i] = long
	}
	require.True(t, b.holds(targets))
	targets[links-1] = long
	require.False(t, b.holds(targets))
	w := &worker{}
	var unreadable *UnreadableError
	require.ErrorAs(t, w.complete(&node{buf: b, path: "d", targets: targets}), &unreadable)
}
