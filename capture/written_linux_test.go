package capture

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWrittenThroughAMapping changes a file through a mapping, with its times set
// back to what they were, as a file system leaves them for half a minute or for
// ever: while somebody has it open it is read each time.
func TestWrittenThroughAMapping(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.req.start = always
		s.write("a", "text")
		s.write("b", "other")
		f, err := os.OpenFile(s.path("a"), os.O_RDWR, 0)
		require.NoError(t, err)
		data, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		data[0] = 'n' // the page is writable now: what follows sets no time
		require.NoError(t, s.capture().Commit())
		require.Equal(t, 2, s.store.puts)
		was, err := os.Stat(s.path("a"))
		require.NoError(t, err)
		data[0] = 'T'
		now, err := os.Stat(s.path("a"))
		require.NoError(t, err)
		require.Equal(t, was.ModTime(), now.ModTime(), "the system must not tell, else this tests nothing")
		r := s.capture()
		require.NoError(t, r.Commit())
		require.Len(t, s.changes(r), 1)
		require.Equal(t, 3, s.store.puts, "b is not read")
		require.NoError(t, unix.Munmap(data))
		require.NoError(t, s.capture().Commit())
		require.Equal(t, 4, s.store.puts, "once more, and now it is trusted")
		require.NoError(t, s.capture().Commit())
		require.Equal(t, 4, s.store.puts)
	})
}
