package capture

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/tree"
)

// sparseFile makes a file of the given size that holds text at some places.
func sparseFile(t *testing.T, path string, size int64, at ...int64) {
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(size))
	for _, off := range at {
		_, err := f.WriteAt([]byte("text in between"), off)
		require.NoError(t, err)
	}
}

// TestHoles reads files with holes of many shapes: what is stored are their bytes.
func TestHoles(t *testing.T) {
	s := newSite(t)
	for name, at := range map[string][]int64{
		"nothing": {}, "begin": {0}, "end": {9<<20 - 15}, "middle": {4 << 20}, "odd": {1, 3<<20 + 77, 3<<20 + 300_000, 7<<20 - 3},
	} {
		sparseFile(t, filepath.Join(s.dir, name), 9<<20, at...)
	}
	res := s.capture()
	for it, err := range res.Entries() {
		require.NoError(t, err)
		data, err := os.ReadFile(filepath.Join(s.dir, string(it.Path)))
		require.NoError(t, err)
		assert.Equal(t, tree.Sum(data), it.Entry.SHA256, it.Path)
		assert.Equal(t, data, s.store.data[it.Entry.SHA256], it.Path)
	}
}

// TestHolesAreNotRead: of a file that is nearly all holes hardly more than its data is read, and its hash is right.
func TestHolesAreNotRead(t *testing.T) {
	s := newSite(t)
	const size = 64 << 20
	at := s.path("disk.img")
	sparseFile(t, at, size, 1, 32<<20, size-15)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(at, &st))
	if st.Blocks*512 > size/2 {
		t.Skip("the file system keeps no holes")
	}
	var read atomic.Int64
	fake := fakeDisk{steady: true, got: func(_ string, n int) { read.Add(int64(n)) }}
	res := s.capture(func(q *Request) { q.Root = fake.wrap(q.Root) })
	assert.Less(t, read.Load(), int64(8<<20))
	assert.GreaterOrEqual(t, read.Load(), int64(3*15))
	data, err := os.ReadFile(at)
	require.NoError(t, err)
	files := 0
	for it, err := range res.Entries() {
		require.NoError(t, err)
		files++
		assert.Equal(t, tree.Sum(data), it.Entry.SHA256)
		assert.True(t, bytes.Equal(data, s.store.data[it.Entry.SHA256]))
	}
	assert.Equal(t, 1, files)
}

// TestExtents asks for the extents of a file with one piece of data in a hole.
func TestExtents(t *testing.T) {
	dir := t.TempDir()
	const size = 1 << 40
	sparseFile(t, filepath.Join(dir, "disk.img"), size, 1<<39)
	f, err := open(t, dir).Open("disk.img")
	require.NoError(t, err)
	defer f.Close()
	until, hole, ok := disk.Extent(f, 0, sparseFrom)
	require.True(t, ok)
	if !hole {
		t.Skip("the file system keeps no holes")
	}
	assert.Equal(t, int64(1<<39), until)
	until, hole, ok = disk.Extent(f, until, sparseFrom)
	require.True(t, ok)
	assert.False(t, hole)
	assert.LessOrEqual(t, until, int64(1<<39+1<<20))
	until, hole, ok = disk.Extent(f, until, sparseFrom)
	require.True(t, ok)
	assert.True(t, hole)
	assert.GreaterOrEqual(t, until, int64(size))
}

// TestInterruptedInAFile ends a walk in the midst of a file that would take hours.
func TestInterruptedInAFile(t *testing.T) {
	s := newSite(t)
	sparseFile(t, filepath.Join(s.dir, "disk.img"), 1<<43)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := s.req
	req.Writer, req.CacheDir = nil, nil
	req.Progress = func(_ int, bytes int64) {
		if bytes > 0 {
			cancel()
		}
	}
	_, err := Capture(ctx, req)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, context.Canceled.Error(), err.Error(), "the interruption, and no file's fault")
}
