package history

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"decree/patch"
)

func newSum() hash.Hash { return sha256.New() }

// maxObject bounds what is read into memory at once: a step, which is smaller
// than its keyframe.
const maxObject = 1 << 30

// treeIndex finds a tree's spec. It reads the log from its newest line back, as
// far as it must: what is looked for is nearly always the last tree.
type treeIndex struct {
	specs map[patch.Hash]*TreeSpec
	left  []row // not read yet
}

// spec returns how a tree is kept, nil if it is not.
func (h *History) spec(id patch.Hash) (*TreeSpec, error) {
	l, err := h.rows()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.saved[id]; s != nil {
		return s, nil
	}
	if h.trees == nil {
		h.trees = &treeIndex{specs: map[patch.Hash]*TreeSpec{}}
		h.trees.left = append(append(h.trees.left, l.gone...), l.rows...)
		h.trees.addOpen(h)
	}
	return h.trees.find(id), nil
}

func (x *treeIndex) find(id patch.Hash) *TreeSpec {
	for x.specs[id] == nil && len(x.left) > 0 {
		r := x.left[len(x.left)-1]
		x.left = x.left[:len(x.left)-1]
		l, err := parseHead(r.line)
		if err != nil {
			continue // the listing names it
		}
		for _, t := range l.trees() {
			x.add(t)
		}
	}
	return x.specs[id]
}

// add prefers, of two ways to the same tree, the newer line's.
func (x *treeIndex) add(t *TreeSpec) {
	if x.specs[t.ID] == nil {
		x.specs[t.ID] = t
	}
}

func (x *treeIndex) addOpen(h *History) {
	ids, err := h.openNames()
	if err != nil {
		return
	}
	for _, id := range ids {
		if o, err := h.Opened(id); err == nil && o.Tree != nil {
			x.add(o.Tree)
		}
	}
}

// remember keeps the spec of a tree that no line names yet.
func (h *History) remember(s *TreeSpec) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.saved == nil {
		h.saved = map[patch.Hash]*TreeSpec{}
	}
	h.saved[s.ID] = s
}

// hasObject says whether the store has the object.
func (h *History) hasObject(sum patch.Hash) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects != nil && h.objects.Has(sum)
}

func (h *History) openObject(sum patch.Hash) (io.ReadCloser, error) {
	h.mu.Lock()
	o := h.objects
	h.mu.Unlock()
	if o == nil {
		return nil, &fs.PathError{Op: "open", Path: sum.String(), Err: errors.New("no store is open")}
	}
	r, _, err := o.Open(sum)
	return r, err
}

// readObject returns an object of the given size.
func (h *History) readObject(sum patch.Hash, size int64) ([]byte, error) {
	r, err := h.openObject(sum)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, min(size, maxObject)+1))
	if err == nil && int64(len(b)) != size {
		err = fmt.Errorf("%s: not the %d bytes that it should have", sum, size)
	}
	return b, err
}
