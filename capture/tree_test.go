//go:build unix

package capture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/manifest"
	"decree/store"
	"decree/tree"
)

// memStore is a Writer that remembers what it was given.
type memStore struct {
	mu   sync.Mutex
	data map[Hash][]byte
	puts int
	// The directories' objects.
	trees map[Hash][]byte
}

func newMemStore() *memStore {
	return &memStore{data: map[Hash][]byte{}, trees: map[Hash][]byte{}}
}

// Get and Put are those of the directories' objects.
func (s *memStore) Get(h Hash) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.trees[h]
	if !ok {
		return nil, os.ErrNotExist
	}
	return b, nil
}

func (s *memStore) Put(b []byte) (Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := tree.Sum(b)
	s.trees[h] = bytes.Clone(b)
	return h, nil
}

func (s *memStore) PutTree(b []byte) (Hash, error) { return s.Put(b) }

func (s *memStore) PutFile(f io.Reader, size int64) (Hash, int64, error) {
	b, err := io.ReadAll(f)
	if err != nil {
		return Hash{}, int64(len(b)), err
	}
	h, err := s.PutBytes(b)
	return h, int64(len(b)), err
}

func (s *memStore) PutBytes(b []byte) (Hash, error) {
	h := tree.Sum(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	s.data[h] = bytes.Clone(b)
	return h, nil
}

func (s *memStore) get(h Hash) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.data[h]
	if !ok {
		return nil, os.ErrNotExist
	}
	return b, nil
}

func (s *memStore) Has(h Hash) bool {
	_, content := s.get(h)
	_, object := s.Get(h)
	return content == nil || object == nil
}

// site is a tree and a store directory beside it.
type site struct {
	t     testing.TB
	dir   string
	cache string
	store *memStore
	req   Request
}

func newSite(t testing.TB) *site {
	dir := t.TempDir()
	s := &site{t: t, dir: filepath.Join(dir, "tree"), cache: filepath.Join(dir, "store"), store: newMemStore()}
	require.NoError(t, os.Mkdir(s.dir, 0o755))
	require.NoError(t, os.Mkdir(s.cache, 0o755))
	s.req = Request{Root: open(t, s.dir), CacheDir: open(t, s.cache), Writer: s.store, RuleData: s.store.get}
	return s
}

func open(t testing.TB, path string) disk.Dir {
	d, err := disk.OS.OpenRoot(path)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// write makes a file that is long settled.
func (s *site) write(name, content string) {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(filepath.Dir(s.path(name)), 0o755))
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(content), 0o644))
}

func (s *site) capture(change ...func(*Request)) *Result {
	s.t.Helper()
	r, err := s.try(change...)
	require.NoError(s.t, err)
	return r
}

func (s *site) try(change ...func(*Request)) (*Result, error) {
	req := s.req
	for _, c := range change {
		c(&req)
	}
	r, err := Capture(context.Background(), req)
	if err == nil {
		s.t.Cleanup(func() { r.Close() })
	}
	return r, err
}

// naive captures a tree in the plainest way.
func naive(t testing.TB, root string) []tree.Item {
	var files, dirs []tree.Item
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		rel, _ := filepath.Rel(root, path)
		if rel == "." {
			return nil
		}
		if d.Name() == ".git" || d.Name() == ".decree" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		st, err := os.Lstat(path)
		require.NoError(t, err)
		mode := uint32(st.Sys().(*syscall.Stat_t).Mode) & 0o7777 //nolint:unconvert // 16 bits elsewhere
		switch {
		case st.IsDir():
			dirs = append(dirs, tree.Item{Path: tree.Path(rel), Entry: tree.Entry{Type: tree.Dir, Mode: mode}})
		case st.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			files = append(files, tree.Item{Path: tree.Path(rel), Entry: manifest.Link(target)})
		case st.Mode().IsRegular():
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			files = append(files, tree.Item{Path: tree.Path(rel), Entry: tree.Entry{SHA256: sha256.Sum256(b), Size: int64(len(b)), Mode: mode}})
		}
		return nil
	})
	require.NoError(t, err)
	sortItems(files)
	sortItems(dirs)
	return append(files, dirs...)
}

// sumOnly is a Writer that stores nothing.
type sumOnly struct{}

func (sumOnly) PutFile(f io.Reader, size int64) (Hash, int64, error) {
	return sumOf(f, make([]byte, 32<<10))
}
func (sumOnly) PutBytes(b []byte) (Hash, error) { return tree.Sum(b), nil }
func (sumOnly) PutTree(b []byte) (Hash, error)  { return tree.Sum(b), nil }

// tick makes files until the file system's clock has moved on, so that no change after
// it can have the times of one before.
func (s *site) tick() {
	s.t.Helper()
	dir := open(s.t, s.t.TempDir())
	first, err := disk.Stamp(dir)
	require.NoError(s.t, err)
	for {
		in, err := disk.Stamp(dir)
		require.NoError(s.t, err)
		if in.Mtime > first.Mtime {
			return
		}
	}
}

// The store's own types fit.
var (
	_ Writer  = (*store.Writer)(nil)
	_ Objects = (*store.Store)(nil)
)
