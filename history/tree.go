package history

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"decree/manifest"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// ErrNotKept is the cause of an error about a tree that the store does not have. It is
// an fs.ErrNotExist.
var ErrNotKept error = notKept{}

type notKept struct{}

func (notKept) Error() string { return "it was lost, or its record came with a copy of the tree" }

func (notKept) Is(target error) bool { return target == fs.ErrNotExist }

// Directories gives the objects of kept trees.
func (h *History) Directories() tree.Source { return directories{h} }

type directories struct{ h *History }

func (d directories) Get(sum tree.Hash) ([]byte, error) {
	r, err := d.h.openObject(sum)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, int64(tree.MaxObject)))
	if err == nil && len(b) == tree.MaxObject {
		err = errors.New("larger than a directory's object can be")
	}
	return b, err
}

func (h *History) trees() tree.Reader { return tree.Reader{From: directories{h}} }

// kept is an error unless the store has the tree's root object.
func (h *History) kept(id tree.Hash) error {
	if h.hasObject(id) {
		return nil
	}
	// Another process may have stored it since the store was opened: reading looks again.
	r, err := h.openObject(id)
	if err == nil {
		return r.Close()
	}
	var missing *store.MissingError
	if !errors.As(err, &missing) && !errors.Is(err, fs.ErrNotExist) {
		return treeError(id, err)
	}
	return &project.Error{Kind: project.Integrity, Msg: "tree " + id.String() + " is not kept in the store", Err: ErrNotKept,
		Advice: "'decree log' shows the records that this store has; a copy's changes come with 'decree apply --from ROOT ID'"}
}

func treeError(id tree.Hash, err error) error {
	if err == nil {
		return nil
	}
	return &project.Error{Kind: project.Integrity, Msg: "tree " + id.String(), Err: err}
}

// Tree returns the entries of a kept tree in manifest order. The sequence can be read
// more than once.
func (h *History) Tree(id tree.Hash) (tree.Seq, error) {
	if err := h.kept(id); err != nil {
		return nil, err
	}
	return func(yield func(tree.Item, error) bool) {
		for it, err := range h.trees().Entries(id) {
			if !yield(it, treeError(id, err)) {
				return
			}
		}
	}, nil
}

// Compare returns what leads from one kept tree to another, in byte order of the paths.
// A zero id is an empty tree.
func (h *History) Compare(from, to tree.Hash) ([]tree.Change, error) {
	return h.CompareIn(directories{h}, from, to)
}

// CompareIn is Compare with the objects of a captured tree, which need not be kept.
func (h *History) CompareIn(objects tree.Source, from, to tree.Hash) ([]tree.Change, error) {
	if from == to {
		return nil, nil
	}
	if !from.IsZero() {
		if err := h.kept(from); err != nil {
			return nil, err
		}
	}
	changes, err := tree.Reader{From: objects}.Compare(from, to)
	return changes, treeError(to, err)
}

// ChangesIn is CompareIn of changes that are too many to be held: one after the other. It
// can be read more than once.
func (h *History) ChangesIn(objects tree.Source, from, to tree.Hash) (iter.Seq2[tree.Change, error], error) {
	if !from.IsZero() {
		if err := h.kept(from); err != nil {
			return nil, err
		}
	}
	return func(yield func(tree.Change, error) bool) {
		for ch, err := range (tree.Reader{From: objects}).Changes(from, to) {
			if !yield(ch, treeError(to, err)) {
				return
			}
		}
	}, nil
}

// sink puts directories' objects.
type sink struct{ Putter }

func (s sink) Put(b []byte) (tree.Hash, error) { return s.PutTree(b) }

// Apply makes the tree that changes turn a kept one into; a zero id is an empty tree. Its
// objects are durable after the writer's Flush.
func (h *History) Apply(w Putter, id tree.Hash, changes []tree.Change) (tree.Hash, error) {
	return tree.Apply(h.trees(), sink{w}, id, changes)
}

// Overlay makes the tree that is a kept one but for some paths: the states that changes
// lead from, whatever the tree has there. A directory in which one of them changes something, or
// makes it, takes the place of what is no directory.
func (h *History) Overlay(w Putter, id tree.Hash, changes []tree.Change) (tree.Hash, error) {
	was := make([]tree.Change, 0, len(changes))
	told := map[tree.Path]bool{} // what is above others; whether it is a directory a change of it says best
	for _, c := range changes {
		was = append(was, tree.Change{Path: c.Path, New: c.Old})
		told[c.Path] = true
	}
	for _, c := range changes {
		for up := c.Path.Parent(); up != "" && !told[up]; up = up.Parent() {
			told[up] = true
			n, err := h.find(id, up)
			if err != nil {
				return tree.Hash{}, err
			}
			if n != nil && n.Type != tree.Dir {
				was = append(was, tree.Change{Path: up, New: &tree.Entry{Type: tree.Dir, Mode: 0o755}})
			}
		}
	}
	return h.Apply(w, id, was)
}

// VerifyTree reads all objects of a kept tree.
func (h *History) VerifyTree(id tree.Hash) error {
	c := &closure{h: h, enter: Once(), each: func(p *Part) error { return p.Err }}
	return c.tree(id)
}

// Partial says whether a record's manifest.json has the paths alone that it touched.
func (r *Record) Partial() bool {
	return r.Reason == Revert || r.Reason == Apply || r.Isolated != ""
}

// WriteManifest writes a record's manifest.json: the tree before it, of a revert or apply
// the paths that it touched.
func (h *History) WriteManifest(r *Record, w io.Writer) error {
	if r.Partial() {
		return h.writePartial(r, w, func(c tree.Change) *tree.Entry { return c.Old })
	}
	return h.writeTree(r.Before, w)
}

// WriteManifestAfter is WriteManifest for the tree after the record.
func (h *History) WriteManifestAfter(r *Record, w io.Writer) error {
	if r.Partial() {
		return h.writePartial(r, w, func(c tree.Change) *tree.Entry { return c.New })
	}
	return h.writeTree(cmp.Or(r.After, r.Before), w)
}

func (h *History) writeTree(id tree.Hash, w io.Writer) error {
	entries, err := h.Tree(id)
	if err != nil {
		return err
	}
	return manifest.Encode(w, entries, false)
}

func (h *History) writePartial(r *Record, w io.Writer, side func(tree.Change) *tree.Entry) error {
	changes := h.DiffEach(r)
	if r.Isolated == "" {
		var err error
		if changes, err = h.ChangesIn(directories{h}, r.Before, r.After); err != nil {
			return err
		}
	}
	return manifest.Encode(w, OneSide(changes, side), true)
}

// OneSide is one side of changes as a tree of its own. They are read twice: files come
// before directories.
func OneSide(changes iter.Seq2[tree.Change, error], side func(tree.Change) *tree.Entry) tree.Seq {
	return func(yield func(tree.Item, error) bool) {
		for _, dirs := range []bool{false, true} {
			for c, err := range changes {
				if err != nil {
					yield(tree.Item{}, err)
					return
				}
				entry := side(c)
				if entry == nil || (entry.Type == tree.Dir) != dirs {
					continue
				}
				if !yield(tree.Item{Path: c.Path, Entry: *entry}, nil) {
					return
				}
			}
		}
	}
}

// FindEntry returns what a kept tree has at path, nil for nothing.
func (h *History) FindEntry(id tree.Hash, path tree.Path) (*tree.Entry, error) {
	if err := h.kept(id); err != nil {
		return nil, err
	}
	n, err := h.find(id, path)
	if n == nil || err != nil {
		return nil, err
	}
	e := n.Entry
	if e.Type == tree.Dir {
		e.SHA256 = tree.Hash{}
	}
	return &e, nil
}

func (h *History) find(id tree.Hash, path tree.Path) (*tree.Node, error) {
	if id.IsZero() {
		return nil, nil
	}
	n, err := h.trees().Find(id, path)
	return n, treeError(id, err)
}

// hasObject says whether the store has the object.
func (h *History) hasObject(sum tree.Hash) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects != nil && h.objects.Has(sum)
}

func (h *History) openObject(sum tree.Hash) (io.ReadCloser, error) {
	h.mu.Lock()
	o := h.objects
	h.mu.Unlock()
	if o == nil {
		return nil, &fs.PathError{Op: "open", Path: sum.String(), Err: errors.New("no store is open")}
	}
	r, _, err := o.Open(sum)
	return r, err
}

// Resave keeps a tree again whose objects the store has lost: its entries come from
// elsewhere, such as a plain manifest.json. One that is another tree is an error.
func (h *History) Resave(w Putter, id tree.Hash, entries tree.Seq) error {
	items, err := manifest.Collect(entries)
	if err != nil {
		return err
	}
	changes := make([]tree.Change, len(items))
	for i := range items {
		changes[i] = tree.Change{Path: items[i].Path, New: &items[i].Entry}
	}
	got, err := h.Apply(w, tree.Hash{}, changes)
	if err == nil && got != id {
		err = fmt.Errorf("it is tree %s", got)
	}
	return treeError(id, err)
}
