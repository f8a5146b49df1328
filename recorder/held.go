package recorder

import (
	"bytes"
	"io"

	"decree/manifest"
	"decree/worktree"
)

// maxHeld bounds the contents that an action keeps in memory, in bytes.
const maxHeld = 16 << 20

// held are the contents that an action has computed or read: the diff and the
// staging use them again without decoding them out of the store. What does not
// fit is read from there. A nil held has none and keeps none.
type held struct {
	left int64
	data map[manifest.Hash][]byte
}

func newHeld() *held { return &held{left: maxHeld} }

func (h *held) get(sum manifest.Hash) ([]byte, bool) {
	if h == nil {
		return nil, false
	}
	data, ok := h.data[sum]
	return data, ok
}

// read opens a content and keeps it if there is room.
func (h *held) read(e *manifest.Entry, content func() (io.ReadCloser, error)) (io.ReadCloser, error) {
	rc, err := content()
	if err != nil || h == nil || e.Size > h.left {
		return rc, err
	}
	defer rc.Close()
	data, err := io.ReadAll(io.LimitReader(rc, e.Size+1))
	if err != nil {
		return nil, err
	}
	if h.data == nil {
		h.data = map[manifest.Hash][]byte{}
	}
	// Whoever reads it compares the hash: bytes that are not e's go no further.
	h.data[e.SHA256], h.left = data, h.left-int64(len(data))
	return io.NopCloser(bytes.NewReader(data)), nil
}

// steps are the plan's, with contents from memory where they are held; the
// others come from the store, which has them all by now.
func (h *held) steps(steps []worktree.Step) []worktree.Step {
	out := make([]worktree.Step, len(steps))
	for i, s := range steps {
		s.Content = nil
		if s.To != nil && s.To.Type == manifest.Regular {
			if data, ok := h.get(s.To.SHA256); ok {
				s.Content = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
			}
		}
		out[i] = s
	}
	return out
}
