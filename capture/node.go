package capture

import (
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"

	"decree/disk"
	"decree/ignorefile"
	"decree/tree"
)

// node is a directory that the walk has met and not yet done with.
type node struct {
	parent *node
	path   tree.Path // from the root, "" for the root
	name   string
	depth  int
	slot   int // its record in the parent's block

	was    ref  // its block in the cache
	object Hash // its object as the cache has it; zero: not known
	joined bool // it is in the tree only because the rules changed

	dropped bool // it is not recorded after all; its parent's record says so already
	empty   bool // it could not be read: recorded without anything in it

	info  disk.Info
	rules *ignorefile.Rules
	print uint64

	old block // the cached block
	// What is left to do: the visit itself, pieces of it, and directories below. Who
	// takes it to zero finishes the node.
	pending atomic.Int32

	mu       sync.Mutex
	buf      block          // the new block, nil while the old one stands
	relisted bool           // buf was made from a new listing, so records have other numbers than in old
	oldOf    []int32        // of a relisted buf: the old record of each record, -1 for none
	kinds    []kind         // of a relisted buf, as it was made
	targets  map[int]string // of symlinks in buf
	resort   bool           // a record changed between directory and file
	below    sums

	hmu  sync.Mutex
	h    disk.Dir
	refs int  // uses of h
	todo int  // children and pieces that still need h
	keep bool // hold h while todo > 0
}

// A walk holds at most about this many directories open beside those in use; the rest is
// opened again, component by component, when a child needs it.
const (
	openEasily = 128
	openAtMost = 512
	keepEvery  = 16 // below openAtMost each 16th level stays open, so that reopening is short
)

// use returns the node's handle, opening it again if need be, and what ends the use.
func (w *walk) use(n *node) (disk.Dir, func(), error) {
	n.hmu.Lock()
	if n.h != nil {
		n.refs++
		h := n.h
		n.hmu.Unlock()
		return h, func() { w.unuse(n) }, nil
	}
	n.hmu.Unlock()
	h, err := w.reopen(n)
	if err != nil {
		return nil, nil, err
	}
	return h, func() { h.Close() }, nil
}

func (w *walk) unuse(n *node) {
	n.hmu.Lock()
	n.refs--
	w.shut(n)
	n.hmu.Unlock()
}

// shut closes the handle if nothing uses it and nothing that is to come makes it worth
// keeping. The root's stays, so that there is always one to start from.
func (w *walk) shut(n *node) {
	if n.parent != nil && n.h != nil && n.refs == 0 && (n.todo == 0 || !n.keep) {
		n.h.Close()
		n.h = nil
		w.open.Add(-1)
	}
}

// served says that one who needed the handle is done with it.
func (w *walk) served(n *node) {
	n.hmu.Lock()
	n.todo--
	w.shut(n)
	n.hmu.Unlock()
}

// reopen walks down from the nearest ancestor that is open.
func (w *walk) reopen(n *node) (disk.Dir, error) {
	up := n.parent
	up.hmu.Lock()
	for up.h == nil { // the root's is always open
		up.hmu.Unlock()
		up = up.parent
		up.hmu.Lock()
	}
	up.refs++
	from := up.h
	up.hmu.Unlock()
	h, err := disk.OpenPath(from, strings.TrimPrefix(string(n.path[len(up.path):]), "/"))
	w.unuse(up)
	if err != nil {
		return nil, err
	}
	in, err := h.Self()
	if err == nil && !in.SameFile(n.info) {
		err = fs.ErrNotExist // replaced meanwhile: what was listed is gone
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// opened gives the node its handle.
func (w *walk) opened(n *node, h disk.Dir) {
	count := w.open.Add(1)
	n.hmu.Lock()
	n.h, n.refs = h, 1
	n.keep = n.parent == nil || count < openEasily || n.depth%keepEvery == 0 && count < openAtMost
	n.hmu.Unlock()
}

// block returns the block to be changed, which starts as a copy of the old one. Callers
// hold n.mu; different records may then be written without it.
func (n *node) block() block {
	if n.buf == nil {
		n.buf = append(make(block, 0, len(n.old)+64), n.old...)
	}
	return n.buf
}

// change writes record i under the node's lock.
func (n *node) change(write func(b block)) {
	n.mu.Lock()
	write(n.block())
	n.mu.Unlock()
}

// present returns the block as it stands, to be read for names and, where nobody writes
// them, records.
func (n *node) present() block {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.buf != nil {
		return n.buf
	}
	return n.old
}

// target notes what a symlink points to. Callers hold n.mu.
func (n *node) target(i int, target string) {
	if n.targets == nil {
		n.targets = map[int]string{}
	}
	n.targets[i] = target
}
