package history

import (
	"slices"

	"decree/jsonread"
	"decree/tree"
)

// Walked is what a record says of the chain that undo and redo walk. One with none of
// these is no undo and no redo.
type Walked struct {
	// Undoes are the records that an undo took back, newest first.
	Undoes []string
	// Redoes are those that a redo brought again, in its order, each with the undo that
	// had taken it back: one may have been taken back by several, path by path.
	Redoes []Redone
	// Passed are records that an undo found gone from the tree, with no record of who took
	// them back: they are in the chain no longer.
	Passed []string
	// Paths are the only ones that it was about, with all below them, raw; none: all.
	Paths []tree.Path
}

// Redone is a record that a redo brought again, and the undo that had taken it back.
type Redone struct{ ID, Undo string }

// Any says whether the record is an undo or a redo.
func (w Walked) Any() bool { return len(w.Undoes)+len(w.Redoes) > 0 }

// Chain is what undo and redo have before them: the fold of what the records list, and
// nothing else. No status is asked, but where a record was taken back by hand.
//
// A record that changed the tree is put onto the chain and ends what could be redone. An
// undo takes records out, and these can be redone; a redo puts them back in their
// places. An undo or redo of some paths does so for these paths of the records alone. A
// record inside another one that has ended since is a part of that, and neither on the
// chain nor a step of it.
type Chain struct {
	Undo []Link // what stands, wholly or in part, newest first
	Redo []Link // what can be brought again, the next one first
}

// Link is a record in a chain.
type Link struct {
	ID     string
	Record *Record // nil: it was removed
	Undo   *Record // of what can be brought again: the undo that took it back
	// By is, of what stands in the chain, the record that took it back by hand: where that
	// one stands there is nothing to undo. It may have been removed. "": none did.
	By string
	// Whole says of what can be brought again that nothing of its undo was brought yet.
	Whole bool
	marks []mark
	by    []mark // of By
}

// mark is one undo or redo of a record.
type mark struct {
	undo  string // the undo, also of a redo
	back  bool   // it is a redo of it
	paths []tree.Path
}

// Has says whether a path of the record is what the link is about: whether its change
// there stands, or was taken back by this link's undo and not brought again.
func (l *Link) Has(path tree.Path) bool {
	owner := takenBy(l.marks, path)
	if l.Undo != nil {
		return owner == l.Undo.ID
	}
	return owner == "" && (l.By == "" || takenBy(l.by, path) != "")
}

// takenBy is the undo that has taken back a path, "" if none has: of several that cover it
// the first, until that is redone.
func takenBy(marks []mark, path tree.Path) (undo string) {
	for _, m := range marks {
		switch {
		case !path.Within(m.paths...):
		case !m.back && undo == "":
			undo = m.undo
		case m.back && undo == m.undo:
			undo = ""
		}
	}
	return undo
}

// Taken says what of the record, which changed paths, undos hold after one more step of the
// chain about only (none: all of its paths): the last undo that holds a part, "" for none, and
// whether undos hold all of it. The step is an undo called by, or, of what can be brought
// again, a redo.
func (l *Link) Taken(paths []tree.Path, by string, only []tree.Path) (last string, whole bool) {
	step := mark{undo: by, paths: only}
	if l.Undo != nil {
		step = mark{undo: l.Undo.ID, back: true, paths: only}
	}
	marks := append(slices.Clip(l.marks), step)
	whole = true
	at := -1
	for _, path := range paths {
		owner := takenBy(marks, path)
		whole = whole && owner != ""
		at = max(at, slices.IndexFunc(marks, func(m mark) bool { return !m.back && m.undo == owner }))
	}
	if at >= 0 {
		last = marks[at].undo
	}
	return last, whole && at >= 0
}

// TakenByHand says whether the record was taken back, wholly or in part, by another record than
// an undo.
func (l *Link) TakenByHand() bool {
	by := l.Record.UndoneBy
	return by != "" && !slices.ContainsFunc(l.marks, func(m mark) bool { return m.undo == by })
}

// InPart says that not all paths of the record may be what the link is about.
func (l *Link) InPart() bool {
	if l.Undo != nil && len(l.marks) == 1 {
		return len(l.marks[0].paths) > 0
	}
	return len(l.marks) > 0
}

// gone says that no path of the record stands: since an undo of all of them none was redone.
func gone(marks []mark) (is bool) {
	for _, m := range marks {
		is = !m.back && (is || len(m.paths) == 0)
	}
	return is
}

// Fold is the chain of a history; records are in its order, oldest first. One that begins
// late knows less: no record before its first one, and of the undos before it nothing.
func Fold(records []*Record) *Chain {
	f := fold{at: map[string]int{}, records: records, marks: map[string][]mark{}}
	for i, r := range records {
		f.at[r.ID] = i
	}
	for i, r := range records {
		switch {
		case r.Status == StatusOpen || f.part(i):
		case r.Walked.Any():
			f.walk(r)
		case r.movedTree():
			f.steps, f.undone = append(f.steps, r), nil
		}
	}
	return f.chain()
}

type fold struct {
	records []*Record
	at      map[string]int
	marks   map[string][]mark
	steps   []*Record
	undone  []Link // the last one that was undone is the last
}

// part says whether the record i was made inside one that has ended after it.
func (f *fold) part(i int) bool {
	outer, known := f.at[f.records[i].Inside]
	return known && outer > i && f.records[outer].Status != StatusOpen
}

// movedTree says whether the record left the tree other than it found it. What a run has
// changed that could not be written down is not known, and counts.
func (r *Record) movedTree() bool {
	switch {
	case r.Isolated != "" || r.Status == StatusReverted:
		return false
	case r.DiffSHA256.IsZero():
		return r.Reason == Run || r.Reason == Turn
	}
	return r.DiffSHA256 != tree.EmptySum // Changes does not count directories
}

// walk notes what an undo or redo did.
func (f *fold) walk(r *Record) {
	for _, id := range r.Walked.Undoes {
		f.undone = append(f.undone, Link{ID: id, Undo: r})
	}
	for _, id := range slices.Concat(r.Walked.Undoes, r.Walked.Passed) {
		f.marks[id] = append(f.marks[id], mark{undo: r.ID, paths: r.Walked.Paths})
	}
	for _, b := range r.Walked.Redoes {
		f.marks[b.ID] = append(f.marks[b.ID], mark{undo: b.Undo, back: true, paths: r.Walked.Paths})
	}
}

func (f *fold) chain() *Chain {
	c := &Chain{}
	for _, r := range slices.Backward(f.steps) {
		if marks := f.marks[r.ID]; !gone(marks) {
			by := f.byHand(r)
			c.Undo = append(c.Undo, Link{ID: r.ID, Record: r, By: by, marks: marks, by: f.marks[by]})
		}
	}
	begun := map[string]bool{} // undos of which something was brought again
	for _, list := range f.marks {
		for _, m := range list {
			begun[m.undo] = begun[m.undo] || m.back
		}
	}
	for _, l := range slices.Backward(f.undone) {
		l.marks, l.Whole = f.marks[l.ID], !begun[l.Undo.ID]
		if i, known := f.at[l.ID]; known {
			l.Record = f.records[i]
		}
		if !slices.ContainsFunc(l.marks, func(m mark) bool { return m.back && m.undo == l.Undo.ID && len(m.paths) == 0 }) {
			c.Redo = append(c.Redo, l)
		}
	}
	return c
}

// byHand is the record that took r back by hand and stands, "" if there is none. What
// undos did is theirs to say, and what was done inside a run is the run's.
func (f *fold) byHand(r *Record) string {
	if r.Status != StatusUndone {
		return ""
	}
	i, known := f.at[r.UndoneBy]
	if known && (f.records[i].Walked.Any() || f.part(i) || gone(f.marks[r.UndoneBy])) {
		return ""
	}
	return r.UndoneBy
}

// walked writes what the record says of the chain, where it says anything.
func (w *writer) walked(v Walked) {
	if len(v.Undoes) > 0 {
		w.texts("undoes", v.Undoes)
	}
	if len(v.Redoes) > 0 {
		writeList(w, "redoes", v.Redoes, func(dst []byte, b Redone) []byte {
			o := compact(dst)
			o.text("id", b.ID)
			o.text("undo", b.Undo)
			return o.end()
		})
	}
	if len(v.Passed) > 0 {
		w.texts("passed", v.Passed)
	}
	if len(v.Paths) > 0 {
		w.paths("paths", v.Paths)
	}
}

// read takes the field key into w; false: it is none of them.
func (w *Walked) read(key string, v *jsonread.Value) bool {
	switch key {
	case "undoes":
		w.Undoes = v.Texts()
	case "redoes":
		v.Array(func(item *jsonread.Value) {
			var b Redone
			item.Members(func(name string, m *jsonread.Value) {
				switch name {
				case "id":
					b.ID = m.Text()
				case "undo":
					b.Undo = m.Text()
				}
			})
			w.Redoes = append(w.Redoes, b)
		})
	case "passed":
		w.Passed = v.Texts()
	case "paths":
		w.Paths = pathsOf(v)
	default:
		return false
	}
	return true
}

// ids are all records that it names.
func (w Walked) ids() []string {
	out := slices.Concat(w.Undoes, w.Passed)
	for _, b := range w.Redoes {
		out = append(out, b.ID, b.Undo)
	}
	return out
}
