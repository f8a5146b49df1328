package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// UndoOptions are an undo's or redo's.
type UndoOptions struct {
	N     int         // how many records; 0: one
	Paths []tree.Path // relative to the root; none: all that the records changed

	Merge, Force bool
	Skip         bool // pass over records that edited paths, or another user's, are in the way of
	DryRun, Yes  bool
	// Confirm asks before edits are overwritten; there are no foreign records.
	Confirm func(p *plan.Plan, foreign []string) (bool, error)
	Show    func(*plan.Plan) error // as that of a revert
}

// Passed is a record that an undo or redo passed over, and why.
type Passed struct {
	Link history.Link
	Why  string // "nothing of it is in the tree any more"
	gone bool   // nothing of it is in the tree, and no record says who took it out
}

// Undo takes back what the newest records on the chain changed.
func (r *Recorder) Undo(ctx context.Context, o UndoOptions) (*MoveResult, error) {
	return r.walk(ctx, o, plan.Back)
}

// Redo brings again what undos took back, the last one first.
func (r *Recorder) Redo(ctx context.Context, o UndoOptions) (*MoveResult, error) {
	return r.walk(ctx, o, plan.Forth)
}

// chain is what undo and redo have before them, and the records that cannot be read,
// which may be a part of it.
func (r *Reader) chain() (*history.Chain, []history.Damage, error) {
	list, err := r.history.List(history.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(list.Records)
	return history.Fold(list.Records), slices.Concat(list.Damaged, list.Newer), nil
}

// ListChain is what undo and redo have before them, of paths alone where there are any. What
// was taken back by a record that stands on the chain too comes back with that one: By is
// left only where that record was removed.
func (r *Reader) ListChain(paths []tree.Path) (*history.Chain, error) {
	c, _, err := r.chain()
	if err != nil {
		return nil, err
	}
	stands := map[string]bool{}
	for i := range c.Undo {
		l := &c.Undo[i]
		if stands[l.ID] = true; stands[l.By] {
			l.By = ""
		}
	}
	if c.Undo, err = r.linksTo(c.Undo, paths); err != nil {
		return nil, err
	}
	c.Redo, err = r.linksTo(c.Redo, paths)
	return c, err
}

// linksTo leaves in links those that are about any of paths.
func (r *Reader) linksTo(links []history.Link, paths []tree.Path) (out []history.Link, err error) {
	for _, l := range links {
		about := l.Record == nil || len(paths) == 0 && !l.InPart()
		if !about {
			changes, err := r.history.DiffChanges(l.Record)
			if err != nil {
				return nil, err
			}
			all := l
			all.By = ""
			about = slices.ContainsFunc(changes, func(c tree.Change) bool { return c.Path.Within(paths...) && all.Has(c.Path) })
		}
		if about {
			out = append(out, l)
		}
	}
	return out, nil
}

func walkVerb(d plan.Direction) string {
	if d == plan.Back {
		return "undo"
	}
	return "redo"
}

func (r *Recorder) walk(ctx context.Context, o UndoOptions, d plan.Direction) (*MoveResult, error) {
	return r.moving(ctx, walkVerb(d), o.DryRun, func(x *writeSession) (*MoveResult, error) {
		others := map[tree.Path]bool{}
		for {
			known := len(others)
			res, err := r.walkPast(ctx, x, o, d, others)
			if conflict, ok := errors.AsType[*worktree.ConflictError](err); ok && o.Skip {
				for _, c := range conflict.Conflicts {
					if c.OfAnother() {
						others[c.Path] = true
					}
				}
			}
			if len(others) == known {
				return res, err
			}
		}
	})
}

// walkPast is walk once, past the records that changed any of others: those paths are another user's to move.
func (r *Recorder) walkPast(ctx context.Context, x *writeSession, o UndoOptions, d plan.Direction, others map[tree.Path]bool) (*MoveResult, error) {
	chain, unread, err := r.chain()
	if err != nil {
		return nil, err
	}
	links := chain.Undo
	if d == plan.Forth {
		links = chain.Redo
	}
	w := r.newWalk(o, d, links)
	w.others = others
	defer w.t.done()
	for len(w.left) > 0 && w.taken < w.n {
		if err := w.step(ctx); err != nil {
			return nil, lookError(err)
		}
	}
	if err := w.mayHide(unread); err != nil {
		return nil, err
	}
	return w.finish(ctx, x)
}

// undoing is an undo or redo on its way along the chain.
type undoing struct {
	r     *Recorder
	o     UndoOptions
	d     plan.Direction
	n     int // how many are to be taken
	taken int
	left  []history.Link // the rest of the chain
	plan  *plan.Walk
	t     *selection
	// turned are the records of t that are taken back: of a redo, undos.
	turned map[string]bool
	done   []history.Link // what is undone or redone, in this order
	passed []Passed
	others map[tree.Path]bool // a record that changed any of them is passed over
}

func (r *Recorder) newWalk(o UndoOptions, d plan.Direction, links []history.Link) *undoing {
	w := &undoing{r: r, o: o, d: d, n: max(o.N, 1), left: links, t: &selection{}, turned: map[string]bool{}}
	merge := plan.Off
	if o.Merge {
		merge = plan.Refuse
	}
	begun := sync.OnceValue(func() func(tree.Path, *tree.Entry) bool {
		all := &selection{}
		for _, l := range links {
			if l.Record != nil {
				all.records = append(all.records, l.Record)
			}
		}
		return r.broughtBy(nil, all.undoneBy(d)).begun
	})
	w.plan = plan.NewWalk(r.tree, plan.Options{
		Paths: o.Paths, Merge: merge, Force: o.Force, Ignored: r.ignoredNow(context.Background()),
		Begun: func(path tree.Path, now *tree.Entry) bool { return begun()(path, now) },
	})
	return w
}

// step takes the next record of the chain, or passes it over.
func (w *undoing) step(ctx context.Context) error {
	l := &w.left[0]
	if slices.ContainsFunc(w.done, func(o history.Link) bool { return o.ID == l.By }) {
		l.By = "" // it comes back with what is undone before it
	}
	if k := w.group(); k > 0 {
		return w.take(ctx, k, l.Undo, plan.Back, nil)
	}
	if l.Record == nil {
		return &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: fmt.Sprintf("record %s, which %s took back, was removed since", l.ID, l.Undo.ID),
			Advice: fmt.Sprintf("'decree revert %s' takes back that undo as a whole", l.Undo.ID)}
	}
	return w.take(ctx, 1, l.Record, w.d, l.Has)
}

// group is how many links the undo of the next one took back, if all of them are to be
// redone: then the undo itself is taken back, which brings exactly what was there before
// it, edits and all. Otherwise it is 0.
func (w *undoing) group() int {
	if w.d == plan.Back || !w.left[0].Whole {
		return 0
	}
	k := len(w.left[0].Undo.Walked.Undoes)
	if k > w.n-w.taken || k > 1 && len(w.o.Paths) > 0 {
		return 0
	}
	return k
}

// take puts the change of rec, which the next k links are about, into the plan; has says
// which of its paths, nil all.
func (w *undoing) take(ctx context.Context, k int, rec *history.Record, d plan.Direction, has func(tree.Path) bool) error {
	if rec.DiffSHA256.IsZero() && w.o.Skip {
		w.pass(k, "what it changed could not be written down", false)
		return nil
	}
	src, err := w.t.source(ctx, w.r.history, rec, plan.Objects(w.r.store))
	if err != nil {
		return err
	}
	none := len(src.Sections) == 0 // an undo of records whose changes cancel out, or of what is not known
	outcome := plan.Taken
	if !none {
		covered := w.plan.Covers(src)
		if has != nil {
			src.Only(has)
		}
		switch by := w.left[0].By; {
		case w.plan.Covers(src):
		case covered && by != "":
			w.pass(k, "it was taken back already, by "+by, false)
			return nil
		default:
			w.left = w.left[k:]
			return nil
		}
		if slices.ContainsFunc(src.Sections, func(s plan.Section) bool { return w.others[s.Path] }) {
			w.pass(k, "paths that it changed, or their directories, are another user's", false)
			return nil
		}
		if outcome, err = w.plan.Take(ctx, src, d, w.o.Skip); err != nil {
			return err
		}
	}
	switch outcome {
	case plan.Barred:
		w.pass(k, "paths that it changed were edited since", false)
		return nil
	case plan.Needless:
		if w.d == plan.Forth { // it stands again, by whatever hand
			w.done = append(w.done, w.left[:k]...)
			w.pass(k, "what it changed is in the tree already", false)
			return nil
		}
		w.pass(k, "nothing of it is in the tree any more", true)
		return nil
	}
	w.done = append(w.done, w.left[:k]...)
	w.left, w.taken = w.left[k:], w.taken+k
	w.t.records, w.t.sources = append(w.t.records, rec), append(w.t.sources, src)
	w.turned[rec.ID] = d == plan.Back
	return nil
}

func (w *undoing) pass(k int, why string, gone bool) {
	for _, l := range w.left[:k] {
		w.passed = append(w.passed, Passed{l, why, gone})
	}
	w.left = w.left[k:]
}

// mayHide refuses to go past records that cannot be read: they may be what is meant.
func (w *undoing) mayHide(unread []history.Damage) error {
	since, word := "", "undone"
	if len(w.done) > 0 {
		since = w.done[len(w.done)-1].ID
	}
	if w.d == plan.Forth {
		word = "redone"
		if len(w.done) > 0 {
			since = w.done[len(w.done)-1].Undo.ID
		}
	}
	for _, d := range unread {
		if w.o.Skip || d.ID < since {
			continue
		}
		return &project.Error{Kind: project.Integrity, State: project.Unchanged, Msg: fmt.Sprintf("record %s cannot be read, and may be what is to be %s", d.ID, word), Err: d.Err,
			Advice: "'decree doctor --repair' restores what the store has a copy of; --skip goes on without it"}
	}
	return nil
}

// finish makes what is planned, or says why not.
func (w *undoing) finish(ctx context.Context, x *writeSession) (*MoveResult, error) {
	p, err := w.plan.Plan(ctx)
	if err != nil {
		return nil, lookError(err)
	}
	w.r.leaveAlone(w.t, p, plan.Back)
	res := &MoveResult{Plan: p, Walked: w.done, Passed: w.passed}
	if w.taken == 0 {
		res.Walked = nil
		return res, w.refuseUnknownPaths(p)
	}
	if w.taken < w.n {
		return nil, w.tooFew()
	}
	if err := w.refuse(p); err != nil {
		return nil, err
	}
	if err := w.refuseUnknownPaths(p); err != nil {
		return nil, err
	}
	o := MoveOptions{Yes: w.o.Yes, DryRun: w.o.DryRun, Confirm: w.o.Confirm, Show: w.o.Show}
	if err := w.r.prepareMove(w.t, p, plan.Back, res, o); err != nil {
		return nil, err
	}
	return w.r.carryOut(ctx, x, w.t, o, res, w.action)
}

// refuseUnknownPaths refuses PATHs that nothing of what is planned is about, and that are not there: the
// error says which record further down the chain has them.
func (w *undoing) refuseUnknownPaths(p *plan.Plan) error {
	for _, path := range w.o.Paths {
		err := w.r.refuseUnknownPaths([]tree.Path{path}, p)
		if err == nil {
			continue
		}
		links, lerr := w.r.linksTo(w.left, w.o.Paths)
		if lerr != nil {
			return lerr
		}
		for i, l := range links {
			if one, lerr := w.r.linksTo(links[i:i+1], []tree.Path{path}); lerr != nil || len(one) == 0 || l.Record == nil {
				continue
			}
			return w.further(path, l, w.taken+i+1)
		}
		return err
	}
	return nil
}

// further refuses a path that only the n-th record on the way has, which is l.
func (w *undoing) further(path tree.Path, l history.Link, n int) error {
	holds := "record " + l.ID + " changed it"
	if w.d == plan.Forth {
		holds = "undo " + l.Undo.ID + " took it back"
	}
	verb := walkVerb(w.d)
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("%s is not part of the %s that comes next: %s", tree.Quote(path), verb, holds),
		Advice: fmt.Sprintf("'decree %[1]s %[2]d' with the same paths does all of it as one step; 'decree %[1]s' with this path alone leaves the others", verb, n)}
}

func (w *undoing) tooFew() error {
	verb, them := walkVerb(w.d), "them all"
	msg := fmt.Sprintf("there are only %d records to %s", w.taken, verb)
	if w.taken == 1 {
		msg, them = fmt.Sprintf("there is only 1 record to %s", verb), "that"
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: msg, Advice: fmt.Sprintf("'decree %s %d' %ses %s", verb, w.taken, verb, them)}
}

// refuse turns conflicts into an error that names later records.
func (w *undoing) refuse(p *plan.Plan) error {
	items := p.Conflicts()
	if len(items) == 0 {
		return nil
	}
	w.r.nameLater(w.t, items)
	subject := "the records left"
	if rec := w.t.records[0]; len(w.t.records) == 1 && w.turned[rec.ID] {
		subject = fmt.Sprintf("%s %s left", noun(rec), rec.ID)
	} else if len(w.t.records) == 1 {
		subject = fmt.Sprintf("%s %s began with", noun(rec), rec.ID)
	}
	command := "decree " + walkVerb(w.d)
	if w.n > 1 {
		command += fmt.Sprintf(" %d", w.n)
	}
	look := fmt.Sprintf("see the edits with 'decree diff %s --now'", w.t.records[len(w.t.records)-1].ID)
	advice := fmt.Sprintf("%s; '%s --merge' keeps them, --force overwrites them, and --skip passes the record over", look, command)
	if w.o.Merge {
		advice = fmt.Sprintf("%s; '%s --force' overwrites them, and --skip passes the record over", look, command)
	}
	return &ConflictError{Verb: walkVerb(w.d), Subject: subject, Items: items, Advice: advice}
}

// action describes the walk as a record.
func (w *undoing) action(p *plan.Plan) action {
	a := action{reason: history.Revert, plan: p, walked: history.Walked{Paths: w.o.Paths}, elsewhere: w.t.elsewhere}
	word := "Undo of "
	if w.d == plan.Forth {
		a.reason, word = history.Apply, "Redo of "
	}
	var names []string
	for _, l := range w.done {
		names = append(names, LinkTitle(l))
		if w.d == plan.Back {
			a.walked.Undoes = append(a.walked.Undoes, l.ID)
		} else {
			a.walked.Redoes = append(a.walked.Redoes, history.Redone{ID: l.ID, Undo: l.Undo.ID})
		}
	}
	// With a record passed over whose change stays, others may be missing only because of it.
	if !slices.ContainsFunc(w.passed, func(p Passed) bool { return !p.gone }) {
		for _, p := range w.passed {
			a.walked.Passed = append(a.walked.Passed, p.Link.ID)
		}
	}
	a.description = word + someTitles(names)
	for _, rec := range w.t.records {
		a.parents = append(a.parents, rec.ID)
		d := plan.Forth
		if w.turned[rec.ID] {
			d = plan.Back
		}
		w.r.effectsOf(rec, &a, d, p)
	}
	for i := range w.done {
		w.walkedStatus(&w.done[i], &a)
	}
	a.effects = w.r.withDrafts(a.effects)
	return a
}

// walkedStatus adds to a walk what the status of a record on the chain is after it: it is undone
// while undos hold all of it. What a revert by hand made of it is that one's to say.
func (w *undoing) walkedStatus(l *history.Link, a *action) {
	rec := l.Record
	if rec == nil || rec.DiffSHA256.IsZero() || l.TakenByHand() {
		return
	}
	changes, err := w.r.history.DiffChanges(rec)
	if err != nil {
		return // it was read for the plan: the statuses are a help to the reader
	}
	var paths []tree.Path
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	e := history.StatusEffect{ID: rec.ID, Status: rec.Status}
	by, whole := l.Taken(paths, thisRecord, w.o.Paths)
	switch e.UndoneBy = by; {
	case whole:
		e.Status = history.StatusUndone
	case rec.Status == history.StatusUndone:
		e.Status = w.r.statusBefore(rec)
	}
	a.effect(rec, e)
}

// someTitles names at most three records.
func someTitles(names []string) string {
	if len(names) > 3 {
		names = append(names[:2:2], fmt.Sprintf("%d more", len(names)-2))
	}
	return strings.Join(names, ", ")
}

// LinkTitle says what the record of a link was, or its id where it was removed.
func LinkTitle(l history.Link) string {
	if l.Record == nil {
		return l.ID
	}
	return title(l.Record)
}
