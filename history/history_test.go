package history

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"decree/disk"
	"decree/project"
	"decree/tree"

	"github.com/stretchr/testify/require"
)

// shelf is a store in memory.
type shelf struct {
	mu      sync.Mutex
	objects map[tree.Hash][]byte
}

func newShelf() *shelf { return &shelf{objects: map[tree.Hash][]byte{}} }

func (s *shelf) Has(h tree.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.objects[h]
	return ok
}

func (s *shelf) Open(h tree.Hash) (io.ReadCloser, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.objects[h]
	if !ok {
		return nil, 0, fmt.Errorf("object %s: %w", h, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}

func (s *shelf) Put(r io.Reader, _ int64) (tree.Hash, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return tree.Hash{}, 0, err
	}
	h, err := s.PutBytes(b)
	return h, int64(len(b)), err
}

func (s *shelf) PutBytes(b []byte) (tree.Hash, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := tree.Sum(b)
	s.objects[h] = bytes.Clone(b)
	return h, nil
}

func (s *shelf) PutTree(b []byte) (tree.Hash, error) { return s.PutBytes(b) }

// world is a project with a history, a store in memory and a clock that stands.
type world struct {
	*History
	t     testing.TB
	p     *project.Project
	shelf *shelf
	clock time.Time
	root  string
	where project.Where
}

func newWorld(t testing.TB) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &world{t: t, shelf: newShelf(), clock: time.Date(2026, 11, 21, 7, 1, 59, 5, time.UTC), root: filepath.Join(base, "root")}
	for _, d := range []string{w.root, filepath.Join(base, "home")} {
		require.NoError(t, os.Mkdir(d, 0o755))
	}
	w.where = project.Where{Cwd: w.root, Home: filepath.Join(base, "home")}
	w.reopen()
	return w
}

// reopen is another process.
func (w *world) reopen() {
	w.t.Helper()
	p, err := project.Open(disk.OS, w.where, true)
	require.NoError(w.t, err)
	w.t.Cleanup(p.Close)
	w.p = p
	w.History = Open(p, Options{Objects: w.shelf, Now: func() time.Time { return w.clock }})
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.root, ".decree"}, parts...)...)
}

func (w *world) stored(name string) string { return filepath.Join(w.p.StorePath, name) }

func (w *world) read(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(w.t, err)
	return string(b)
}

func (w *world) put(path, content string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o600))
}

// draft is a checkpoint that begins now.
func (w *world) draft() *Record {
	w.t.Helper()
	id, started, err := w.NewID()
	require.NoError(w.t, err)
	chain, seq, ok := ParseID(id)
	require.True(w.t, ok)
	return &Record{ID: id, Chain: chain, Seq: seq, Reason: Manual, Status: StatusSucceeded, Started: started, Ended: started,
		Actor: Actor{User: "u", Host: "h"}}
}

// checkpoint adds a record and lets a second pass.
func (w *world) checkpoint() *Record {
	w.t.Helper()
	r := w.draft()
	require.NoError(w.t, w.End(Closing{Record: r}))
	w.clock = w.clock.Add(time.Second)
	return r
}

// setStatus has an operation change a record's status.
func (w *world) setStatus(id string, s Status, undoneBy string) {
	w.t.Helper()
	t := &commit{h: w.History, line: &line{op: opRunFiles}}
	defer t.drop()
	require.NoError(w.t, t.change([]StatusEffect{{ID: id, Status: s, UndoneBy: undoneBy}}))
	require.NoError(w.t, t.write())
}

func (w *world) list() *Listing {
	w.t.Helper()
	l, err := w.List(ListOptions{})
	require.NoError(w.t, err)
	return l
}

func ids(records []*Record) []string {
	out := []string{}
	for _, r := range records {
		out = append(out, r.ID)
	}
	return out
}

func file(content string) tree.Entry {
	return tree.Entry{SHA256: tree.Sum([]byte(content)), Size: int64(len(content)), Mode: 0o644}
}
