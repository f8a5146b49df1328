package recorder

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"decree/history"
	"decree/patch"
	"decree/tree"

	"decree/project"
)

// Point is a state of the tree: before or after a record, or now.
type Point struct {
	Record *history.Record
	After  bool
	Now    bool
}

// Words says what the state is, without its time: "what it was before 'make'".
func (p Point) Words() string {
	name := "'" + title(p.Record) + "'"
	if title(p.Record) == noun(p.Record) {
		name = "that " + noun(p.Record)
	}
	switch {
	case p.After:
		return "what " + name + " left"
	case noun(p.Record) == "checkpoint":
		return strings.TrimSpace("the checkpoint " + strings.TrimPrefix(name, "that checkpoint"))
	}
	return "what it was before " + name
}

// observedWhole says whether a record observed the tree whole.
func observedWhole(rec *history.Record) bool {
	return !rec.Partial()
}

// treeAfter is the tree that a record ends with: a run that was put back ends where
// it began.
func treeAfter(rec *history.Record) tree.Hash {
	if rec.Status == history.StatusReverted || rec.After.IsZero() {
		return rec.Before
	}
	return rec.After
}

// tree is the tree at a point that is not now.
func (p Point) tree() tree.Hash {
	if p.After {
		return afterOf(p.Record)
	}
	return p.Record.Before
}

// afterOf is the tree after a record as --after means it: what its last attempt left.
func afterOf(rec *history.Record) tree.Hash {
	if rec.After.IsZero() {
		return rec.Before
	}
	return rec.After
}

// entries streams the tree at a point that is not now; of a draft what its run left at the
// paths that it changed.
func (r *Reader) entries(p Point) (tree.Seq, error) {
	if !p.draft() {
		return r.history.Tree(p.tree())
	}
	changes, err := r.draftChanges(p.Record)
	return history.OneSide(changesInMemory(changes), newSide), err
}

// At is the newest known state at or before t: what was observed whole, or that
// with the reverts and applies since, who know their own paths only.
func (r *Reader) At(t time.Time) (Point, error) {
	r.catchUp()
	st, err := r.history.Observed(t)
	if err != nil {
		return Point{}, err
	}
	p := Point{Record: st.Record, After: st.Side == history.After}
	list, err := r.history.List(history.ListOptions{Limit: 1, Keep: func(o *history.Record) bool {
		return !observedWhole(o) && o.Isolated == "" && o.Status != history.StatusOpen && !o.Ended.After(t) && history.Compare(o, st.Record) > 0
	}})
	if err == nil && len(list.Records) == 1 {
		p = Point{Record: list.Records[0], After: true}
	}
	return p, err
}

// DiffOptions of a Diff between two points.
type DiffOptions struct {
	From, To Point
	Paths    []tree.Path
}

// Diff writes the difference between two points as a changes.diff.
func (r *Reader) Diff(ctx context.Context, w io.Writer, o DiffOptions) (patch.Stat, error) {
	r.catchUp()
	changes, err := r.between(ctx, o)
	if err != nil {
		return patch.Stat{}, err
	}
	kept := changes[:0]
	for _, c := range changes {
		if c.Path.Within(o.Paths...) {
			kept = append(kept, c)
		}
	}
	cfg := r.project.Config
	pw := patch.NewWriter(w, patch.Limits{InlineBinary: cfg.InlineBinary, InlineText: cfg.InlineText})
	for _, c := range kept {
		err := pw.Write(ctx, patch.Change{Path: c.Path, Old: c.Old, New: c.New,
			OldContent: r.contentAt(o.From, c.Path, c.Old), NewContent: r.contentAt(o.To, c.Path, c.New)})
		if err != nil {
			return patch.Stat{}, err
		}
	}
	err = pw.Close()
	return pw.Stat(), err
}

func (r *Reader) between(ctx context.Context, o DiffOptions) ([]tree.Change, error) {
	if o.From.Now {
		return nil, &project.Error{Kind: project.Usage, Msg: "a difference must begin at a record"}
	}
	if o.From.draft() || o.To.draft() {
		return r.betweenDrafts(ctx, o.From, o.To)
	}
	if !o.To.Now {
		changes, err := r.history.Compare(o.From.tree(), o.To.tree())
		if err != nil {
			return nil, err
		}
		return r.withoutRulesBetween(ctx, changes, o)
	}
	res, err := r.captureToCompare(ctx)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	changes, err := r.since(o.From.tree(), res)
	if err != nil {
		return nil, err
	}
	return r.withoutRulesBetween(ctx, changes, o)
}

// withoutRulesBetween drops what joined or left the tree between two points only
// because the ignore rules changed, where both trees are known whole.
func (r *Reader) withoutRulesBetween(ctx context.Context, changes []tree.Change, o DiffOptions) ([]tree.Change, error) {
	from, err := r.rulesAt(o.From)
	if err != nil || from.IsZero() {
		return changes, err
	}
	to := tree.Hash{}
	if !o.To.Now {
		if to, err = r.rulesAt(o.To); err != nil || to.IsZero() {
			return changes, err
		}
	}
	changes, _, err = r.withoutRuleChanges(ctx, changes, from, to)
	return changes, err
}

// rulesAt is the stored tree whose ignore files were in force when the state at a
// point was observed: what a record began with, since rules are frozen for it.
func (r *Reader) rulesAt(p Point) (rules tree.Hash, err error) {
	if observedWhole(p.Record) {
		return p.Record.Before, nil
	}
	err = r.history.Newest(func(rec *history.Record) bool {
		if observedWhole(rec) && history.Compare(rec, p.Record) < 0 {
			rules = rec.Before
		}
		return rules.IsZero()
	})
	return rules, err
}

// contentAt gives a file's bytes: from the tree for now, else from the store.
func (r *Reader) contentAt(p Point, path tree.Path, e *tree.Entry) patch.Content {
	if !e.IsFile() {
		return nil
	}
	if p.Now && !r.store.Has(e.SHA256) {
		return inTree{r, path}
	}
	return stored{r.store, e.SHA256}
}

// inTree is a patch.Content that reads the file as it is now.
type inTree struct {
	r    *Reader
	path tree.Path
}

func (t inTree) Open() (io.ReadCloser, error) { return t.r.tree.Read(t.path) }

// Content gives the bytes of a path at a point: a file's content, a link's target.
func (r *Reader) Content(_ context.Context, p Point, name tree.Path) (io.ReadCloser, tree.Entry, error) {
	r.catchUp()
	e, err := r.entryAt(p, name)
	if err != nil {
		return nil, tree.Entry{}, err
	}
	switch {
	case e == nil && p.draft():
		return nil, tree.Entry{}, &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf("%s: isolated run %s deleted it", tree.Quote(name), p.Record.ID)}
	case e == nil:
		side := "before"
		if p.After {
			side = "after"
		}
		return nil, tree.Entry{}, &project.Error{Kind: project.NotFound,
			Msg: fmt.Sprintf("%s: not in the tree as it was %s %s", tree.Quote(name), side, p.Record.ID)}
	case e.Type == tree.Dir:
		return nil, *e, &project.Error{Kind: project.Failed, Msg: tree.Quote(name) + ": a directory"}
	case e.Type == tree.Symlink:
		return io.NopCloser(strings.NewReader(e.Target)), *e, nil
	}
	rc, _, err := r.store.Open(e.SHA256)
	if err != nil {
		return nil, *e, &project.Error{Kind: project.Integrity, Msg: tree.Quote(name), Err: err}
	}
	return rc, *e, nil
}

// Entries calls each for every path at or below dir of the tree at a point that is not
// now, in manifest order: files and links, then directories. dir "" is the root.
func (r *Reader) Entries(p Point, dir tree.Path, each func(path tree.Path, e tree.Entry) error) error {
	r.catchUp()
	seq, err := r.entries(p)
	if err != nil {
		return err
	}
	for it, err := range seq {
		if err == nil && it.Path.Within(dir) {
			err = each(it.Path, it.Entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) entryAt(p Point, name tree.Path) (*tree.Entry, error) {
	name = tree.Path(path.Clean(string(name)))
	if p.draft() {
		return r.leftByDraft(p.Record, name)
	}
	return r.history.FindEntry(p.tree(), name)
}

// Manifest writes the manifest.json of a point that is not now.
func (r *Reader) Manifest(_ context.Context, w io.Writer, p Point) error {
	r.catchUp()
	if p.After {
		return r.history.WriteManifestAfter(p.Record, w)
	}
	return r.history.WriteManifest(p.Record, w)
}
