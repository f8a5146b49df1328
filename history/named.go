package history

import (
	"fmt"
	"path"

	"decree/patch"
	"decree/project"
	"decree/tree"
)

// Live calls each for every object that a record needs: its files, its trees'
// objects, and the contents that these name. An object may come more than once.
// What cannot be read is an error: nothing may be freed then. What foreign records
// name counts too, as far as they can be read.
func (h *History) Live(each func(tree.Hash)) error {
	return h.Named(func(n Naming) { each(n.Object) })
}

// Naming is an object that a record needs.
type Naming struct {
	ID     string // of the record
	Object tree.Hash
	Path   string // of a content: where it is in the record's trees; "" for what is not in them
	File   bool   // the object is a file of the record's directory in .decree/runs
}

// Named calls each for what Live does, record by record: those of the log from the
// oldest to the newest, then the foreign ones, the open ones. What more records have comes
// with the first, where it is in a tree.
func (h *History) Named(each func(Naming)) error {
	l, err := h.rows()
	if err != nil {
		return err
	}
	if n := len(l.unknown); n > 0 {
		return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("%s has lines that this decree cannot read (%d), so it cannot tell which contents are still needed", logFile, n),
			Advice: "a newer decree may have written them: use that one"}
	}
	t := &naming{h: h, each: each, seen: map[tree.Hash]bool{}}
	if err := h.lines(t.record); err != nil {
		return err
	}
	if err := h.liveForeign(func(id string, object tree.Hash) { each(Naming{ID: id, Object: object}) }); err != nil {
		return err
	}
	return t.open()
}

// lines calls each for the lines of the log, oldest first, without their records.
func (h *History) lines(each func(*line) error) error {
	l, err := h.rows()
	if err != nil {
		return err
	}
	for _, r := range l.rows {
		e, err := r.head()
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// naming is a pass of Named.
type naming struct {
	h    *History
	each func(Naming)
	of   Naming             // the record that is being read
	seen map[tree.Hash]bool // the directories' objects that were read
}

// object is for what is in no tree.
func (t *naming) object(sum tree.Hash) {
	n := t.of
	n.Object = sum
	t.each(n)
}

func (t *naming) record(e *line) error {
	t.of = Naming{ID: e.id()}
	for name, sum := range e.files {
		t.of.File = true
		t.object(sum)
		t.of.File = false
		if err := t.h.liveDiff(e, name, sum, t.object); err != nil {
			return err
		}
	}
	return t.trees(e.trees)
}

func (t *naming) trees(ids [2]tree.Hash) error {
	for _, id := range ids {
		err := t.h.closure(id, t.seen, func(path []byte, sum tree.Hash) {
			n := t.of
			n.Path, n.Object = string(path), sum
			t.each(n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// closure calls each for the objects and contents of a tree, but for the objects in seen
// and what is in them; path is that of a content, nil for an object. A zero id is none.
func (h *History) closure(id tree.Hash, seen map[tree.Hash]bool, each func(path []byte, sum tree.Hash)) error {
	if id.IsZero() || seen[id] {
		return nil
	}
	if err := h.kept(id); err != nil {
		return err
	}
	fresh := once(seen)
	return treeError(id, h.trees().Walk(id, func(dir []byte, object tree.Hash) bool {
		if !fresh(dir, object) {
			return false
		}
		each(nil, object)
		return true
	}, func(path []byte, n *tree.Node) error {
		if n.Type == tree.Regular { // a link's target is in the object itself
			each(path, n.SHA256)
		}
		return nil
	}))
}

// Closure calls each for the objects and contents of a kept tree that are not in seen,
// which may be nil.
func (h *History) Closure(id tree.Hash, seen map[tree.Hash]bool, each func(tree.Hash)) error {
	if seen == nil {
		seen = map[tree.Hash]bool{}
	}
	return h.closure(id, seen, func(_ []byte, sum tree.Hash) { each(sum) })
}

func (t *naming) open() error {
	open, bad, err := t.h.ListOpen()
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("open record %s: %w", bad[0].ID, bad[0].Err)
	}
	for _, o := range open {
		t.of = Naming{ID: o.Record.ID}
		for _, r := range o.Rules {
			t.object(r.SHA256)
		}
		if err := t.trees([2]tree.Hash{o.Record.Before, o.Record.After}); err != nil {
			return err
		}
	}
	return nil
}

// liveDiff takes the contents that a diff leaves to the store, where they may be
// in no tree that stays: those of an attempt that was put back before the next,
// and of what was changed between records.
func (h *History) liveDiff(e *line, name string, sum tree.Hash, each func(tree.Hash)) error {
	if path.Ext(name) != ".diff" || name == diffName && !e.trees[0].IsZero() && !e.trees[1].IsZero() {
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
