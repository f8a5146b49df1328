package tree

import (
	"fmt"
)

// Writer makes the objects of one directory. It can be used again after Finish. It is not
// safe for concurrent use.
type Writer struct {
	sink   Sink
	levels []growing
	last   string
	any    bool
}

// growing is the object of one level that is being made.
type growing struct {
	buf  []byte
	n    int
	last string // its last name
	done int    // objects of this level that were put
}

// NewWriter returns a Writer to sink.
func NewWriter(sink Sink) *Writer { return &Writer{sink: sink} }

// Add adds a name; they come in byte order. n is not kept.
func (w *Writer) Add(n *Node) error {
	if reason := checkName(n.Name); reason != "" {
		return fmt.Errorf("%s: %s", Quote(n.Name), reason)
	}
	if w.any && n.Name <= w.last {
		return fmt.Errorf("%s: %w", Quote(n.Name), ErrOrder)
	}
	w.any, w.last = true, n.Name
	g := w.level(0)
	g.buf = appendNode(g.buf, n)
	return w.added(0, n.Name)
}

func (w *Writer) level(i int) *growing {
	if i == len(w.levels) {
		w.levels = append(w.levels, growing{})
	}
	g := &w.levels[i]
	if g.n == 0 {
		g.buf = append(append(g.buf[:0], magic...), byte(i))
	}
	return g
}

// added counts an entry that was appended to a level's object, and ends the object if it
// is due.
func (w *Writer) added(level int, name string) error {
	g := &w.levels[level]
	g.n++
	g.last = name
	if cutsBehind(level, g.n, name) {
		return w.cut(level)
	}
	return nil
}

// cut puts the object of a level and enters it in the level above.
func (w *Writer) cut(level int) error {
	g := &w.levels[level]
	h, err := w.sink.Put(g.buf)
	if err != nil {
		return err
	}
	last := g.last
	g.n = 0
	g.done++
	up := w.level(level + 1)
	up.buf = append(appendText(up.buf, last), h[:]...)
	return w.added(level+1, last)
}

// Finish puts what is left and returns the name of the directory's object.
func (w *Writer) Finish() (Hash, error) {
	defer w.reset()
	for level := 0; ; level++ {
		g := w.level(level)
		if g.done == 0 {
			return w.top(level)
		}
		if g.n > 0 {
			if err := w.cut(level); err != nil {
				return Hash{}, err
			}
		}
	}
}

// top puts the only object of a level. That an index has one entry means that the object
// below ended with the directory: it is the top.
func (w *Writer) top(level int) (Hash, error) {
	g := &w.levels[level]
	if level > 0 && g.n == 1 {
		return Hash(g.buf[len(g.buf)-len(Hash{}):]), nil
	}
	return w.sink.Put(g.buf)
}

func (w *Writer) reset() {
	for i := range w.levels {
		w.levels[i].n, w.levels[i].done = 0, 0
	}
	w.any = false
}

// Empty is the object of a directory without entries.
func Empty() []byte { return append([]byte(magic), 0) }
