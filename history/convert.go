package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"decree/jsonread"
	"decree/manifest"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// A store of version 1 had each tree as one object, or as a step from another one, and
// its id was the SHA-256 of manifest.json. A record's line named the objects beside the
// record: {"id":...,"base":...,"object":...,"size":...,"partial":true} as "tree" and
// "after_tree". Reverts and applies had the paths alone that they touched. All that is
// left of these forms is here, and is only read.

// Conversion makes what version 1 wrote into the present form. It changes nothing that an
// earlier decree reads before Replace.
type Conversion struct {
	h     *History
	w     Putter
	old   map[tree.Hash]oldTree   // trees of version 1, by their ids
	roots map[tree.Hash]tree.Hash // those that were converted
	last  tree.Hash               // what the record before left
	lines []convertedLine
	open  []*Opened

	Lost []error // trees that cannot be read any more; their records keep the ids
}

// convertedLine is a line of the log as it will be; raw where it cannot be decoded.
type convertedLine struct {
	line *line
	raw  []byte
}

// oldTree says how version 1 kept a tree.
type oldTree struct {
	id, base, object tree.Hash
	size             int64
}

// Convert makes the objects of all trees. They are durable after the writer's Flush.
// progress is called with the records that are done and their number.
func (h *History) Convert(w Putter, progress func(done, total int)) (*Conversion, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	c := &Conversion{h: h, w: w, old: map[tree.Hash]oldTree{}, roots: map[tree.Hash]tree.Hash{}}
	for _, r := range slices.Concat(l.gone, l.rows) {
		b := r.line
		if i := bytes.Index(b, []byte(recordMark)); i >= 0 {
			b = append(b[:i:i], '}')
		}
		c.note(b)
	}
	for i, r := range l.rows {
		progress(i, len(l.rows))
		if err := c.row(r); err != nil {
			return nil, err
		}
	}
	for _, r := range l.gone {
		c.lines = append(c.lines, convertedLine{line: &line{key: r.key, gone: true, left: true}})
	}
	if len(l.given) > 0 {
		c.lines = append(c.lines, convertedLine{line: &line{op: opCompact, given: l.given}})
	}
	for _, b := range l.unknown {
		c.lines = append(c.lines, convertedLine{raw: b})
	}
	return c, c.opened()
}

// note takes down the trees that a JSON object names in its fields.
func (c *Conversion) note(b []byte) {
	for _, t := range oldTrees(b) {
		if _, known := c.old[t.id]; !known {
			c.old[t.id] = t
		}
	}
}

// oldTrees are the trees that a JSON object names in its fields, in their order; none where
// it is no object.
func oldTrees(b []byte) (list []oldTree) {
	_ = jsonread.Object(b, func(key string, v *jsonread.Value) error { // a line that is none is kept as it is
		if key != "tree" && key != "after_tree" || v.Null() {
			return nil
		}
		t := oldTree{}
		v.Members(func(key string, f *jsonread.Value) {
			switch key {
			case "id":
				t.id = hashOf(f)
			case "base":
				t.base = hashOf(f)
			case "object":
				t.object = hashOf(f)
			case "size":
				t.size = f.Int()
			}
		})
		if v.Err() == nil {
			list = append(list, t)
		}
		return nil
	})
	return list
}

func (c *Conversion) row(r row) error {
	l, err := r.parse()
	if err != nil {
		return c.undecoded(r)
	}
	if err := c.record(l.record); err != nil {
		return err
	}
	if l.record.Status == StatusReverted || l.record.After.IsZero() {
		c.last = l.record.Before
	} else {
		c.last = l.record.After
	}
	if !c.h.hasObject(c.last) {
		c.last = tree.Hash{}
	}
	c.lines = append(c.lines, convertedLine{line: l})
	return nil
}

// undecoded takes over a line whose record cannot be decoded: what it needs stays.
func (c *Conversion) undecoded(r row) error {
	b := r.line
	i := bytes.Index(b, []byte(recordMark))
	l, err := r.head()
	if err != nil || i < 0 {
		c.lines = append(c.lines, convertedLine{raw: bytes.Clone(b)})
		return nil //nolint:nilerr // it is no line
	}
	l.raw = bytes.Clone(b[i+len(recordMark)-1 : len(b)-1])
	for i, t := range oldTrees(append(b[:i:i], '}')) {
		if i < len(l.trees) {
			l.trees[i] = t.id
		}
	}
	for i, id := range l.trees {
		if l.trees[i], err = c.root(id); err != nil {
			return err
		}
	}
	c.lines = append(c.lines, convertedLine{line: l})
	return nil
}

// record gives a record the ids of its trees' objects. One that has them already stays.
func (c *Conversion) record(r *Record) error {
	_, before := c.old[r.Before]
	_, after := c.old[r.After]
	if !before && !after {
		return nil
	}
	if r.ManifestSHA256.IsZero() {
		r.ManifestSHA256 = r.Before
	}
	var err error
	if r.Partial() {
		err = c.moved(r)
	} else if r.Before, err = c.root(r.Before); err == nil {
		r.After, err = c.root(r.After)
	}
	return err
}

// moved makes the whole trees of a revert or apply.
func (c *Conversion) moved(r *Record) error {
	var sides [2][]tree.Item
	for i, id := range []tree.Hash{r.Before, r.After} {
		entries, err := manifest.Collect(c.treeWithoutBase(c.old[id]))
		if c.lost(id, err) {
			return nil
		}
		if err != nil {
			return err
		}
		sides[i] = entries
	}
	changes, err := manifest.Compare(manifest.Of(sides[0]...), manifest.Of(sides[1]...))
	if err != nil {
		return treeError(r.Before, err)
	}
	before, err := c.h.Overlay(c.w, c.last, changes)
	if err != nil {
		return err
	}
	after, err := c.h.Apply(c.w, before, changes)
	if err == nil {
		r.Before, r.After = before, after
	}
	return err
}

// root is the id that a tree has now: the same one if it is none of version 1, or lost.
func (c *Conversion) root(id tree.Hash) (tree.Hash, error) {
	var steps []oldTree
	at, done := id, false
	for {
		if _, done = c.roots[at]; done || len(steps) > len(c.old) {
			break
		}
		t, known := c.old[at]
		if !known {
			break
		}
		steps = append(steps, t)
		if at = t.base; at.IsZero() {
			done = true
			break
		}
	}
	if len(steps) == 0 {
		if done {
			return c.roots[id], nil
		}
		return id, nil
	}
	if !done {
		c.lost(id, fmt.Errorf("%w: it rests on tree %s, which is not there", errStep, at))
		return id, nil
	}
	root := c.roots[at] // zero: the last step is whole
	for _, t := range slices.Backward(steps) {
		changes, err := c.changes(t)
		if c.lost(id, err) {
			return id, nil
		}
		if err == nil {
			root, err = c.h.Apply(c.w, root, changes)
		}
		if err != nil {
			return id, treeError(t.id, err)
		}
		c.roots[t.id] = root
	}
	return root, nil
}

// lost takes down that a tree cannot be read any more.
func (c *Conversion) lost(id tree.Hash, err error) bool {
	var missing *store.MissingError
	var damaged *store.DamagedError
	if !errors.As(err, &missing) && !errors.As(err, &damaged) && !errors.Is(err, manifest.ErrBinary) && !errors.Is(err, errStep) {
		return false
	}
	c.Lost = append(c.Lost, treeError(id, err))
	return true
}

// changes lead to a tree of version 1 from the one that it rests on, or from nothing.
func (c *Conversion) changes(t oldTree) (out []tree.Change, err error) {
	put, gone := c.treeWithoutBase(t), manifest.Of()
	if !t.base.IsZero() {
		if put, gone, err = c.step(t); err != nil {
			return nil, err
		}
	}
	told := map[tree.Path]bool{}
	for it, err := range put {
		if err != nil {
			return nil, err
		}
		told[it.Path] = true
		out = append(out, tree.Change{Path: it.Path, New: &it.Entry})
	}
	for it, err := range gone {
		if err != nil {
			return nil, err
		}
		if !told[it.Path] {
			told[it.Path] = true
			out = append(out, tree.Change{Path: it.Path})
		}
	}
	return out, nil
}

// treeWithoutBase streams the entries of a tree that is kept as one object, no step.
func (c *Conversion) treeWithoutBase(t oldTree) tree.Seq {
	return func(yield func(tree.Item, error) bool) {
		r, err := c.h.openObject(t.object)
		if err != nil {
			yield(tree.Item{}, err)
			return
		}
		defer r.Close()
		manifest.ReadTree(r)(yield)
	}
}

const (
	stepMagic = "dstep1\n\x00"
	maxStep   = 1 << 30
)

var errStep = errors.New("malformed tree step")

// step reads a step: the magic, the length of what follows as a uvarint, the paths that
// are new or other as a binary tree, and those that are gone as another.
func (c *Conversion) step(t oldTree) (put, gone tree.Seq, err error) {
	r, err := c.h.openObject(t.object)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxStep))
	if err != nil {
		return nil, nil, err
	}
	rest, ok := bytes.CutPrefix(b, []byte(stepMagic))
	n, used := binary.Uvarint(rest)
	if !ok || used <= 0 || n > uint64(len(rest)-used) {
		return nil, nil, errStep
	}
	rest = rest[used:]
	return manifest.DecodeTree(rest[:n]), manifest.DecodeTree(rest[n:]), nil
}

// openedV1 is what version 1 had in an open record beside the present form.
type openedV1 struct {
	Tree  json.RawMessage `json:"tree"`
	Extra struct {
		Ending map[string]json.RawMessage `json:"ending"`
	} `json:"extra"`
}

// opened converts the open records. One that is damaged is recovery's to deal with.
func (c *Conversion) opened() error {
	open, _, err := c.h.ListOpen()
	if err != nil || len(open) == 0 {
		return err
	}
	dir, err := c.h.p.Store.OpenDir(openDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, o := range open {
		data, err := project.ReadFile(dir, o.Record.ID+openSuffix, maxOpen)
		if err != nil {
			return err
		}
		var v openedV1
		if json.Unmarshal(data, &v) != nil || v.Tree == nil {
			continue // it has the present form
		}
		if err := c.openedOne(o, &v); err != nil {
			return err
		}
		c.open = append(c.open, o)
	}
	return nil
}

func (c *Conversion) openedOne(o *Opened, v *openedV1) error {
	c.note(slices.Concat([]byte(`{"tree":`), v.Tree, []byte("}")))
	end := v.Extra.Ending
	for _, name := range []string{"tree", "after_tree"} {
		if raw, ok := end[name]; ok {
			c.note(slices.Concat([]byte(`{"tree":`), raw, []byte("}")))
			delete(end, name)
		}
	}
	if end["record"] == nil {
		return c.record(o.Record)
	}
	r, err := ParseRecord(end["record"])
	if err != nil {
		return nil //nolint:nilerr // nobody can close it by this either
	}
	if err := c.record(r); err != nil {
		return err
	}
	o.Record.Before, o.Record.ManifestSHA256 = r.Before, r.ManifestSHA256
	if !o.Record.After.IsZero() {
		o.Record.After = r.After
	}
	if end["record"], err = json.Marshal(r); err != nil {
		return err
	}
	o.Extra["ending"], err = json.Marshal(end)
	return err
}

// Replace puts the open records and the log in the place of those of version 1. What
// Convert has put is durable, and earlier versions refuse the store. After a death in
// between all of it can be done again.
func (c *Conversion) Replace() error {
	for _, o := range c.open {
		if err := c.h.Begin(o); err != nil {
			return err
		}
	}
	l, err := c.h.readOn()
	if err != nil {
		return err
	}
	if len(c.lines) == 0 {
		return nil
	}
	err = l.rewrite(c.h.p.Store, c.write)
	c.h.Refresh()
	return err
}

func (c *Conversion) write(w *bufio.Writer) {
	for _, l := range c.lines {
		if l.line != nil {
			_, _ = w.Write(l.line.append(w.AvailableBuffer()))
		} else {
			writeLine(w, l.raw)
		}
	}
}
