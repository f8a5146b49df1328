package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"decree/manifest"
	"decree/patch"
	"decree/project"
	"decree/store"
)

// TreeSpec says how a tree is kept in the store.
type TreeSpec struct {
	ID      patch.Hash // of the tree: SHA-256 of its manifest.json
	Base    patch.Hash // the tree that Object is a delta against; zero: Object is a keyframe
	Object  patch.Hash
	Depth   int   // deltas down to the keyframe
	Size    int64 // bytes of Object
	Deltas  int64 // bytes of all deltas down to the keyframe
	Whole   int64 // bytes of the keyframe
	Partial bool  // a manifest of the touched paths alone
}

// maxChain bounds the deltas between a tree and its keyframe.
const maxChain = 256

// append writes the spec as a log line has it.
func (t *TreeSpec) append(dst []byte) []byte {
	w := &writer{dst: append(dst, '{'), sep: ",", colon: ":"}
	w.hash("id", t.ID)
	if !t.Base.IsZero() {
		w.hash("base", t.Base)
	}
	w.hash("object", t.Object)
	w.dst = append(w.dst, `,"depth":`...)
	w.dst = strconv.AppendInt(w.dst, int64(t.Depth), 10)
	w.number("size", t.Size)
	w.number("deltas", t.Deltas)
	w.number("whole", t.Whole)
	if t.Partial {
		w.raw("partial", "true")
	}
	return append(w.dst, '}')
}

// NewTree is a tree to be kept.
type NewTree struct {
	ID      patch.Hash
	Base    patch.Hash        // a tree that Changes are relative to; zero: none
	Changes []manifest.Change // Base -> ID, as manifest.Compare has them
	Entries manifest.Seq      // the whole tree
	Partial bool
}

// SaveTree puts a tree into the store and says how: not at all when it is kept
// already, as a delta when its base is kept and the chain is short and small,
// else as a keyframe. The object is durable after the writer's Flush.
func (h *History) SaveTree(w Putter, t NewTree) (*TreeSpec, error) {
	if s, err := h.spec(t.ID); err != nil {
		return nil, err
	} else if s != nil && s.Partial == t.Partial && w.Has(s.Object) {
		return s, nil
	}
	s, err := h.saveDelta(w, t)
	if err == nil && s == nil {
		s, err = h.saveKeyframe(w, t)
	}
	if err == nil {
		h.remember(s)
	}
	return s, err
}

// restsWell says whether every object down to base's keyframe is there, and none
// of its trees is id: a tree that was lost and is saved again must not rest on
// what rests on it.
func (h *History) restsWell(w Putter, base *TreeSpec, id patch.Hash) bool {
	for range maxChain + 1 {
		if base == nil || base.ID == id || !w.Has(base.Object) {
			return false
		}
		if base.Base.IsZero() {
			return true
		}
		next, err := h.spec(base.Base)
		if err != nil {
			return false
		}
		base = next
	}
	return false
}

// saveDelta returns nil when the tree is to be a keyframe.
func (h *History) saveDelta(w Putter, t NewTree) (*TreeSpec, error) {
	if t.Partial || t.Base.IsZero() || t.Base == t.ID {
		return nil, nil
	}
	base, err := h.spec(t.Base)
	if err != nil || base == nil || base.Partial || base.Depth+1 >= maxChain || !h.restsWell(w, base, t.ID) {
		return nil, err
	}
	b, err := appendStep(nil, t.Changes)
	if err != nil {
		return nil, err
	}
	n := int64(len(b))
	if base.Deltas+n >= base.Whole {
		return nil, nil
	}
	sum, err := w.PutBytes(b)
	return &TreeSpec{ID: t.ID, Base: t.Base, Object: sum, Depth: base.Depth + 1, Size: n, Deltas: base.Deltas + n, Whole: base.Whole}, err
}

func (h *History) saveKeyframe(w Putter, t NewTree) (*TreeSpec, error) {
	sum, n, err := store.PutWritten(w, func(to io.Writer) error { return manifest.WriteTree(to, t.Entries) })
	if err != nil {
		return nil, fmt.Errorf("tree: %w", err)
	}
	return &TreeSpec{ID: t.ID, Object: sum, Size: n, Whole: n, Partial: t.Partial}, nil
}

// A step is a delta object: the magic, the length of what follows as a uvarint,
// the paths that are new or other as a binary tree, and the paths that are gone
// as another, in which a file stands as a symlink to "-" and a directory with
// mode 755. Unlike a delta that must be applied in its place, steps can be laid
// on each other before the keyframe is read, so that a tree 200 steps deep is
// read in one pass.
const stepMagic = "dstep1\n\x00"

var (
	goneFile = manifest.Link("-")
	goneDir  = patch.Entry{Type: patch.Dir, Mode: 0o755}
)

func appendStep(dst []byte, changes []manifest.Change) ([]byte, error) {
	var put, gone []manifest.Item
	for _, c := range changes {
		if c.New != nil {
			put = append(put, manifest.Item{Path: c.Path, Entry: *c.New})
		}
		if c.Old == nil || c.New != nil && (c.New.Type == patch.Dir) == (c.Old.Type == patch.Dir) {
			continue
		}
		e := goneFile
		if c.Old.Type == patch.Dir {
			e = goneDir
		}
		gone = append(gone, manifest.Item{Path: c.Path, Entry: e})
	}
	slices.SortFunc(put, itemOrder)
	slices.SortFunc(gone, itemOrder)
	body, err := manifest.AppendTree(nil, manifest.Of(put...))
	if err != nil {
		return nil, err
	}
	dst = append(dst, stepMagic...)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return manifest.AppendTree(append(dst, body...), manifest.Of(gone...))
}

func itemOrder(a, b manifest.Item) int {
	if ad, bd := a.Entry.Type == patch.Dir, b.Entry.Type == patch.Dir; ad != bd {
		if bd {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Path, b.Path)
}

var errStep = errors.New("malformed tree step")

// splitStep returns the step's two trees.
func splitStep(b []byte) (put, gone manifest.Seq, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(stepMagic))
	n, used := binary.Uvarint(rest)
	if !ok || used <= 0 || n > uint64(len(rest)-used) {
		return nil, nil, errStep
	}
	rest = rest[used:]
	return manifest.DecodeTree(rest[:n]), manifest.DecodeTree(rest[n:]), nil
}

// place is a path in one of a manifest's two sections.
type place struct {
	dir  bool
	path string
}

func placeOf(it manifest.Item) place { return place{it.Entry.Type == patch.Dir, it.Path} }

// overlay is what a chain of steps does, the newest on top.
type overlay struct {
	seen  map[place]bool
	items []manifest.Item // Path and Entry; what is gone is not here
}

// add lays an older step below the ones that were added before.
func (o *overlay) add(b []byte) error {
	put, gone, err := splitStep(b)
	if err != nil {
		return err
	}
	for it, err := range put {
		if err != nil {
			return err
		}
		if p := placeOf(it); !o.seen[p] {
			o.seen[p] = true
			o.items = append(o.items, it)
		}
	}
	for it, err := range gone {
		if err != nil {
			return err
		}
		o.seen[placeOf(it)] = true
	}
	return nil
}

// over returns base with the overlay on it.
func (o *overlay) over(base manifest.Seq) manifest.Seq {
	if len(o.seen) == 0 {
		return base
	}
	slices.SortFunc(o.items, itemOrder)
	return func(yield func(manifest.Item, error) bool) {
		items := o.items
		for it, err := range base {
			if err != nil {
				yield(it, err)
				return
			}
			for len(items) > 0 && itemOrder(items[0], it) < 0 {
				if !yield(items[0], nil) {
					return
				}
				items = items[1:]
			}
			if o.seen[placeOf(it)] {
				continue // replaced, in its turn, or gone
			}
			if !yield(it, nil) {
				return
			}
		}
		for _, it := range items {
			if !yield(it, nil) {
				return
			}
		}
	}
}

// ErrNotKept is the cause of an error about a tree that the store does not have. It is
// an fs.ErrNotExist.
var ErrNotKept error = notKept{}

type notKept struct{}

func (notKept) Error() string { return "it was lost, or its record came with a copy of the tree" }

func (notKept) Is(target error) bool { return target == fs.ErrNotExist }

// chain returns the specs from id down to its keyframe.
func (h *History) chain(id patch.Hash) ([]*TreeSpec, error) {
	var out []*TreeSpec
	for at := id; ; {
		s, err := h.spec(at)
		if err != nil {
			return nil, err
		}
		if s == nil {
			return nil, &project.Error{Kind: project.Integrity, Msg: "tree " + at.String() + " is not in the store", Err: ErrNotKept}
		}
		if out = append(out, s); s.Base.IsZero() {
			return out, nil
		}
		if len(out) > 2*maxChain {
			return nil, &project.Error{Kind: project.Integrity, Msg: "tree " + id.String() + " is stored as a difference from itself"}
		}
		at = s.Base
	}
}

// Tree returns the entries of a kept tree in manifest order. The sequence can
// be read more than once; it is checked object by object, and as a whole by
// VerifyTree. partial says that it holds some paths only.
func (h *History) Tree(id patch.Hash) (entries manifest.Seq, partial bool, err error) {
	entries, partial, err = h.treeNow(id)
	if err != nil && h.outdated() {
		entries, partial, err = h.treeNow(id)
	}
	if err != nil {
		return nil, false, err
	}
	return h.orAgain(id, entries), partial, nil
}

func (h *History) treeNow(id patch.Hash) (entries manifest.Seq, partial bool, err error) {
	chain, err := h.chain(id)
	if err != nil {
		return nil, false, err
	}
	o := overlay{seen: map[place]bool{}}
	last := len(chain) - 1
	for _, s := range chain[:last] {
		b, err := h.readObject(s.Object, s.Size)
		if err == nil {
			err = o.add(b)
		}
		if err != nil {
			return nil, false, treeError(id, err)
		}
	}
	return o.over(h.keyframe(chain[last])), chain[last].Partial, nil
}

func treeError(id patch.Hash, err error) error {
	return &project.Error{Kind: project.Integrity, Msg: "tree " + id.String(), Err: err}
}

// keyframe streams the keyframe s from the store.
func (h *History) keyframe(s *TreeSpec) manifest.Seq {
	return func(yield func(manifest.Item, error) bool) {
		r, err := h.openObject(s.Object)
		if err != nil {
			yield(manifest.Item{}, treeError(s.ID, err))
			return
		}
		defer r.Close()
		for it, err := range manifest.ReadTree(r) {
			if err != nil {
				err = treeError(s.ID, err)
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// VerifyTree reads a kept tree and compares its id.
func (h *History) VerifyTree(id patch.Hash) error {
	entries, partial, err := h.Tree(id)
	if err != nil {
		return err
	}
	sum := newSum()
	if err := manifest.Encode(sum, entries, partial); err != nil {
		return treeError(id, err)
	}
	if patch.Hash(sum.Sum(nil)) != id {
		return treeError(id, errors.New("its content does not match its id"))
	}
	return nil
}

// WriteManifest writes a kept tree as manifest.json.
func (h *History) WriteManifest(id patch.Hash, w io.Writer) error {
	entries, partial, err := h.Tree(id)
	if err != nil {
		return err
	}
	return manifest.Encode(w, entries, partial)
}

// FindEntry returns what a kept tree has at path: a file before a directory of
// that name, nil for nothing. It reads the newest step first and the keyframe
// only as far as it must.
func (h *History) FindEntry(id patch.Hash, path string) (*patch.Entry, error) {
	e, err := h.findEntry(id, path)
	if err != nil && h.outdated() {
		e, err = h.findEntry(id, path)
	}
	return e, err
}

func (h *History) findEntry(id patch.Hash, path string) (*patch.Entry, error) {
	chain, err := h.chain(id)
	if err != nil {
		return nil, err
	}
	o := overlay{seen: map[place]bool{}}
	last := len(chain) - 1
	for _, s := range chain[:last] {
		b, err := h.readObject(s.Object, s.Size)
		if err == nil {
			err = o.add(b)
		}
		if err != nil {
			return nil, treeError(id, err)
		}
		for _, it := range o.items {
			if it.Path == path {
				return &it.Entry, nil
			}
		}
		if o.seen[place{false, path}] && o.seen[place{true, path}] {
			return nil, nil
		}
		o.items = o.items[:0]
	}
	for it, err := range h.keyframe(chain[last]) {
		if err != nil {
			return nil, err
		}
		if it.Path == path && !o.seen[placeOf(it)] {
			return &it.Entry, nil
		}
	}
	return nil, nil
}
