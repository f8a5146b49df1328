package history

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"

	"decree/patch"
)

func newSum() hash.Hash { return sha256.New() }

// maxObject bounds what is read into memory at once: a step, which is smaller
// than its keyframe.
const maxObject = 1 << 30

// treeIndex finds a tree's spec by looking for its id in the lines' heads,
// backwards from where the last one was found: at first the newest line, since
// what is looked for is nearly always the last tree, or one that a tree rests on,
// whose line is the one before.
type treeIndex struct {
	specs map[patch.Hash]*TreeSpec
	rows  []row
	heads [][]byte // by row, not closed; nil: not read yet
	at    int
	// unread is why an open record could not be read: a tree that is not found may be
	// its, and is not lost.
	unread error
}

// treeChunk is how many lines are read at once.
const treeChunk = 256

// spec returns how a tree is kept, nil if it is not.
func (h *History) spec(id patch.Hash) (*TreeSpec, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.saved[id]; s != nil {
		return s, nil
	}
	if h.trees != nil {
		if s := h.trees.find(id); s != nil {
			return s, nil
		}
	}
	// It may be of an open record that began after the last look.
	l, err := h.rowsHeld()
	if err != nil {
		return nil, err
	}
	rows := slices.Concat(l.gone, l.rows)
	h.trees = &treeIndex{specs: map[patch.Hash]*TreeSpec{}, rows: rows, heads: make([][]byte, len(rows)), at: len(rows) - 1}
	h.trees.unread = h.trees.addOpen(h)
	s := h.trees.find(id)
	if s == nil && h.trees.unread != nil {
		err := h.trees.unread
		h.trees = nil // the next one looks again
		return nil, err
	}
	return s, nil
}

func (x *treeIndex) find(id patch.Hash) *TreeSpec {
	if s := x.specs[id]; s != nil {
		return s
	}
	n := len(x.rows)
	needle := []byte(`{"id":"` + id.String())
	for k := range n {
		i := (x.at - k + n) % n
		if !bytes.Contains(x.head(i), needle) {
			continue
		}
		l, err := x.rows[i].head()
		if err != nil {
			continue // the listing names it
		}
		for _, t := range l.trees() {
			x.add(t)
		}
		if s := x.specs[id]; s != nil {
			x.at = i
			return s
		}
	}
	return nil
}

// head is what stands before row i's record.
func (x *treeIndex) head(i int) []byte {
	if x.heads[i] != nil {
		return x.heads[i]
	}
	from := i / treeChunk * treeChunk
	to := min(from+treeChunk, len(x.rows))
	for j, r := range loadRows(x.rows[from:to]) {
		b, err := r.bytes()
		if err != nil {
			b = []byte{} // the listing names it
		}
		if k := bytes.Index(b, []byte(recordMark)); k >= 0 {
			b = bytes.Clone(b[:k]) // the rest need not be kept
		}
		x.heads[from+j] = b
	}
	return x.heads[i]
}

// add keeps, of two ways to the same tree, the first.
func (x *treeIndex) add(t *TreeSpec) {
	if x.specs[t.ID] == nil {
		x.specs[t.ID] = t
	}
}

// addOpen adds the trees of open records. The error is that of the first one that cannot
// be read now; a damaged one has none.
func (x *treeIndex) addOpen(h *History) error {
	ids, err := h.openNames()
	for _, id := range ids {
		o, oerr := h.Opened(id)
		switch {
		case oerr == nil && o.Tree != nil:
			x.add(o.Tree)
		case oerr != nil && !errors.Is(oerr, fs.ErrNotExist) && !errors.As(oerr, new(*damagedOpen)):
			err = cmp.Or(err, oerr)
		}
	}
	return err
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
		err = fmt.Errorf("%s: it does not have the %d bytes that it should", sum, size)
	}
	return b, err
}
