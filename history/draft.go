package history

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"decree/jsonread"
	"decree/patch"
	"decree/project"
	"decree/tree"
)

// DraftState is what has become of an isolated run's work.
type DraftState string

// The states of a draft.
const (
	DraftWaiting   DraftState = "waiting"
	DraftPartly    DraftState = "partly" // published in part; the rest waits
	DraftPublished DraftState = "published"
	DraftDiscarded DraftState = "discarded"
)

var draftStates = []string{string(DraftWaiting), string(DraftPartly), string(DraftPublished), string(DraftDiscarded)}

// Draft is the work of an isolated run, and what has become of it.
type Draft struct {
	Name  string     `json:"name,omitempty"`
	State DraftState `json:"state"`
	By    []string   `json:"by,omitempty"` // the records that published it, oldest first
	// NoBase are the paths of which it is not known what they were when the run began.
	NoBase []tree.Path `json:"no_base,omitempty"`
	Git    int         `json:"git,omitempty"` // files of .git directories that the layer alone has
	// Outdated are, by records that published a part of the draft, undone since or not, the paths of them that a command in the layer has changed since.
	Outdated map[string][]tree.Path `json:"outdated,omitempty"`
}

// Waits says whether there is something left to publish.
func (d *Draft) Waits() bool {
	return d != nil && (d.State == DraftWaiting || d.State == DraftPartly)
}

// become is the draft after another state was written for it. Its name and what is known
// of its paths stay.
func (d *Draft) become(later *Draft) *Draft {
	if d == nil || later == nil {
		return d
	}
	sum := *d
	sum.State, sum.By = later.State, slices.Clone(later.By)
	return &sum
}

func sameFate(a, b *Draft) bool {
	return a == nil || b == nil || a.State == b.State && slices.Equal(a.By, b.By)
}

func (d *Draft) append(dst []byte) []byte {
	w := compact(dst)
	w.textIfAny("name", d.Name)
	w.text("state", string(d.State))
	if len(d.By) > 0 {
		w.texts("by", d.By)
	}
	if len(d.NoBase) > 0 {
		w.paths("no_base", d.NoBase)
	}
	if d.Git > 0 {
		w.number("git", int64(d.Git))
	}
	if len(d.Outdated) > 0 {
		w.value("outdated", d.appendOutdated)
	}
	return w.end()
}

func (d *Draft) appendOutdated(dst []byte) []byte {
	w := compact(dst)
	for _, id := range slices.Sorted(maps.Keys(d.Outdated)) {
		w.paths(id, d.Outdated[id])
	}
	return w.end()
}

func outdatedOf(v *jsonread.Value) map[string][]tree.Path {
	out := map[string][]tree.Path{}
	v.Members(func(id string, m *jsonread.Value) { out[id] = pathsOf(m) })
	return out
}

func draftOf(v *jsonread.Value) *Draft {
	d := &Draft{}
	v.Members(func(name string, m *jsonread.Value) {
		switch name {
		case "name":
			d.Name = m.Text()
		case "state":
			d.State = DraftState(m.Known(draftStates...))
		case "by":
			d.By = m.Texts()
		case "no_base":
			d.NoBase = pathsOf(m)
		case "git":
			d.Git = int(m.Int())
		case "outdated":
			d.Outdated = outdatedOf(m)
		}
	})
	for _, id := range d.By {
		if !IsID(id) {
			v.Fail(errNoID)
		}
	}
	return d
}

// draftMark stands in the line of a record with a draft. In a JSON string its quotes would
// be escaped, and command and description come as such.
const draftMark = `,"draft":{`

// Drafts are the records of isolated runs that left work, whatever became of it, newest
// first. Those that cannot be read are left out; the listing names them.
func (h *History) Drafts() (out []*Record, err error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(l.rows) {
		if !bytes.Contains(r.line, []byte(draftMark)) {
			continue
		}
		if rec, err := r.record(); err == nil && rec.Draft != nil {
			out = append(out, rec)
		}
	}
	return out, nil
}

// resolveDraft finds the draft called name: the newest that waits, else the newest; "" for
// none.
func (h *History) resolveDraft(name string) (id string, err error) {
	drafts, err := h.Drafts()
	for _, rec := range drafts {
		if rec.Draft.Name != name {
			continue
		}
		if rec.Draft.Waits() {
			return rec.ID, nil
		}
		if id == "" {
			id = rec.ID
		}
	}
	return id, err
}

// SetDrafts changes what has become of drafts, by id, as an operation that is no record.
func (h *History) SetDrafts(ids []string, state DraftState) error {
	t := &commit{h: h, line: &line{op: opDraft}}
	defer t.drop()
	var list []StatusEffect
	for _, id := range ids {
		rec, err := h.Get(id)
		if err != nil {
			return err
		}
		if rec.Draft == nil {
			return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("record %s is no draft", id)}
		}
		list = append(list, StatusEffect{ID: id, Draft: &Draft{State: state, By: rec.Draft.By}})
	}
	if err := t.change(list); err != nil {
		return err
	}
	return t.write()
}

// DiffChanges are the changes that a record's changes.diff tells of, in its order.
func (h *History) DiffChanges(r *Record) (out []tree.Change, err error) {
	return collected(h.DiffEach(r))
}

// StoredChanges is DiffChanges of the store's copy: what somebody has made of the one in
// .decree/runs does not count.
func (h *History) StoredChanges(r *Record) ([]tree.Change, error) {
	return collected(diffEach(r, func() (io.ReadCloser, error) { return h.openObject(r.DiffSHA256) }))
}

func collected(changes iter.Seq2[tree.Change, error]) (out []tree.Change, err error) {
	for c, err := range changes {
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// DiffEach is DiffChanges of changes that are too many to be held: one after the other. It can
// be read more than once.
func (h *History) DiffEach(r *Record) iter.Seq2[tree.Change, error] {
	return diffEach(r, func() (io.ReadCloser, error) { return h.OpenFile(r.ID, ChangesFile) })
}

func diffEach(r *Record, open func() (io.ReadCloser, error)) iter.Seq2[tree.Change, error] {
	return func(yield func(tree.Change, error) bool) {
		if r.DiffSHA256.IsZero() {
			return
		}
		f, err := open()
		if err != nil {
			yield(tree.Change{}, err)
			return
		}
		defer f.Close()
		var c tree.Change // the last one, which a section may follow: a change of kind has two
		more := true
		err = Facts(f, func(s *patch.Section) bool {
			if c.Path == s.Path {
				c.New = s.New
				return true
			}
			if c.Path != "" {
				more = yield(c, nil)
			}
			c = tree.Change{Path: s.Path, Old: s.Old, New: s.New}
			return more
		})
		switch {
		case !more:
		case err != nil:
			yield(tree.Change{}, err)
		case c.Path != "":
			yield(c, nil)
		}
	}
}

// isolatedFacts writes what run.json says of an isolated run.
func (r *Record) isolatedFacts(w *writer) {
	if r.Isolated == "" {
		return
	}
	w.text("isolated", r.Isolated)
	if r.Draft != nil {
		w.value("draft", r.Draft.append)
	}
	if r.Judge != nil {
		w.value("judge", r.Judge.append)
	}
}

func (r *Record) writeTrees(w *writer) {
	if r.Isolated != "" {
		w.raw("before", "null")
		w.raw("after", "null")
		return
	}
	w.hash("before", r.Before)
	w.hash("after", r.After)
}

// changeDraft has the line change what has become of a draft.
func (t *commit) changeDraft(l *line, s StatusEffect) {
	if r := l.record; !sameFate(r.Draft, s.Draft) {
		r.Draft = r.Draft.become(s.Draft)
		t.line.effect(s.ID).draft = &Draft{State: s.Draft.State, By: s.Draft.By}
	}
}
