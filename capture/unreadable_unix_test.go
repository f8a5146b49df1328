//go:build unix

package capture

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// cutting is a cache's directory in which the cache is cut to a length as soon as it is mapped, which is for the
// processor what a bad sector is.
type cutting struct {
	disk.Dir
	file string
	to   int64
}

type cutFile struct {
	disk.File
	d *cutting
}

func (c *cutting) Open(name string) (disk.File, error) {
	f, err := c.Dir.Open(name)
	return &cutFile{f, c}, err
}

func (c *cutting) OpenWrite(name string, perm uint32) (disk.File, error) {
	f, err := c.Dir.OpenWrite(name, perm)
	return &cutFile{f, c}, err
}

func (c *cutting) Rename(old string, _ disk.Dir, name string) error {
	return c.Dir.Rename(old, c.Dir, name)
}

func (f *cutFile) Map() ([]byte, func() error, error) {
	data, release, err := f.File.Map()
	if err == nil {
		err = os.Truncate(f.d.file, f.d.to)
	}
	return data, release, err
}

// TestMappedCacheThatCannotBeRead: it is as one that is damaged, in its head and in its blocks.
func TestMappedCacheThatCannotBeRead(t *testing.T) {
	for _, to := range []int64{0, headSize} {
		for _, writing := range []bool{false, true} {
			s, _, id := someTree(t)
			r := s.capture(func(q *Request) {
				q.CacheDir = &cutting{q.CacheDir, s.cacheFile(), to}
				if !writing {
					q.Writer = nil
				}
			})
			require.Equal(t, id, r.Tree)
			if writing {
				require.NoError(t, r.Commit())
			}
			require.NoError(t, r.Close())
		}
		s, _, _ := someTree(t)
		before := s.moment()
		sights, err := OpenSightings(s.req.Root, &cutting{s.req.CacheDir, s.cacheFile(), to})
		require.NoError(t, err)
		require.NoError(t, sights.Look(t.Context(), before))
		_, known := sights.Was("d1/late")
		require.False(t, known)
		require.NoError(t, sights.Close())
		s, _, _ = someTree(t)
		sights, err = OpenSightings(s.req.Root, s.req.CacheDir)
		require.NoError(t, err)
		require.NoError(t, sights.Look(t.Context(), s.moment()))
		require.NoError(t, os.Truncate(s.cacheFile(), to))
		for _, p := range []tree.Path{"d1/late", "link"} {
			_, known = sights.Was(p)
			require.False(t, known)
		}
		require.NoError(t, sights.Close())
	}
}
