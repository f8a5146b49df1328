package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/plan"
	"decree/project"
	"decree/tree"
)

// PublishOptions are a publish's.
type PublishOptions struct {
	Ref                string      // "": the only draft that waits
	Paths              []tree.Path // relative to the root; none: all
	Exclude            []tree.Path // relative to the root: left out, with all below
	Merge              plan.Merging
	Force, DryRun, Yes bool
	Choose             Chooser // nil: everything
	WithGit            bool    // also what the run committed; there are no Paths then
	// Unasked: nobody looks at the draft before, so one that lacks a part of its run's work
	// is refused.
	Unasked bool
	// Confirm asks before edits are overwritten; nil: there is nobody to ask.
	Confirm func(p *plan.Plan) (bool, error)
	Show    func(*plan.Plan) error // as that of a revert
}

// covers says whether path is to be published.
func (o *PublishOptions) covers(path tree.Path) bool {
	return path.Within(o.Paths...) && (len(o.Exclude) == 0 || !path.Within(o.Exclude...))
}

// Publish brings the work of a draft into the tree, as a record. Each path must still be
// as it was when the isolated run began.
func (r *Recorder) Publish(ctx context.Context, o PublishOptions) (*MoveResult, error) {
	if o.DryRun {
		return r.publishIn(ctx, nil, o)
	}
	x, err := r.enterToMove(ctx, string(history.Publish))
	if err != nil {
		return nil, err
	}
	defer x.close()
	res, err := r.publishIn(ctx, x, o)
	if waits := new(*WaitError); err != nil && !(o.Unasked && errors.As(err, waits)) { // what is tried again until it can be made has not failed
		r.auditFailure(string(history.Publish), err)
	}
	return res, err
}

// A publication is a publish on its way.
type publication struct {
	r     *Recorder
	rec   *history.Record // the draft's
	t     *selection
	plan  *plan.Plan
	git   *gitPublish
	fate  *history.Draft // what becomes of the draft
	res   *MoveResult
	close []func()
}

func (b *publication) done() {
	for _, free := range slices.Backward(b.close) {
		free()
	}
}

// publishIn is Publish with the lock; x is nil for a dry run.
func (r *Recorder) publishIn(ctx context.Context, x *writeSession, o PublishOptions) (*MoveResult, error) {
	b := &publication{r: r}
	defer b.done()
	if err := b.prepare(ctx, o); err != nil {
		return nil, err
	}
	if o.DryRun {
		return b.res, show(o.Show, b.plan)
	}
	if b.plan.Empty() && len(b.plan.Passed) > 0 {
		return b.res, nil
	}
	if err := b.confirm(o); err != nil {
		return nil, err
	}
	if err := b.git.bring(ctx); err != nil { // which does no harm should the publish not be made
		return nil, err
	}
	cache := newContentCache()
	now, full, err := r.capturePresent(ctx, x, cache)
	if err != nil {
		return nil, err
	}
	defer now.Close()
	if err := b.markGit(); err != nil {
		return nil, err
	}
	if b.plan.Empty() {
		return b.res, b.nothingToMove()
	}
	// Only now: a try that is refused, which a queue makes again and again, is to end no agent's turn.
	if closed, err := r.closeAllTurns(ctx, x); err != nil {
		return nil, &BeginError{err}
	} else if closed {
		now.Close()
		if now, full, err = r.capturePresent(ctx, x, cache); err != nil {
			return nil, err
		}
		defer now.Close()
	}
	b.t.sources = nil // what is still needed of them the plan's steps hold
	b.res.Record, b.res.Outcome, err = r.perform(ctx, x, action{
		reason: history.Publish, plan: b.plan, parents: []string{b.rec.ID}, full: full, cache: cache, description: "Publish of " + draftTitle(b.rec),
		effects: []history.StatusEffect{{ID: b.rec.ID, Draft: b.fate}}, elsewhere: b.t.elsewhere,
	})
	if err != nil {
		return nil, err
	}
	if b.fate.State == history.DraftPartly {
		b.res.Notes = append(b.res.Notes, fmt.Sprintf("the rest of draft %s waits", draftName(b.rec)))
	}
	return b.res, b.end()
}

// prepare holds the draft's layer and plans; nothing is changed.
func (b *publication) prepare(ctx context.Context, o PublishOptions) (err error) {
	if b.rec, err = b.r.draftToPublish(o.Ref); err != nil {
		return err
	}
	inDecree, unrecorded := unrecordedOf(b.rec)
	if o.Unasked && len(unrecorded) > 0 {
		return &project.Error{Kind: project.Refused, State: project.Unchanged,
			Msg: fmt.Sprintf("the draft lacks a part of what the command did: %s could not be read, or is too large", some(unrecorded))}
	}
	if !o.Unasked {
		if err := b.r.refuseWaiting(b.rec); err != nil {
			return err
		}
	}
	l, free, err := b.r.holdLayer(b.rec)
	if err != nil {
		return err
	}
	b.close = append(b.close, free)
	b.t = &selection{records: []*history.Record{b.rec}}
	b.close = append(b.close, b.t.done)
	src, err := b.t.source(ctx, b.r.history, b.rec, b.r.store)
	if err != nil {
		return err
	}
	b.t.sources = []*plan.Source{src}
	if b.plan, err = b.r.planPublish(ctx, b.t, o); err != nil {
		return err
	}
	if b.git, err = b.r.planGit(ctx, b.rec, l, o); err != nil {
		return err
	}
	b.res = &MoveResult{Plan: b.plan, Notes: append(b.t.notes, b.git.notes...)}
	b.fate = b.r.draftAfterPublish(b.rec, src, o, b.plan)
	entered := unrenewed(l)
	if b.fate.State == history.DraftPublished && (b.git.stays || entered) {
		b.fate.State = history.DraftPartly
	}
	if entered {
		b.res.Notes = append(b.res.Notes, fmt.Sprintf("what 'decree enter' was last used for in draft %s is not recorded and not published; it stays in %s", draftName(b.rec), l.Path()))
	}
	if l != nil && len(inDecree) > 0 {
		if b.fate.State == history.DraftPublished {
			b.fate.State = history.DraftPartly
		}
		b.res.Notes = append(b.res.Notes, fmt.Sprintf("not published, and nowhere but in the layer of draft %[1]s, which stays: %[2]s; they lie in %[3]s, 'decree discard %[1]s' gives them up",
			draftName(b.rec), some(inDecree), l.TopPath()))
	}
	if l != nil && b.fate.State == history.DraftPublished && len(unrecorded) > 0 {
		b.plan.Warnings = append(b.plan.Warnings, fmt.Sprintf("this publish removes the layer of draft %s, the only place that has what could not be recorded (%s)", draftName(b.rec), some(unrecorded)))
	}
	if foreign, err := b.r.history.Foreign(b.rec.ID); err != nil {
		return err
	} else if foreign {
		b.plan.Warnings = append(b.plan.Warnings, fmt.Sprintf("draft %s is foreign (this store has never seen it)", b.rec.ID))
	}
	if o.DryRun || o.Yes {
		b.res.Notes = append(b.res.Notes, b.plan.Warnings...)
	}
	return nil
}

// nothingToMove ends a publish to a tree that has it all already.
func (b *publication) nothingToMove() error {
	if b.fate.State != history.DraftPublished {
		return b.moveGit()
	}
	if err := b.r.history.SetDrafts([]string{b.rec.ID}, b.fate.State); err != nil {
		return err
	}
	return b.end()
}

// end follows the record of a publish: what git has of it, and the layer.
func (b *publication) end() error {
	if err := b.moveGit(); err != nil {
		return err
	}
	return b.r.dropLayer(b.rec, b.fate.State)
}

// markGit marks the layer: whatever comes now, a recovery moves the refs once the files are in the tree.
func (b *publication) markGit() error {
	before := len(b.rec.Draft.By)
	if b.plan.Empty() {
		before = -1
	}
	return b.git.mark(before)
}

// moveGit moves the refs. A draft of which one is left is published in part, so that its layer,
// where the ref is, stays.
func (b *publication) moveGit() error {
	notes, whole := b.git.move()
	b.res.Notes, b.res.GitLeft = append(b.res.Notes, notes...), !whole
	if !whole && b.fate.State == history.DraftPublished {
		b.fate.State = history.DraftPartly
		if err := b.r.publishedInPart(b.rec); err != nil {
			return err
		}
		b.res.Notes = append(b.res.Notes, fmt.Sprintf("the layer of draft %s stays", draftName(b.rec)))
	}
	return b.git.end()
}

// planPublish plans as an apply does, and refuses what is not as the run began with it.
func (r *Recorder) planPublish(ctx context.Context, t *selection, o PublishOptions) (*plan.Plan, error) {
	rec := t.records[0]
	p, lost, err := r.planDraft(ctx, t, o)
	if err != nil {
		return nil, lookError(err)
	}
	if err := r.refuseUnknownPaths(o.Paths, p); err != nil {
		return nil, err
	}
	if items := p.Conflicts(); len(items) > 0 {
		r.nameLater(t, items)
		return nil, &ConflictError{Verb: "publish", Subject: fmt.Sprintf("run %s began with", rec.ID), Items: items, Advice: publishAdvice(rec, o, items, lost)}
	}
	if err := r.choose(ctx, p, t, o.Choose); err != nil {
		return nil, err
	}
	full, err := r.leaveFullDirs(p)
	t.notes = append(t.notes, full...)
	p.Warnings, _ = stillOpen(p, nil)
	return p, err
}

// planDraft is what a publish would do, with what stands in its way; lost is rebase's.
func (r *Reader) planDraft(ctx context.Context, t *selection, o PublishOptions) (p *plan.Plan, lost map[tree.Path]string, err error) {
	draft, src := t.records[0].Draft, t.sources[0]
	// What is published already is left out, whatever became of it since, but where it is named.
	brought := r.broughtBy(draft, draft.By)
	src.Only(func(path tree.Path) bool { return !brought.whole(path) || slices.Contains(o.Paths, path) })
	if lost, err = r.rebase(t.records[0], src); err != nil {
		return nil, nil, err
	}
	p, err = plan.ForDiffs(ctx, r.tree, t.sources, plan.Options{
		Direction: plan.Forth, Paths: o.Paths, Exclude: o.Exclude, Merge: o.Merge, Force: o.Force, Ignored: r.ignoredNow(ctx), Begun: brought.begun,
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range p.Items {
		it := &p.Items[i]
		if it.Verdict == plan.Left {
			if !o.Force {
				it.Verdict = plan.Edited // nothing is left out of a publish unsaid
			}
			continue
		}
		why := lost[it.Path]
		switch {
		case it.Verdict == plan.Done, why == "", o.Force && it.Verdict == plan.Edited: // the last in spite of the force
		case o.Force:
			it.Verdict = plan.Forced
		default:
			it.Verdict, it.Reason = plan.Edited, why
		}
	}
	return p, lost, nil
}

// rebase has the source of a draft begin, where a command in the layer has changed what a record had published, with what that has brought; what
// is no change of the draft any more is taken back. The paths that lost names have no base to compare the tree with, and its texts say why.
func (r *Reader) rebase(rec *history.Record, src *plan.Source) (lost map[tree.Path]string, err error) {
	lost = map[tree.Path]string{}
	for _, path := range rec.Draft.NoBase {
		lost[path] = "changed while the run worked"
	}
	if len(rec.Draft.Outdated) == 0 {
		return lost, nil
	}
	publishes, err := r.publishesOf(rec)
	if err != nil {
		return nil, err
	}
	bases, moved, back := src.Bases(), map[tree.Path]*tree.Entry{}, map[tree.Path]tree.Change{}
	for _, id := range publishes {
		by, err := r.history.Get(id)
		var changes []tree.Change
		if err == nil {
			changes, err = r.history.DiffChanges(by)
		}
		if err != nil { // its diff was forgotten, or is damaged
			for _, path := range rec.Draft.Outdated[id] {
				lost[path] = "what " + id + " brought cannot be read: " + err.Error()
			}
		}
		stands := slices.Contains(rec.Draft.By, id)
		for _, c := range changes {
			base, is := bases[c.Path]
			onIt := tree.SameEntry(base, c.Old)
			outdated := slices.Contains(rec.Draft.Outdated[id], c.Path)
			switch {
			case is && !outdated:
			case !is && stands && outdated:
				if first, again := back[c.Path]; again {
					c.Old = first.New
				}
				back[c.Path] = tree.Change{Path: c.Path, Old: c.New, New: c.Old}
			case !is && stands:
				delete(back, c.Path) // it was published again since
			case !is:
			case !stands && !onIt:
				lost[c.Path] = "the draft goes on from what " + id + " brought, which was taken back"
			case stands && onIt:
				bases[c.Path], moved[c.Path] = c.New, c.New
			}
		}
	}
	src.Rebase(moved)
	src.Add(back)
	return lost, nil
}

func baseless(noBase []tree.Path, path tree.Path) bool { return slices.Contains(noBase, path) }

func publishAdvice(rec *history.Record, o PublishOptions, items []plan.Item, lost map[tree.Path]string) string {
	if o.Force {
		return inTheWay(items)
	}
	look, next := fmt.Sprintf("see the edits with 'decree diff %s --now'", rec.ID), fmt.Sprintf("publish the other PATHs, or overwrite what is there: 'decree publish --force %s'", rec.ID)
	switch {
	case o.Merge != plan.Off:
		return next
	case slices.ContainsFunc(items, func(it plan.Item) bool { return lost[it.Path] != "" }):
		return look + "; " + next // there is nothing to merge with
	}
	return fmt.Sprintf("%s, or keep them: 'decree publish --merge %s'", look, rec.ID)
}

// confirm asks before edits are overwritten, or a file is replaced that somebody writes to. A queue, which has nobody to ask, waits for the
// end of that.
func (b *publication) confirm(o PublishOptions) error {
	p := b.plan
	forced := slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Verdict == plan.Forced })
	if o.Yes || !forced && len(p.Warnings) == 0 {
		return nil
	}
	what := "--force overwrites edits"
	if len(p.Warnings) > 0 {
		what = openFiles(p.Warnings)
	}
	if o.Unasked {
		return &WaitError{&project.Error{Kind: project.Refused, State: project.Unchanged, Msg: what,
			Advice: fmt.Sprintf("end that program, or publish it beside that: 'decree publish %s', which asks", b.rec.ID)}}
	}
	return ask(p, o.Confirm, what)
}

// draftAfterPublish is what the draft becomes: published when nothing of it is left beside what this
// publish covers that was not published before and is not in the tree anyway.
func (r *Recorder) draftAfterPublish(rec *history.Record, src *plan.Source, o PublishOptions, p *plan.Plan) *history.Draft {
	d := &history.Draft{State: history.DraftPublished, By: append(slices.Clone(rec.Draft.By), thisRecord)}
	brought := r.broughtBy(rec.Draft, rec.Draft.By)
	stays := map[tree.Path]bool{}
	for _, path := range p.Passed {
		stays[path] = true
	}
	for _, it := range p.Items {
		if it.Verdict == plan.Left || it.Verdict == plan.Kept {
			stays[it.Path] = true
		}
	}
	last := map[tree.Path]*tree.Entry{} // of two sections of one path the second says what it becomes
	for _, s := range src.Sections {
		if (stays[s.Path] || !o.covers(s.Path)) && !brought.whole(s.Path) {
			last[s.Path] = s.New
		}
	}
	for path, want := range last {
		has, err := r.tree.Look(path)
		if err != nil {
			has = nil //nolint:nilerr // another kind of thing than the draft has is there
		}
		if !tree.SameEntry(has, want) {
			d.State = history.DraftPartly
			break
		}
	}
	return d
}

// draft finds a draft that waits.
func (r *Recorder) draft(ref string) (*history.Record, error) {
	rec, err := r.findDraft(ref)
	if err == nil && !rec.Draft.Waits() {
		return nil, noDraft("draft %s was %s", rec.ID, rec.Draft.State)
	}
	return rec, err
}

// draftToPublish finds a draft that waits, or one that counts as published since the tree had it all: it was brought by
// no record, so that what takes it out of the tree again does not have it wait.
func (r *Recorder) draftToPublish(ref string) (*history.Record, error) {
	rec, err := r.findDraft(ref)
	if err == nil && !rec.Draft.Waits() && rec.Draft.State != history.DraftPublished {
		return nil, noDraft("draft %s was %s", rec.ID, rec.Draft.State)
	}
	return rec, err
}

// noDraft is why a record is no draft to work with.
func noDraft(format string, args ...any) error {
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf(format, args...), Advice: "'decree drafts' lists what can be published"}
}

// findDraft finds a draft that no record has published as a whole.
func (r *Recorder) findDraft(ref string) (*history.Record, error) {
	if ref == "" {
		return r.onlyDraft()
	}
	found, err := r.history.Resolve(ref, r.opt.Location)
	if err != nil {
		return nil, err
	}
	rec, err := r.history.Get(found.ID)
	if err != nil {
		return nil, err
	}
	switch d := rec.Draft; {
	case rec.Status == history.StatusOpen:
		return nil, noDraft("run %s has not ended", rec.ID)
	case rec.Isolated != "" && d == nil:
		return nil, noDraft("isolated run %s changed nothing", rec.ID)
	case d == nil:
		return nil, noDraft("record %s is no draft", rec.ID)
	case d.State == history.DraftPublished && len(d.By) > 0:
		return nil, noDraft("draft %s is published already, by record %s", rec.ID, strings.Join(d.By, ", "))
	}
	return rec, nil
}

func (r *Recorder) onlyDraft() (*history.Record, error) {
	waiting, err := r.WaitingDrafts()
	if err != nil {
		return nil, err
	}
	if len(waiting) == 1 {
		return waiting[0], nil
	}
	e := &project.Error{Kind: project.NotFound, Msg: "no draft waits", Advice: "'decree run --isolated -- COMMAND' makes one"}
	if len(waiting) > 1 {
		var ids []string
		for _, rec := range waiting {
			ids = append(ids, draftName(rec))
		}
		e.Msg, e.Advice = fmt.Sprintf("%d drafts wait: %s", len(ids), strings.Join(ids, ", ")), "name one of them"
	}
	return nil, e
}

func draftName(rec *history.Record) string {
	if rec.Draft.Name != "" {
		return rec.Draft.Name
	}
	return rec.ID
}

// WaitingDrafts are the drafts of which something is left to publish, newest first.
func (r *Reader) WaitingDrafts() ([]*history.Record, error) {
	r.catchUp()
	list, err := r.history.Drafts()
	return slices.DeleteFunc(list, func(rec *history.Record) bool { return !rec.Draft.Waits() }), err
}

// holdLayer keeps others out of the draft's layer until free is called; there may be none
// any more, and l is nil.
func (r *Recorder) holdLayer(rec *history.Record) (l *layer.Layer, free func(), err error) {
	place, err := r.layers()
	if err != nil {
		return nil, nil, err
	}
	l, err = place.Open(rec.ID)
	closePlace(place)
	if isMissing(err) || errors.Is(err, layer.ErrUnfinished) {
		return nil, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	unlock, err := l.Lock()
	if err != nil {
		l.Close()
		return nil, nil, busyLayer(rec, err)
	}
	return l, func() { _ = unlock(); l.Close() }, nil
}

// busyLayer explains why the lock of a draft's layer is not to be had.
func busyLayer(rec *history.Record, err error) error {
	if !errors.Is(err, disk.ErrLocked) {
		return err
	}
	return &WaitError{&project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("another process works in draft %s", draftName(rec)), Advice: "wait until it has ended"}}
}

// dropLayer removes the layer of a draft that is done with.
func (r *Recorder) dropLayer(rec *history.Record, state history.DraftState) error {
	if state == history.DraftPartly || state == history.DraftWaiting {
		return nil
	}
	place, err := r.layers()
	if err != nil {
		return err
	}
	defer closePlace(place)
	r.removeLayer(place, rec.ID)
	return nil
}

// withDrafts has drafts wait again whose publish the effects take back, and be published
// again where that is taken back in turn.
func (r *Recorder) withDrafts(effects []history.StatusEffect) []history.StatusEffect {
	now := map[string][]string{} // by draft: what publishes it after this; several may be taken back at once
	moved := map[tree.Path]bool{}
	var drafts []*history.Record
	for _, e := range effects {
		rec, err := r.history.Get(e.ID)
		if err != nil || rec.Reason != history.Publish || rec.Parent == "" {
			continue
		}
		draft, err := r.history.Get(rec.Parent)
		if err != nil || draft.Draft == nil {
			continue // it was removed
		}
		by, known := now[draft.ID]
		if !known {
			by = slices.Clone(draft.Draft.By)
			drafts = append(drafts, draft)
		}
		stood := slices.Contains(by, rec.ID)
		by = slices.DeleteFunc(by, func(id string) bool { return id == rec.ID })
		if e.Status != history.StatusUndone && (stood || e.UndoneBy == "") { // a redo of some paths has not published the others
			by = append(by, rec.ID)
		}
		now[draft.ID] = by
		changes, err := r.history.DiffChanges(rec)
		if err != nil {
			continue // then nothing of it is whole either
		}
		for _, c := range changes {
			moved[c.Path] = true
		}
	}
	for _, draft := range drafts {
		if by := now[draft.ID]; !slices.Equal(by, draft.Draft.By) {
			effects = append(effects, history.StatusEffect{ID: draft.ID, Draft: &history.Draft{State: r.stateBy(draft, by, moved), By: by}})
		}
	}
	return effects
}

// stateBy is the state of a draft that the records by have published, once the paths moved have been moved.
func (r *Recorder) stateBy(draft *history.Record, by []string, moved map[tree.Path]bool) history.DraftState {
	if len(by) == 0 {
		return history.DraftWaiting
	}
	brought := r.broughtBy(draft.Draft, by)
	all, err := r.history.DiffChanges(draft)
	left := func(c tree.Change) bool { return !brought.whole(c.Path) && (moved[c.Path] || !r.isThere(c)) }
	if err != nil || slices.ContainsFunc(all, left) {
		return history.DraftPartly
	}
	if len(r.takenBackIn(draft.Draft, by, all)) > 0 {
		return history.DraftPartly
	}
	if r.gitStays(draft) || r.decreeStays(draft) || r.unrenewed(draft) {
		return history.DraftPartly
	}
	return history.DraftPublished
}

// isThere says whether the tree has what a change makes, or has kept the directory that it deletes, for what else that holds.
func (r *Reader) isThere(c tree.Change) bool {
	has, err := r.tree.Look(c.Path)
	if err != nil || tree.SameEntry(has, c.New) {
		return err == nil
	}
	if c.New != nil || !c.Old.IsDir() || !has.IsDir() {
		return false
	}
	dirs := r.tree.Dirs()
	defer dirs.Close()
	full, err := holds(dirs, c.Path, func(tree.Path) bool { return false })
	return err == nil && full
}

// decreeStays says whether the draft's layer has what its run wrote in a .decree.
func (r *Recorder) decreeStays(draft *history.Record) bool {
	if inDecree, _ := unrecordedOf(draft); len(inDecree) == 0 {
		return false
	}
	l, free, err := r.holdLayer(draft)
	if err == nil {
		defer free()
	}
	return err != nil || l != nil
}

// A broughtPath is what records did, one after the other, with a path of a draft.
type broughtPath struct {
	was, is *tree.Entry // before the first of those that brought it in part, and after the last
	part    bool        // the last has brought a part of it
}

type broughtPaths map[tree.Path]broughtPath

// whole says whether the path was brought, and not in part.
func (b broughtPaths) whole(path tree.Path) bool {
	at, is := b[path]
	return is && !at.part
}

// broughtBy are the paths of a draft that records published, but for those that a command in its layer has changed since. A record that cannot
// be read published none. Without a draft they are those that the records have moved.
func (r *Reader) broughtBy(d *history.Draft, ids []string) broughtPaths {
	out := broughtPaths{}
	for _, id := range ids {
		rec, err := r.history.Get(id)
		if err != nil {
			continue
		}
		changes, err := r.history.DiffChanges(rec)
		if err != nil {
			continue
		}
		inPart := inPartOf(rec)
		for _, c := range changes {
			if d != nil && slices.Contains(d.Outdated[id], c.Path) {
				continue
			}
			at := broughtPath{was: c.Old, is: c.New, part: slices.Contains(inPart, c.Path)}
			if before := out[c.Path]; before.part && tree.SameEntry(before.is, c.Old) {
				at.was = before.was
			}
			out[c.Path] = at
		}
	}
	return out
}

// applied is the publish that an apply of one draft is; false where it is of other records, or
// of none: what is to be said of that, the apply says.
func (r *Recorder) applied(o MoveOptions) (p PublishOptions, is bool, err error) {
	if o.From != "" || len(o.Refs) != 1 {
		return p, false, nil
	}
	ids, err := r.resolve(r.history, o.Refs[0])
	var rec *history.Record
	if err == nil && len(ids) == 1 {
		rec, err = r.history.Get(ids[0])
	}
	if kind := project.KindOf(err); kind == project.NotFound || kind == project.Usage {
		err = nil
	}
	if err != nil || rec == nil || rec.Isolated == "" {
		return p, false, err
	}
	p = PublishOptions{Ref: rec.ID, Paths: o.Paths, Exclude: o.Exclude, Merge: o.Merge, Force: o.Force, DryRun: o.DryRun, Yes: o.Yes, Choose: o.Choose, Show: o.Show}
	if o.Confirm != nil {
		p.Confirm = func(p *plan.Plan) (bool, error) { return o.Confirm(p, nil) }
	}
	return p, true, nil
}

// refuseDraft keeps revert and apply from a draft, of which nothing is in the tree.
func refuseDraft(rec *history.Record, d plan.Direction) error {
	if rec.Isolated == "" {
		return nil
	}
	e := &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("draft %s is not published", rec.ID), Advice: fmt.Sprintf("'decree publish %s' brings it into the tree", rec.ID)}
	switch {
	case rec.Draft != nil && len(rec.Draft.By) > 0 && d == plan.Back:
		e.Msg = fmt.Sprintf("draft %s changed nothing itself; what published it did", rec.ID)
		e.Advice = fmt.Sprintf("'decree revert %s' takes that back", rec.Draft.By[len(rec.Draft.By)-1])
	case rec.Draft == nil:
		e.Msg, e.Advice = fmt.Sprintf("isolated run %s changed nothing", rec.ID), ""
	}
	return e
}

// draftTitle is a draft's name and title: the candidates of a race are about the same.
func draftTitle(rec *history.Record) string {
	if rec.Draft == nil || rec.Draft.Name == "" {
		return title(rec)
	}
	return rec.Draft.Name + ": " + title(rec)
}
