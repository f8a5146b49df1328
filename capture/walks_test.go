//go:build unix

package capture

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// TestEditAtOnce edits a file again and again right after it was read: same length, same
// inode, mostly within one tick of the file system, so that its facts stay as they were.
func TestEditAtOnce(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		for i := range 100 {
			s.write("a", strconv.Itoa(i%10))
			r := s.capture()
			require.Equal(t, naive(t, s.dir), mustCollect(t, r), "edit %d", i)
			require.NoError(t, r.Commit())
		}
	})
}

// onFirst is a Writer that acts once, while the first file is open.
type onFirst struct {
	*memStore
	once sync.Once
	act  func()
}

func (w *onFirst) PutFile(f io.Reader, size int64) (Hash, int64, error) {
	w.once.Do(w.act)
	return w.memStore.PutFile(f, size)
}

// TestSwappedWhileReading puts links and a pipe in the places of a directory and of files
// that were listed already: nothing behind a link is read, and the pipe hangs nobody.
func TestSwappedWhileReading(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		outside := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o644))
		for _, name := range []string{"a", "d/f", "e/f", "v", "x", "y", "z"} {
			s.write(name, name)
		}
		w := &onFirst{memStore: s.store, act: func() {
			require.NoError(t, os.RemoveAll(s.path("d")))
			require.NoError(t, os.Symlink(outside, s.path("d")))
			for _, name := range []string{"v", "x", "y", "z"} {
				require.NoError(t, os.Remove(s.path(name)))
			}
			require.NoError(t, os.Symlink(filepath.Join(outside, "f"), s.path("x")))
			require.NoError(t, syscall.Mkfifo(s.path("y"), 0o600))
			s.write("z/below", "1")
		}}
		r := s.capture(func(q *Request) { q.Writer, q.Workers = w, 1 })
		require.Equal(t, naive(t, s.dir), mustCollect(t, r))
		require.Equal(t, []tree.Path{"y"}, r.Special)
		require.Empty(t, r.Unrecorded)
		require.False(t, s.store.Has(tree.Sum([]byte("secret"))))
		require.NoError(t, r.Commit())
		r = s.capture()
		require.Empty(t, s.changes(r))
	})
}

// TestWalksShareCache captures with a cache that was made where every directory is listed.
func TestWalksShareCache(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		for _, name := range []string{"a", "d/f", "d/g", "e-/x", "e/y"} {
			s.write(name, name)
		}
		require.NoError(t, os.Symlink("d/f", s.path("link")))
		s.req.start = always
		first := s.capture()
		require.NoError(t, first.Commit())
		puts := s.store.puts
		r := s.capture(func(q *Request) { unsteady(q) })
		require.Equal(t, first.Tree, r.Tree)
		require.Empty(t, s.changes(r))
		require.Equal(t, puts, s.store.puts, "nothing is read again")
		s.write("d/f", "changed")
		r = s.capture(func(q *Request) { unsteady(q) })
		require.Equal(t, []string{"M d/f"}, s.changed(r))
		items := mustCollect(t, r) // before the next capture writes over what was not committed
		require.Equal(t, mustCollect(t, s.capture(func(q *Request) { q.Full = true })), items)
	})
}
