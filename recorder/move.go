package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"sync/atomic"
	"syscall"

	"decree/disk"
	"decree/history"
	"decree/patch"
	"decree/plan"
	"decree/project"
	"decree/store"
	"decree/tree"
	"decree/worktree"
)

// MoveResult says what a revert, apply or restore did, or would do.
type MoveResult struct {
	Record  *history.Record // nil: a dry run, or nothing to do
	Plan    *plan.Plan
	Outcome *worktree.Outcome
	Notes   []string
	Lost    []tree.Path // what the store lacks of a backup's tree
	GitLeft bool        // of a publish with git: not all refs are as they are to be; the notes say why
	To      Point       // of a restore: the state that it goes to

	Walked []history.Link // what an undo took back, or a redo brought again, in this order
	Passed []Passed       // what it passed over on its way
}

// ConflictError refuses a move: nothing was changed.
type ConflictError struct {
	Verb    string // "revert"
	Subject string // "run 2026112107015900-0 left"
	Items   []plan.Item
	Advice  string
}

func (e *ConflictError) Error() string {
	if len(e.Items) == 1 {
		return "1 path differs from what " + e.Subject
	}
	return fmt.Sprintf("%d paths differ from what %s", len(e.Items), e.Subject)
}

// Category is Refused.
func (e *ConflictError) Category() project.Kind { return project.Refused }

// Hint is the next step to take.
func (e *ConflictError) Hint() string { return e.Advice }

// journals opens the place of the transactions' journals.
func (r *Recorder) journals() (disk.Dir, error) {
	dir, err := r.project.Store.OpenDir("txn")
	if !isMissing(err) {
		return dir, err
	}
	if dir, err = project.MakeDir(r.project.Store, "txn", project.PrivateDir); err != nil {
		return nil, err
	}
	return dir, r.project.Store.Sync()
}

// mover opens the tree for moving, and the place of its journals. elsewhere is as for believed.
func (r *Recorder) mover(elsewhere bool) (*worktree.Tree, disk.Dir, func(), error) {
	if err := r.project.EnsureDecree(); err != nil {
		return nil, nil, nil, err
	}
	tmp, err := r.project.Decree.OpenDir("tmp")
	if err != nil {
		return nil, nil, nil, err
	}
	journals, err := r.journals()
	if err != nil {
		tmp.Close()
		return nil, nil, nil, err
	}
	only, err := r.believed(elsewhere)
	if err != nil {
		tmp.Close()
		journals.Close()
		return nil, nil, nil, err
	}
	t := worktree.Open(r.project.Dir, worktree.Options{Tmp: tmp, Store: r.store, Only: only})
	return t, journals, func() { tmp.Close(); journals.Close() }, nil
}

// believed is whom alone records may name as the owner of a file with set-user-ID, nil
// for anybody. Where we are root and the records another user's, he could have written
// root's name into them. Records from elsewhere may have been made by anybody, who could have written anybody's name:
// then it is the zero Owner, who is nobody. elsewhere says that what is moved is of records that are not of this
// store's log; of what came with a backup of elsewhere all are so until somebody lets it go.
func (r *Reader) believed(elsewhere bool) (*tree.Owner, error) {
	if elsewhere || r.heldBack() {
		return &tree.Owner{}, nil
	}
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, d := range []disk.Dir{r.project.Store, r.project.Decree} {
		if d == nil {
			continue // a tree without a .decree is only read
		}
		if st, err := d.Self(); err != nil || st.UID != 0 {
			return &tree.Owner{UID: st.UID, GID: st.GID, Known: true}, err
		}
	}
	return nil, nil
}

// heldBack says whether what came with a backup of elsewhere waits until a person lets it go.
func (r *Reader) heldBack() bool { return r.project.Store != nil && r.project.HeldBack() != nil }

// withoutRights takes set-user-ID and set-group-ID from what the plan brings where
// they would be another's than recorded, and what only its group may do where that is lost,
// and says so, a line a path. elsewhere is as for believed. A plan that replaces what something is mounted at is refused.
func (r *Recorder) withoutRights(p *plan.Plan, elsewhere bool) ([]string, error) {
	mounts := r.mounts()
	taken, err := p.Rethink(func(steps []worktree.Step) (map[tree.Path]string, error) {
		if err := refuseMountPoints(steps, mounts); err != nil {
			return nil, err
		}
		return r.takeRights(steps, elsewhere)
	})
	return byPath(taken), err
}

// takeRights does that to steps, and returns what it took, in words, by path.
func (r *Recorder) takeRights(steps []worktree.Step, elsewhere bool) (map[tree.Path]string, error) {
	if !slices.ContainsFunc(steps, func(s worktree.Step) bool { return s.To.MayOwn() }) {
		return nil, nil
	}
	t, _, done, err := r.mover(elsewhere)
	if err != nil {
		return nil, err
	}
	defer done()
	return t.Rights(steps)
}

func byPath(taken map[tree.Path]string) (notes []string) {
	for _, path := range slices.Sorted(maps.Keys(taken)) {
		notes = append(notes, tree.Quote(path)+": "+taken[path])
	}
	return notes
}

// move makes one transaction, which is the whole of an operation.
func (r *Recorder) move(ctx context.Context, x *writeSession, p worktree.Plan) (*worktree.Outcome, error) {
	r.progress(Progress{Phase: "moving", Total: int64(p.Len())})
	out, err := r.transact(ctx, x, p)
	if err == nil {
		r.progress(Progress{Phase: "moving", Done: int64(p.Len()), Total: int64(p.Len())})
	}
	return out, err
}

// transact makes one transaction. Its errors are given their kind: what is not as
// it was looked at is a refusal, a hash that does not match is one of integrity.
func (r *Recorder) transact(ctx context.Context, x *writeSession, p worktree.Plan) (*worktree.Outcome, error) {
	r.awaitLooks(ctx)
	t, journals, done, err := r.mover(false)
	if err != nil {
		return nil, err
	}
	defer done()
	out, err := t.Move(ctx, p, x.w, journals)
	if words := r.seenTwice(err); words != "" {
		err = fmt.Errorf("%w; %s", err, words)
	}
	return out, moveError(err)
}

func moveError(err error) error {
	if err == nil {
		return nil
	}
	kind := project.Failed
	var conflict *worktree.ConflictError
	var mismatch *worktree.MismatchError
	var link *worktree.LinkError
	var forbidden *worktree.ForbiddenError
	var moved *worktree.Error
	switch {
	case (errors.Is(err, worktree.ErrStranger) || errors.Is(err, disk.ErrReplaced)) && errors.As(err, &moved) && moved.RolledBack:
		kind = project.Refused
	case errors.As(err, &mismatch):
		kind = project.Integrity
	case errors.As(err, &conflict), errors.As(err, &link), errors.As(err, &forbidden):
		kind = project.Refused
	}
	return &project.Error{Kind: kind, Err: err, Advice: moveAdvice(err)}
}

// Unsettled says whether an operation that moves files ended with err before it began, as for what another one does or has left, or
// so that it is still to be finished or taken back. After every other error nothing of it is left.
func Unsettled(err error) bool {
	return errors.As(err, new(*BeginError)) || errors.As(err, new(*unrecordedError)) || halfMoved(err)
}

// unrecordedError is about files that were moved, and whose record is not written.
type unrecordedError struct{ why *project.Error }

func (e *unrecordedError) Error() string { return e.why.Error() }
func (e *unrecordedError) Unwrap() error { return e.why }

// moveAdvice tells what to do about a move that could not be taken back whole.
func moveAdvice(err error) string {
	if halfMoved(err) {
		advice := "once the cause is gone 'decree recover' finishes it or takes it back"
		if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
			advice += "; where root's decree has made what is in the way, 'sudo decree recover' does"
		}
		return advice
	}
	if advice := strandedAdvice(err); advice != "" {
		return advice + "; then repeat the command"
	}
	if conflict := new(*worktree.ConflictError); errors.As(err, conflict) {
		for _, c := range (*conflict).Conflicts {
			if c.OfAnother() {
				return fmt.Sprintf("%s, or its directory, is another user's, as what a container made: have it deleted or given to you ('sudo chown -R'), and repeat the command; other records can be reverted without that, and undone with 'decree undo --skip'", tree.Quote(c.Path))
			}
		}
	}
	return ""
}

// strandedAdvice tells what to do about files that lie where they cannot be renamed away
// from, as in a subvolume that a command made; "" for any other error.
func strandedAdvice(err error) string {
	var moved *worktree.Error
	if !errors.Is(err, syscall.EXDEV) || !errors.As(err, &moved) {
		return ""
	}
	return fmt.Sprintf("%s is on a file system or in a subvolume that came since, and cannot be renamed out of it: unmount it, or delete it ('btrfs subvolume delete')", tree.Quote(moved.Path))
}

// lookError gives a refusal to look at a path its kind, and what cannot be read its next step.
func lookError(err error) error {
	var link *worktree.LinkError
	var special *worktree.SpecialError
	var forbidden *worktree.ForbiddenError
	if errors.As(err, &link) || errors.As(err, &special) || errors.As(err, &forbidden) {
		return &project.Error{Kind: project.Refused, Err: err, State: project.Unchanged}
	}
	var denied *fs.PathError
	if errors.As(err, &denied) && errors.Is(denied.Err, fs.ErrPermission) && project.RightsAdvice(err) == "" {
		return &project.Error{Kind: project.KindOf(err), Err: err, State: project.Unchanged,
			Advice: fmt.Sprintf("let it be read ('chmod u+rX %s') or move it away, then run this again", tree.ShellWord(denied.Path))}
	}
	return err
}

// action is a move of the tree that becomes a record.
type action struct {
	reason      history.Reason
	description string
	parents     []string
	plan        *plan.Plan
	effects     []history.StatusEffect
	undone      []undoneRecord // the statuses as they were, so that this can be undone
	label       string
	walked      history.Walked // of an undo or redo
	elsewhere   bool           // what it brings is of records that are not of this store's log

	cache *contentCache // contents that were read already; nil: none

	// full is set by a restore: the tree before it, which was captured.
	full *fullTree
}

// fullTree is a captured tree that a record holds whole.
type fullTree struct {
	id         tree.Hash
	files      int
	bytes      int64
	unrecorded []tree.Path
	manifest   history.RunFile
	sum        tree.Hash // of manifest.json
	found      *outside  // what had changed since the last record
}

// undoneRecord is a record that a revert or apply has changed, as it was before. It is in the record of that.
type undoneRecord struct {
	ID       string         `json:"id"`
	Status   history.Status `json:"status"`
	UndoneBy string         `json:"undone_by,omitempty"`
}

// perform stores what the action displaces and brings, opens its record, moves
// the tree and closes the record, in one transaction.
func (r *Recorder) perform(ctx context.Context, x *writeSession, a action) (*history.Record, *worktree.Outcome, error) {
	id, started, err := r.history.NewID()
	if err != nil {
		return nil, nil, err
	}
	cache := cmp.Or(a.cache, newContentCache())
	notes, err := r.withoutRights(a.plan, a.elsewhere)
	if err != nil {
		return nil, nil, project.Unmoved(err)
	}
	if a.plan.Empty() && !a.walked.Any() {
		return nil, &worktree.Outcome{Notes: notes}, nil
	}
	if err := r.storeSteps(ctx, x, a, cache); err != nil {
		return nil, nil, project.Unmoved(r.orEdited(ctx, a, err))
	}
	a.plan.Stored() // of very many paths the diffs need not be in memory from here on
	end, err := r.prepareEnding(ctx, x, a, cache, &history.Record{
		ID: id, Chain: id[:16], Reason: a.reason, Status: history.StatusSucceeded, Description: a.description,
		Started: started, Actor: r.opt.Actor, Inside: x.activity.inside, Origin: r.origin(),
		Walked: a.walked,
	})
	if err != nil {
		return nil, nil, project.Unmoved(r.orEdited(ctx, a, err))
	}
	if err := x.w.Flush(); err != nil {
		return nil, nil, project.Unmoved(err)
	}
	if err := r.openAction(x, a, end); err != nil {
		return nil, nil, project.Unmoved(err)
	}
	nothingMoves := a.plan.Empty()
	cache.serve(a.plan.Steps)
	packed, err := a.plan.Pack() // what files are moved by is all that is in memory meanwhile
	if err != nil {
		return nil, nil, errors.Join(moveError(err), r.history.Abandon(id))
	}
	defer a.plan.Unpack(packed)
	cache.clear()
	var unrecorded error
	out, err := r.move(ctx, x, worktree.Plan{ID: id, Packed: packed.Packed, Open: a.plan.Open(), Commit: func(*worktree.Outcome) error {
		unrecorded = r.end(end)
		return unrecorded
	}})
	if unrecorded != nil {
		return nil, nil, notRecordedYet(id, unrecorded, nothingMoves)
	}
	if err != nil {
		if halfMoved(err) { // the recovery needs the open record
			return nil, nil, err
		}
		return nil, nil, errors.Join(err, r.history.Abandon(id))
	}
	out.Notes = append(out.Notes, notes...)
	r.retain(ctx, x, a.reason)
	return end.Record, out, nil
}

// notRecordedYet says that the record of a move is not written. The journal says that the tree is
// new, and the open record how it ends: both stay for the next command. Where nothing moves there is
// no journal, so that the open record may be dropped.
func notRecordedYet(id string, err error, nothingMoves bool) error {
	e := &project.Error{Kind: project.Failed, Err: err,
		Msg:    fmt.Sprintf("the files are moved, but record %s is not written yet", id),
		Advice: "once the cause is gone 'decree recover' writes it; then 'decree revert last' undoes it"}
	if nothingMoves {
		e.Msg, e.Advice = fmt.Sprintf("no file had to be moved, but record %s is not written yet", id), "once the cause is gone, see 'decree log' whether it is there, or else repeat the command"
	}
	return &unrecordedError{e}
}

// orEdited is err, or its cause: somebody has changed paths since the plan looked at them,
// so that their contents are not what their hashes say.
func (r *Recorder) orEdited(ctx context.Context, a action, err error) error {
	paths := make([]tree.Path, len(a.plan.Steps))
	for i, s := range a.plan.Steps {
		paths[i] = s.Path
	}
	now, lerr := r.tree.LookAll(ctx, paths)
	if lerr != nil {
		return err
	}
	refusal := &ConflictError{Verb: string(a.reason), Subject: fmt.Sprintf("was there when this %s began", a.reason), Advice: "run this again"}
	for i, s := range a.plan.Steps {
		if reason := plan.Describe(now[i].Entry, s.From); now[i].Err == nil && reason != "" {
			refusal.Items = append(refusal.Items, plan.Item{Path: s.Path, From: s.From, To: s.To, Verdict: plan.Edited, Reason: reason})
		}
	}
	if len(refusal.Items) == 0 {
		return err
	}
	return refusal
}

// storeSteps stores the bytes that steps displace and bring, and checks that
// each is what its hash says. What a diff brings is computed even where the store
// has the result: a diff that does not fit is refused, whatever else is known.
func (r *Recorder) storeSteps(ctx context.Context, x *writeSession, a action, cache *contentCache) error {
	steps := a.plan.Steps
	var done atomic.Int64
	return cmp.Or(inParallel(ctx, len(steps), func(i int) error {
		r.progress(Progress{Phase: "checking", Done: done.Add(1) - 1, Total: int64(len(steps))})
		return r.storeStep(x, a, steps[i], cache)
	})...)
}

func (r *Recorder) storeStep(x *writeSession, a action, s worktree.Step, cache *contentCache) error {
	if err := r.storeDisplaced(x, s, cache); err != nil {
		return err
	}
	if a.full == nil && s.Content != nil && s.To.IsFile() {
		return r.storeContent(x, s.Path, s.To, s.Content, cache)
	}
	return r.storeSide(x, s.Path, s.To, s.Content)
}

// storeDisplaced stores what the step takes out of the tree, and holds it for the
// diff. The tree may have the last copy: what the index says is stored is read first.
func (r *Recorder) storeDisplaced(x *writeSession, s worktree.Step, cache *contentCache) error {
	if !s.From.IsFile() {
		return nil
	}
	inTree := func() (io.ReadCloser, error) {
		return cache.read(s.From, func() (io.ReadCloser, error) { return r.tree.Read(s.Path) })
	}
	if s.To != nil && s.To.SHA256 == s.From.SHA256 { // it stays, with another mode
		return r.storeSide(x, s.Path, s.From, inTree)
	}
	sum, err := x.w.Keep(s.From.SHA256, s.From.Size, inTree)
	if err != nil {
		return contentError(s.Path, err)
	}
	if err := rightContent(s.Path, s.From, sum); err != nil {
		return err
	}
	if _, ok := cache.get(s.From.SHA256); ok || s.From.Size > maxCached {
		return nil
	}
	rc, err := inTree()
	if err != nil {
		return err
	}
	return rc.Close()
}

func (r *Recorder) storeSide(x *writeSession, path tree.Path, e *tree.Entry, content func() (io.ReadCloser, error)) error {
	if !e.IsFile() || x.w.Has(e.SHA256) {
		return nil
	}
	if content == nil {
		content = stored{r.store, e.SHA256}.Open // which says what is wrong with it there
	}
	return r.storeContent(x, path, e, content, nil)
}

func (r *Recorder) storeContent(x *writeSession, path tree.Path, e *tree.Entry, content func() (io.ReadCloser, error), cache *contentCache) error {
	rc, err := cache.read(e, content)
	if err != nil {
		return contentError(path, err)
	}
	defer rc.Close()
	sum, _, err := x.w.Put(rc, e.Size)
	if err != nil {
		return contentError(path, err)
	}
	return rightContent(path, e, sum)
}

func rightContent(path tree.Path, e *tree.Entry, sum tree.Hash) error {
	if sum == e.SHA256 {
		return nil
	}
	return &project.Error{Kind: project.Integrity, State: project.Unchanged, Msg: fmt.Sprintf("%s: content is %s, should be %s", tree.Quote(path), sum, e.SHA256)}
}

// contentError gives a diff that does not fit its own hashes, and a content that
// the store has lost, the kind of integrity.
func contentError(path tree.Path, err error) error {
	if _, ok := errors.AsType[*patch.MismatchError](err); ok {
		return &project.Error{Kind: project.Integrity, Err: err, State: project.Unchanged}
	}
	if lostContents(err) {
		return &project.Error{Kind: project.Integrity, Err: tree.At(path, err), State: project.Unchanged,
			Advice: "name the other PATHs to go on without it"}
	}
	return err
}

// prepareEnding stores the record's diff and trees and fills in its facts.
func (r *Recorder) prepareEnding(ctx context.Context, x *writeSession, a action, cache *contentCache, rec *history.Record) (*ending, error) {
	changes := a.plan.Changes()
	sum, stat, err := r.storeDiff(ctx, x, changes, cache)
	if err != nil {
		return nil, err
	}
	rec.DiffSHA256, rec.Changes = sum, counts(stat)
	end := &ending{Record: rec, Files: map[string]tree.Hash{diffFile: sum}}
	if len(a.parents) > 0 {
		rec.Parent = a.parents[0]
	}
	if err := addExtra(rec, a); err != nil {
		return nil, err
	}
	if a.full != nil {
		rec.Before, rec.Files, rec.Bytes, rec.Unrecorded = a.full.id, a.full.files, a.full.bytes, a.full.unrecorded
		rec.ManifestSHA256 = a.full.sum
		if err := r.noteMounts(rec); err != nil {
			return nil, err
		}
		end.build, end.Files = []history.RunFile{a.full.manifest}, a.full.found.stored(end.Files)
		if err := a.full.found.mark(rec); err != nil {
			return nil, err
		}
		rec.After, err = r.history.Apply(x.w, rec.Before, changes)
		return end, err
	}
	plain, sum, files, bytes, err := partial(changes)
	if err != nil {
		return nil, err
	}
	rec.Files, rec.Bytes, rec.ManifestSHA256 = files, bytes, sum
	end.build = []history.RunFile{plain}
	if rec.Before, rec.After, err = r.movedTrees(x, changes); err != nil {
		return nil, err
	}
	found, err := r.outsideAtPaths(ctx, x, rec.Before, cache)
	if err != nil {
		return nil, err
	}
	end.Files = found.stored(end.Files)
	return end, found.mark(rec)
}

// movedTrees are the trees before and after a move that looked at its own paths alone:
// what the newest record left, with those paths as they are, and as they will be.
func (r *Recorder) movedTrees(x *writeSession, changes []tree.Change) (before, after tree.Hash, err error) {
	k, err := r.lastKnown()
	if err != nil {
		return before, after, err
	}
	if before, err = r.history.Overlay(x.w, k.base, changes); err != nil {
		return before, after, err
	}
	after, err = r.history.Apply(x.w, before, changes)
	return before, after, err
}

const (
	extraParents = "parents" // of an action that has several
	extraUndid   = "undid"   // see undoneRecord
)

// addExtra writes down what the record changes about others.
func addExtra(rec *history.Record, a action) error {
	parts := partsOf(a.plan)
	return cmp.Or(
		setField(rec, extraParents, a.parents, len(a.parents) > 1),
		setField(rec, extraUndid, a.undone, len(a.undone) > 0),
		setField(rec, extraInPart, parts, len(parts) > 0))
}

// PlanDiff writes what a plan would change as a changes.diff: from the tree as it is
// to what it would be.
func (r *Reader) PlanDiff(ctx context.Context, w io.Writer, p *plan.Plan) error {
	cfg := r.project.Config
	pw := patch.NewWriter(w, patch.Limits{InlineBinary: cfg.InlineBinary, InlineText: cfg.InlineText})
	steps := slices.Clone(p.Steps)
	slices.SortFunc(steps, func(a, b worktree.Step) int { return a.Path.Compare(b.Path) })
	for _, s := range steps {
		c := patch.Change{Path: s.Path, Old: s.From, New: s.To, OldContent: r.contentAt(Point{Now: true}, s.Path, s.From)}
		switch {
		case !s.To.IsFile():
		case s.Content != nil:
			c.NewContent = opening(s.Content)
		default:
			c.NewContent = stored{r.store, s.To.SHA256}
		}
		if err := pw.Write(ctx, c); err != nil {
			return err
		}
	}
	return pw.Close()
}

// opening is a patch.Content.
type opening func() (io.ReadCloser, error)

func (o opening) Open() (io.ReadCloser, error) { return o() }

// storeDiff writes the diff straight into the store.
func (r *Recorder) storeDiff(ctx context.Context, x *writeSession, changes []tree.Change, cache *contentCache) (tree.Hash, patch.Stat, error) {
	return r.storeMarked(ctx, x, changesInMemory(changes), nil, cache, io.Discard)
}

// storeMarked does what storeDiff does for changes of which those of shared are marked as
// such, and writes the diff to copied too.
func (r *Recorder) storeMarked(ctx context.Context, x *writeSession, changes changeSeq, shared map[tree.Path]bool, cache *contentCache, copied io.Writer) (sum tree.Hash, stat patch.Stat, err error) {
	sum, err = store.PutWritten(x.w, func(to io.Writer) (err error) {
		stat, err = r.writeChanges(ctx, io.MultiWriter(to, copied), changes, shared, cache)
		return err
	})
	return sum, stat, err
}

// openAction writes the open record of an action, with its ending.
func (r *Recorder) openAction(x *writeSession, a action, end *ending) error {
	draft := *end.Record
	draft.Status = history.StatusOpen
	for _, e := range a.effects {
		end.effects.Status = append(end.effects.Status, withUndoer(e, draft.ID))
	}
	if a.label != "" {
		end.effects.Labels = map[string]string{a.label: draft.ID}
	}
	r.buildMove(end)
	raw, err := json.Marshal(end)
	if err != nil {
		return err
	}
	return r.history.Begin(&history.Opened{
		Record: &draft, Transaction: draft.ID, Since: x.w.Began(), Effects: end.effects, Extra: map[string]json.RawMessage{extraEnding: raw},
	})
}

// withUndoer is an effect with id in the places that say which record undid another.
func withUndoer(e history.StatusEffect, id string) history.StatusEffect {
	if e.Draft != nil {
		draft := *e.Draft
		draft.By = slices.Clone(draft.By)
		for i := range draft.By {
			if draft.By[i] == thisRecord {
				draft.By[i] = id
			}
		}
		e.Draft = &draft
		return e
	}
	if e.UndoneBy == thisRecord || e.Status == history.StatusUndone && e.UndoneBy == "" {
		e.UndoneBy = id
	}
	return e
}

func (r *Recorder) copyObject(w io.Writer, sum tree.Hash) error {
	rc, _, err := r.store.Open(sum)
	if err != nil {
		return err
	}
	defer rc.Close()
	_, err = io.Copy(w, rc)
	return err
}
