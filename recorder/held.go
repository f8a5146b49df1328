package recorder

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"decree/tree"
	"decree/worktree"
)

// maxHeld bounds the contents that an action keeps in memory, in bytes.
const maxHeld = 16 << 20

// held are the contents that an action has computed or read: the diff and the
// staging use them again without decoding them out of the store. What does not
// fit is read from there. A nil held has none and keeps none. It is safe for
// concurrent use.
type held struct {
	mu   sync.Mutex
	left int64
	data map[tree.Hash][]byte
}

func newHeld() *held { return &held{left: maxHeld} }

func (h *held) get(sum tree.Hash) ([]byte, bool) {
	if h == nil {
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	data, ok := h.data[sum]
	return data, ok
}

// reserve takes room for n bytes, if there is so much.
func (h *held) reserve(n int64) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n > h.left {
		return false
	}
	h.left -= n
	return true
}

func (h *held) giveBack(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left += n
}

// keep holds data in the room that was reserved for n bytes.
func (h *held) keep(sum tree.Hash, data []byte, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.data == nil {
		h.data = map[tree.Hash][]byte{}
	}
	h.data[sum], h.left = data, h.left+n-int64(len(data))
}

// read opens a content and keeps it if there is room.
func (h *held) read(e *tree.Entry, content func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	rc, err := content()
	if err != nil || !h.reserve(e.Size) {
		return rc, err
	}
	defer rc.Close()
	data, err := io.ReadAll(io.LimitReader(rc, e.Size+1))
	if err != nil {
		return nil, err
	}
	// Whoever reads it compares the hash: bytes that are not e's go no further.
	h.keep(e.SHA256, data, e.Size)
	return io.NopCloser(bytes.NewReader(data)), nil
}

// fetch reads contents of changes ahead, on all processors, as far as there is
// room. What cannot be read is left to whoever needs it, who says why.
func (h *held) fetch(ctx context.Context, objects opener, changes []tree.Change) {
	var wanted []*tree.Entry
	seen := map[tree.Hash]bool{}
	for i := range changes {
		for _, e := range [...]*tree.Entry{changes[i].Old, changes[i].New} {
			if e == nil || e.Type != tree.Regular || e.Size > maxHeld/8 || seen[e.SHA256] {
				continue
			}
			seen[e.SHA256] = true
			if _, ok := h.get(e.SHA256); !ok {
				wanted = append(wanted, e)
			}
		}
	}
	if len(wanted) < 2 {
		return
	}
	inParallel(ctx, len(wanted), func(i int) error {
		h.load(objects, wanted[i])
		return nil
	})
}

// load reads a content into the room there is for it.
func (h *held) load(objects opener, e *tree.Entry) {
	if !h.reserve(e.Size) {
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
		h.giveBack(e.Size)
		return
	}
	h.keep(e.SHA256, data, e.Size)
}

// steps are the plan's, with contents from memory where they are held; the
// others come from the store, which has them all by now.
func (h *held) steps(steps []worktree.Step) []worktree.Step {
	out := make([]worktree.Step, len(steps))
	for i, s := range steps {
		s.Content = nil
		if s.To != nil && s.To.Type == tree.Regular {
			if data, ok := h.get(s.To.SHA256); ok {
				s.Content = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
			}
		}
		out[i] = s
	}
	return out
}

// inParallel calls do for 0 to n-1 on as many goroutines as there are processors
// and returns the errors in their order.
func inParallel(ctx context.Context, n int, do func(i int) error) []error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
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
