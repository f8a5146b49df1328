package history

import (
	"fmt"
	"path"
	"slices"

	"decree/manifest"
	"decree/patch"
	"decree/project"
)

// Live calls each for every object that a record needs: its files, its trees'
// objects, and the contents that these name. An object may come more than once.
// What cannot be read is an error: nothing may be freed then. What foreign records
// name counts too, as far as they can be read.
func (h *History) Live(each func(patch.Hash)) error {
	return h.Named(func(n Naming) { each(n.Object) })
}

// Naming is an object that a record needs.
type Naming struct {
	ID     string // of the record
	Object patch.Hash
	Path   string // of a content: where it is in the record's trees; "" for what is not in them
	Gone   bool   // the record was removed, but trees of others rest on its own
	File   bool   // the object is a file of the record's directory in .decree/runs
}

// Named calls each for what Live does, record by record: those of the log from the
// oldest to the newest, then those that were removed, the foreign ones, the open ones.
// Of a tree that rests on another one only what it has beside that one comes, and
// of one that more records have it comes with the first.
func (h *History) Named(each func(Naming)) error {
	l, err := h.rows()
	if err != nil {
		return err
	}
	if n := len(l.unknown); n > 0 {
		return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("%s has lines that this decree cannot read (%d), so it cannot tell which contents are still needed", logFile, n),
			Advice: "a newer decree may have written them: use that one"}
	}
	live, gone, err := h.heads()
	if err != nil {
		return err
	}
	t := &naming{h: h, each: each, known: map[patch.Hash]bool{}, seen: map[patch.Hash]bool{}}
	for _, e := range slices.Concat(live, gone) {
		for _, s := range e.trees() {
			t.known[s.ID] = true
		}
	}
	open, err := t.ofOpen() // records made beside a run rest on the tree that it began with
	if err != nil {
		return err
	}
	for _, e := range slices.Concat(live, gone) {
		if err := t.record(e); err != nil {
			return err
		}
	}
	if err := h.liveForeign(func(id string, object patch.Hash) { each(Naming{ID: id, Object: object}) }); err != nil {
		return err
	}
	return t.open(open)
}

// naming is a pass of Named.
type naming struct {
	h     *History
	each  func(Naming)
	of    Naming              // the record that is being read
	known map[patch.Hash]bool // trees, by their ids
	seen  map[patch.Hash]bool // the trees' objects that were read
}

// object is for what is in no tree.
func (t *naming) object(sum patch.Hash) {
	n := t.of
	n.Object = sum
	t.each(n)
}

func (t *naming) record(e *line) error {
	t.of = Naming{ID: e.id(), Gone: e.gone}
	for name, sum := range e.files {
		t.of.File = true
		t.object(sum)
		t.of.File = false
		if err := t.h.liveDiff(e, name, sum, t.object); err != nil {
			return err
		}
	}
	return t.trees(e.trees())
}

func (t *naming) trees(list []*TreeSpec) error {
	for _, s := range list {
		if !s.Base.IsZero() && !t.known[s.Base] {
			return treeError(s.ID, fmt.Errorf("it is stored as a difference from tree %s, which the store does not have", s.Base))
		}
		if t.seen[s.Object] {
			continue
		}
		t.seen[s.Object] = true
		if err := t.tree(s); err != nil {
			return err
		}
	}
	return nil
}

// tree takes a keyframe's contents, or a step's: each path of a step is in
// the tree that the step leads to.
func (t *naming) tree(s *TreeSpec) error {
	t.object(s.Object)
	entries := t.h.keyframe(s)
	if !s.Base.IsZero() {
		b, err := t.h.readObject(s.Object, s.Size)
		if err != nil {
			return treeError(s.ID, err)
		}
		if entries, _, err = splitStep(b); err != nil {
			return treeError(s.ID, err)
		}
	}
	return eachContent(entries, s.ID, func(path string, sum patch.Hash) {
		n := t.of
		n.Path, n.Object = path, sum
		t.each(n)
	})
}

// ofOpen are the open records, whose trees are known from here on.
func (t *naming) ofOpen() ([]*Opened, error) {
	open, bad, err := t.h.ListOpen()
	if err == nil && len(bad) > 0 {
		err = fmt.Errorf("open record %s: %w", bad[0].ID, bad[0].Err)
	}
	for _, o := range open {
		if o.Tree != nil {
			t.known[o.Tree.ID] = true
		}
	}
	return open, err
}

func (t *naming) open(open []*Opened) error {
	for _, o := range open {
		t.of = Naming{ID: o.Record.ID}
		for _, r := range o.Rules {
			t.object(r.SHA256)
		}
		if o.Tree != nil {
			if err := t.trees([]*TreeSpec{o.Tree}); err != nil {
				return err
			}
		}
	}
	return nil
}

// liveDiff takes the contents that a diff leaves to the store, where they may be
// in no tree that stays: those of an attempt that was put back before the next,
// and of what was changed between records.
func (h *History) liveDiff(e *line, name string, sum patch.Hash, each func(patch.Hash)) error {
	if path.Ext(name) != ".diff" || name == diffName && e.tree != nil && e.afterTree != nil {
		return nil
	}
	r, err := h.openObject(sum)
	if err != nil {
		return fmt.Errorf("record %s: %s: %w", e.id(), name, err)
	}
	defer r.Close()
	err = Facts(r, func(f *patch.Section) bool {
		if f.Stored {
			factContents(f, each)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("record %s: %s: %w", e.id(), name, err)
	}
	return nil
}

// diffName is the name of a record's own diff, whose contents are in its trees.
const diffName = "changes.diff"

func eachContent(entries manifest.Seq, id patch.Hash, each func(path string, sum patch.Hash)) error {
	for it, err := range entries {
		if err != nil {
			return treeError(id, err)
		}
		if it.Entry.Type == patch.Regular { // a link's target is in the tree itself
			each(it.Path, it.Entry.SHA256)
		}
	}
	return nil
}
