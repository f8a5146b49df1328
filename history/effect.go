package history

import (
	"errors"
	"maps"
	"slices"

	"decree/jsonread"
	"decree/tree"
)

// fileStat is what stat says of a run.json when it was written: while it is so, the file
// need not be read. Zero: not known.
type fileStat struct{ size, mtime int64 }

// effect is what an operation changes about a record that stands before it in the log,
// or the sum of what several change.
type effect struct {
	id       string
	status   Status               // "": as it was
	undoneBy string               // where there is a status; "": nothing
	draft    *Draft               // its state and By; nil: as it was
	work     *work                // what it says of a draft's changes; nil: as it was
	files    map[string]tree.Hash // those that were written anew
	file     fileStat             // zero: as it was
}

// with is the sum of e, which may be nil, and a later one.
func (e *effect) with(later *effect) *effect {
	if e == nil {
		return later
	}
	sum := *e
	if later.status != "" {
		sum.status, sum.undoneBy = later.status, later.undoneBy
	}
	if later.draft != nil {
		sum.draft = later.draft
	}
	if later.work != nil {
		sum.work = later.work
	}
	if later.file != (fileStat{}) {
		sum.file = later.file
	}
	if len(later.files) > 0 {
		sum.files = map[string]tree.Hash{}
		maps.Copy(sum.files, e.files)
		maps.Copy(sum.files, later.files)
	}
	return &sum
}

// apply makes a record's line what it is after the effect; nil is none.
func (e *effect) apply(l *line) error {
	if e == nil {
		return nil
	}
	if e.file != (fileStat{}) {
		l.file = e.file
	}
	if r := l.record; r != nil {
		if e.status != "" {
			r.Status, r.UndoneBy = e.status, e.undoneBy
		}
		r.Draft = r.Draft.become(e.draft)
		e.work.apply(r)
		if sum, ok := e.files[ChangesFile]; ok && r.DiffSHA256 == l.files[ChangesFile] {
			r.DiffSHA256 = sum
		}
		if sum, ok := e.files[OutsideFile]; ok {
			if err := r.setOutsideSum(sum); err != nil {
				return err
			}
		}
	}
	maps.Copy(l.files, e.files)
	return nil
}

func (e *effect) append(dst []byte) []byte {
	w := compact(dst)
	w.text("id", e.id)
	w.textIfAny("status", string(e.status))
	w.textIfAny("undone_by", e.undoneBy)
	if e.draft != nil {
		w.value("draft", e.draft.append)
	}
	if e.work != nil {
		w.value("work", e.work.append)
	}
	if len(e.files) > 0 {
		w.files(e.files)
	}
	if e.file != (fileStat{}) {
		w.file(e.file)
	}
	return w.end()
}

func (w *writer) effects(all []*effect) {
	writeList(w, "effects", all, func(dst []byte, e *effect) []byte { return e.append(dst) })
}

var errNoID = errors.New("expected the ids of records")

func effectsOf(v *jsonread.Value) (list []*effect) {
	v.Array(func(item *jsonread.Value) {
		e := &effect{}
		item.Members(func(name string, m *jsonread.Value) {
			switch name {
			case "id":
				e.id = m.Text()
			case "status":
				e.status = Status(m.Known(statuses...))
			case "undone_by":
				e.undoneBy = m.Text()
			case "draft":
				e.draft = draftOf(m)
			case "work":
				e.work = workOf(m)
			case "files":
				e.files = hashesOf(m)
			case "file":
				e.file = fileStatOf(m)
			}
		})
		for _, id := range []string{e.id, e.undoneBy} {
			if !IsID(id) && (id != "" || e.id == "") {
				item.Fail(errNoID)
			}
		}
		list = append(list, e)
	})
	return list
}

func fileStatOf(v *jsonread.Value) fileStat {
	var n []int64
	v.Array(func(e *jsonread.Value) { n = append(n, e.Int()) })
	if len(n) != 2 {
		return fileStat{}
	}
	return fileStat{n[0], n[1]}
}

// effect is what the line changes about record id: an empty one that is put there if
// there is none.
func (l *line) effect(id string) *effect {
	i := slices.IndexFunc(l.effects, func(e *effect) bool { return e.id == id })
	if i < 0 {
		i = len(l.effects)
		l.effects = append(l.effects, &effect{id: id})
	}
	return l.effects[i]
}
