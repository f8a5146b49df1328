package recorder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"decree/tree"
	"decree/worktree"
)

// maxCached bounds the contents that an action keeps in memory, in bytes; each takes
// perCached beside its own.
const (
	maxCached = 16 << 20
	perCached = 128
)

// contentCache keeps contents that an action has computed or read, so that the diff and
// the staging need not decode them out of the store. What does not fit into maxCached
// bytes is read from there. A nil cache has none and keeps none. It is safe for
// concurrent use.
type contentCache struct {
	mu   sync.Mutex
	left int64
	data map[tree.Hash][]byte
}

func newContentCache() *contentCache { return &contentCache{left: maxCached} }

func (c *contentCache) get(sum tree.Hash) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	data, ok := c.data[sum]
	return data, ok
}

// reserve takes room for a content of n bytes, if there is so much.
func (c *contentCache) reserve(n int64) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > c.left-perCached {
		return false
	}
	c.left -= n + perCached
	return true
}

func (c *contentCache) giveBack(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left += n + perCached
}

// keep holds data in the room that was reserved for n bytes.
func (c *contentCache) keep(sum tree.Hash, data []byte, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.data == nil {
		c.data = map[tree.Hash][]byte{}
	}
	c.data[sum], c.left = data, c.left+n-int64(len(data))
}

// read opens a content and keeps it if there is room.
func (c *contentCache) read(e *tree.Entry, content func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	rc, err := content()
	if err != nil || !c.reserve(e.Size) {
		return rc, err
	}
	defer rc.Close()
	data := make([]byte, e.Size+1) // one more: what is longer must not pass for it
	n, err := io.ReadFull(rc, data)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	data = data[:n]
	// Whoever reads it compares the hash: bytes that are not e's go no further.
	c.keep(e.SHA256, data, e.Size)
	return io.NopCloser(bytes.NewReader(data)), nil
}

// fetch reads contents of changes ahead, on all processors, as far as there is
// room. What cannot be read is left to whoever needs it, who says why.
func (c *contentCache) fetch(ctx context.Context, objects opener, changes []tree.Change) {
	var wanted []*tree.Entry
	seen := map[tree.Hash]bool{}
	for i := range changes {
		for _, e := range [...]*tree.Entry{changes[i].Old, changes[i].New} {
			if !e.IsFile() || e.Size > maxCached/8 || seen[e.SHA256] {
				continue
			}
			seen[e.SHA256] = true
			if _, ok := c.get(e.SHA256); !ok {
				wanted = append(wanted, e)
			}
		}
	}
	if len(wanted) < 2 {
		return
	}
	inParallel(ctx, len(wanted), func(i int) error {
		c.load(objects, wanted[i])
		return nil
	})
}

// load reads a content into the room there is for it.
func (c *contentCache) load(objects opener, e *tree.Entry) {
	if !c.reserve(e.Size) {
		return
	}
	var data []byte
	rc, n, err := objects.Open(e.SHA256)
	if err == nil {
		defer rc.Close()
		if n == e.Size {
			data = make([]byte, n)
			_, err = io.ReadFull(rc, data)
		}
	}
	if err != nil || n != e.Size {
		c.giveBack(e.Size)
		return
	}
	c.keep(e.SHA256, data, e.Size)
}

// serve has the steps' contents come from memory where they are cached; the others
// come from the store, which has them all by now.
func (c *contentCache) serve(steps []worktree.Step) {
	for i := range steps {
		s := &steps[i]
		s.Content = nil
		if s.To.IsFile() {
			if data, ok := c.get(s.To.SHA256); ok {
				s.Content = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
			}
		}
	}
}

// clear lets go of the contents that no step has.
func (c *contentCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data, c.left = nil, maxCached
}

// inParallel calls do for 0 to n-1 on as many goroutines as there are processors
// and returns the errors in their order.
func inParallel(ctx context.Context, n int, do func(i int) error) []error {
	return sideBySide(ctx, runtime.GOMAXPROCS(0), n, do)
}

// sideBySide is inParallel on another number of goroutines.
func sideBySide(ctx context.Context, most, n int, do func(i int) error) []error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(most)
	for i := range n {
		g.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = do(i)
			}
			return nil
		})
	}
	_ = g.Wait()
	return errs
}
