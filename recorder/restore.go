package recorder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"slices"

	"sync/atomic"

	"decree/capture"
	"decree/history"
	"decree/manifest"
	"decree/plan"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// RestoreOptions are a restore's.
type RestoreOptions struct {
	Ref                    string
	After                  bool        // the state after the record instead of before it
	Paths                  []tree.Path // relative to the root; none: the whole tree
	KeepExtra, DryRun, Yes bool
	Confirm                func(to Point, p *plan.Plan) (bool, error)
	Show                   func(*plan.Plan) error // as that of a revert
}

// Restore makes the tree, or some paths of it, equal to what a record observed.
func (r *Recorder) Restore(ctx context.Context, o RestoreOptions) (*MoveResult, error) {
	var x *writeSession
	if !o.DryRun {
		var err error
		if x, err = r.enterToMove(ctx, "restore"); err != nil {
			return nil, err
		}
		defer x.close()
	}
	to, target, err := r.target(o)
	var res *MoveResult
	if err == nil {
		res, err = r.restoreTo(ctx, x, o, to, target)
	}
	if err != nil && x != nil {
		r.auditFailure("restore", err)
	}
	return res, err
}

// target is the record and tree that the options name.
func (r *Recorder) target(o RestoreOptions) (Point, tree.Hash, error) {
	ref, err := r.history.Resolve(o.Ref, r.opt.Location)
	if err != nil {
		return Point{}, tree.Hash{}, err
	}
	rec, err := r.history.Get(ref.ID)
	if err != nil {
		return Point{}, tree.Hash{}, err
	}
	if rec.Partial() {
		return Point{}, tree.Hash{}, partialError(r.history, rec)
	}
	if o.After || ref.Side == history.After {
		if rec.After.IsZero() {
			return Point{}, tree.Hash{}, &project.Error{Kind: project.NotFound, Msg: "record " + rec.ID + " has no state after it", Advice: "without --after, the state before it is meant"}
		}
		return Point{Record: rec, After: true}, rec.After, nil
	}
	return Point{Record: rec}, rec.Before, nil
}

func (r *Recorder) restoreTo(ctx context.Context, x *writeSession, o RestoreOptions, to Point, target tree.Hash) (*MoveResult, error) {
	rec := to.Record
	cache := newContentCache()
	res, full, err := r.capturePresent(ctx, x, cache)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	changes, err := r.toTarget(ctx, o, res, rec, target)
	if err != nil {
		return nil, err
	}
	p, err := plan.ForChanges(ctx, r.tree, changes, true)
	if err != nil {
		return nil, &BeginError{lookError(err)}
	}
	if c := p.Conflicts(); len(c) > 0 {
		return nil, &ConflictError{Verb: "restore", Subject: "can be restored", Items: c}
	}
	out := &MoveResult{Plan: p, To: to}
	if p.Empty() {
		if !o.DryRun {
			r.emit(Event{Kind: Restored, To: rec, Plan: p})
		}
		return out, nil
	}
	if err := r.leaveRenamedSince(to, out); err != nil {
		return nil, err
	}
	if err := r.mountedSince(rec, target, p); err != nil {
		return nil, err
	}
	if err := r.verifyContents(ctx, p, cache); err != nil {
		return nil, err
	}
	p.Warnings, _ = stillOpen(p, nil)
	if o.DryRun || o.Yes {
		out.Notes = append(out.Notes, p.Warnings...)
	}
	if o.DryRun {
		return out, show(o.Show, p)
	}
	if err := confirmRestore(o, to, p); err != nil {
		return nil, err
	}
	elsewhere, err := r.history.Foreign(rec.ID)
	if err != nil {
		return nil, err
	}
	out.Record, out.Outcome, err = r.perform(ctx, x, action{
		reason: history.Restore, plan: p, parents: []string{rec.ID}, full: full, cache: cache, elsewhere: elsewhere,
		description: fmt.Sprintf("Restore to %s (%s)", to.Words(), stateTime(to).In(r.opt.Location).Format("2006-01-02 15:04")),
	})
	if err == nil {
		r.emit(Event{Kind: Restored, Record: out.Record, To: rec, Plan: p})
	}
	return out, err
}

// leaveRenamedSince is leaveRenamed of a restore that goes back behind records.
func (r *Recorder) leaveRenamedSince(to Point, out *MoveResult) error {
	var recs []*history.Record
	if !to.After {
		recs = append(recs, to.Record)
	}
	err := r.history.Since(to.Record, func(rec *history.Record) { recs = append(recs, rec) })
	if err == nil {
		out.Notes = r.leaveRenamed(recs, out.Plan)
	}
	return err
}

// confirmRestore asks, unless the options say yes, whether to go to a state by p.
func confirmRestore(o RestoreOptions, to Point, p *plan.Plan) error {
	if o.Yes {
		return nil
	}
	var confirm func(*plan.Plan) (bool, error)
	if o.Confirm != nil {
		confirm = func(p *plan.Plan) (bool, error) { return o.Confirm(to, p) }
	}
	why := "a restore overwrites what has changed since"
	if len(p.Warnings) > 0 {
		why = openFiles(p.Warnings)
	}
	return ask(p, confirm, why)
}

// unreadNow says whether a capture ended with err for a file that cannot be read as it is now, as nobody may or as it is written all the time.
func unreadNow(err error) bool {
	return errors.As(err, new(*capture.UnreadableError)) || errors.As(err, new(*capture.ChangingError))
}

// readAdvice is what lets such a file be read.
func readAdvice(err error) string {
	if errors.As(err, new(*capture.ChangingError)) {
		return "end the program that goes on writing it, or ignore it in .decreeignore"
	}
	return "let it be read (chmod u+r), or ignore it in .decreeignore"
}

// capturePresent captures the tree as it is: into the store, or for a dry run (x nil)
// only to be compared.
func (r *Recorder) capturePresent(ctx context.Context, x *writeSession, cache *contentCache) (*capture.Result, *fullTree, error) {
	if x == nil {
		res, err := r.captureToCompare(ctx)
		return res, nil, err
	}
	res, err := r.observe(ctx, x, captureOptions{phase: "recording", unlimited: true})
	if unreadNow(err) {
		return nil, nil, &WaitError{&project.Error{Kind: project.KindOf(err), Err: err, State: project.Unchanged,
			Advice: "what is there now is stored before it is overwritten: " + readAdvice(err)}}
	}
	if limit, ok := errors.AsType[*capture.LimitError](err); ok {
		return nil, nil, &WaitError{&project.Error{Kind: project.Refused, Err: limit, State: project.Unchanged,
			Advice: "what is there now is stored before it is overwritten: move such a file away, ignore it in .decreeignore, or set capture.max_file higher in .decree/config.yml"}}
	}
	if err != nil {
		return nil, nil, &BeginError{err}
	}
	found, err := r.observeOutside(ctx, x, res, cache)
	var plain history.RunFile
	var sum tree.Hash
	if err == nil {
		err = r.keep(x, res)
	}
	if err == nil {
		plain, sum, err = r.manifestFile(res.Tree, res.WriteManifest)
	}
	if err != nil {
		res.Close()
		return nil, nil, &BeginError{err}
	}
	return res, &fullTree{found: found, id: res.Tree, files: res.Files, bytes: res.Bytes, unrecorded: res.Unrecorded, manifest: plain, sum: sum}, nil
}

// toTarget is the difference from the target (old) to the present (new), without what
// the options and the record's own ignore rules leave alone.
func (r *Recorder) toTarget(ctx context.Context, o RestoreOptions, res *capture.Result, rec *history.Record, target tree.Hash) (kept []tree.Change, err error) {
	changes, err := r.apart(rec, target, res)
	if err != nil {
		return nil, err
	}
	if err := r.namesSomething(o.Paths, changes); err != nil {
		return nil, err
	}
	kept = changes[:0]
	var extra []tree.Path
	var inTheWay []plan.Item
	var lastFile tree.Path // the last path at which a file must take the place of a directory
	for _, c := range changes {
		if !c.Path.Within(o.Paths...) && !r.madeAbove(c, o.Paths) {
			continue
		}
		if c.Old == nil && o.KeepExtra {
			if lastFile != "" && c.Path.Below(lastFile) {
				inTheWay = append(inTheWay, plan.Item{Path: c.Path, From: c.New, Verdict: plan.Edited, Reason: "is to be kept, and a file must come where its directory is"})
			}
			continue
		}
		if c.Old != nil && c.New.IsDir() && c.Old.Type != tree.Dir {
			lastFile = c.Path
		}
		if c.Old == nil {
			extra = append(extra, c.Path)
		}
		kept = append(kept, c)
	}
	if len(inTheWay) > 0 {
		return nil, &ConflictError{Verb: "restore", Subject: "can be restored with --keep-extra", Items: inTheWay}
	}
	if len(extra) == 0 {
		return kept, nil
	}
	ignored, err := r.ignoredThen(ctx, target, extra)
	if err != nil {
		return nil, err
	}
	changes, kept = kept, kept[:0]
	for _, c := range changes {
		if c.Old != nil || !ignored[c.Path] {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// madeAbove says whether c is a directory that has to be made for one of paths, which is then made as it was: what is there and ignored is not
// captured either.
func (r *Recorder) madeAbove(c tree.Change, paths []tree.Path) bool {
	if !c.Old.IsDir() || c.New != nil || !slices.ContainsFunc(paths, func(p tree.Path) bool { return p.Below(c.Path) }) {
		return false
	}
	now, err := r.tree.Look(c.Path)
	return now == nil && err == nil
}

// apart is the difference from a record's tree to the captured one. Where the store has
// lost it, the plain manifest.json is asked. rec is nil for a tree that is no record's.
func (r *Reader) apart(rec *history.Record, target tree.Hash, res *capture.Result) ([]tree.Change, error) {
	changes, err := r.since(target, res)
	if err == nil {
		return slices.Clone(changes), nil
	}
	if rec == nil {
		return nil, err
	}
	want, perr := r.plainTree(rec, target)
	if perr != nil {
		return nil, err
	}
	return manifest.Compare(want, res.Entries())
}

// namesSomething refuses PATHs that are neither in the wanted tree nor in the
// present one.
func (r *Recorder) namesSomething(paths []tree.Path, changes []tree.Change) error {
	for _, p := range paths {
		found := p == ""
		for _, c := range changes {
			found = found || c.Path.Within(p)
		}
		if found {
			continue
		}
		if e, err := r.tree.Look(p); err == nil && e != nil {
			continue
		}
		return noSuchPath(p)
	}
	return nil
}

func noSuchPath(path tree.Path) error {
	return &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: tree.Quote(path) + ": no such path, neither now nor in the record",
		Advice: "'decree find NAME' lists the records that know a name"}
}

// plainTree is a record's tree by its manifest.json in the run directory, where that is
// as it was written.
func (r *Reader) plainTree(rec *history.Record, id tree.Hash) (tree.Seq, error) {
	if id != rec.Before {
		return nil, history.ErrNotKept
	}
	rc, err := r.history.OpenPlain(rec.ID, "manifest.json")
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	data, err := io.ReadAll(rc)
	if err == nil && tree.Sum(data) != cmp.Or(rec.ManifestSHA256, rec.Before) { // a tree's id was that hash once
		err = history.ErrNotKept
	}
	return manifest.NewDecoder(bytes.NewReader(data)).All(), err
}

// ignoredThen says which of paths the rules of a stored tree ignore: files that
// were there all along, unrecorded, and are nobody's to delete.
func (r *Reader) ignoredThen(ctx context.Context, target tree.Hash, paths []tree.Path) (map[tree.Path]bool, error) {
	req, err := r.request(captureOptions{})
	if err != nil {
		return nil, err
	}
	req.Frozen = []capture.RuleFile{}
	seq, err := r.history.Tree(target)
	if err != nil {
		return nil, err
	}
	for it, err := range seq {
		if err != nil {
			return nil, err
		}
		base := it.Path.Name()
		if it.Entry.Type == tree.Regular && slices.Contains(ignoreFiles, base) {
			req.Frozen = append(req.Frozen, capture.RuleFile{Path: string(it.Path), SHA256: it.Entry.SHA256})
		}
	}
	out := map[tree.Path]bool{}
	if len(req.Frozen) == 0 {
		return out, nil
	}
	answers, err := capture.Explain(ctx, req, paths)
	for _, a := range answers {
		out[a.Path] = a.Ignored
	}
	return out, err
}

// verifyContents reads and hashes every stored content that the plan needs.
func (r *Recorder) verifyContents(ctx context.Context, p *plan.Plan, cache *contentCache) error {
	var done atomic.Int64
	errs := inParallel(ctx, len(p.Steps), func(i int) error {
		s := p.Steps[i]
		r.progress(Progress{Phase: "checking", Done: done.Add(1) - 1, Total: int64(len(p.Steps))})
		if !s.To.IsFile() || s.From != nil && s.From.SHA256 == s.To.SHA256 {
			return nil
		}
		if err := r.verifyContent(s, cache); err != nil {
			return tree.At(s.Path, err)
		}
		return nil
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	bad := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(bad) == 0 {
		return nil
	}
	return &project.Error{Kind: project.Integrity, State: project.Unchanged, Msg: "the store lacks what is to be restored", Err: errors.Join(bad...),
		Advice: lostAdvice(errors.Join(bad...)) + "; name other PATHs to restore the rest"}
}

// verifyContent reads a content that a step needs, and caches it if it is small.
func (r *Recorder) verifyContent(s worktree.Step, cache *contentCache) error {
	if _, ok := cache.get(s.To.SHA256); ok {
		return nil // its hash was checked when it was read
	}
	if s.To.Size > maxCached {
		return r.store.Verify(s.To.SHA256)
	}
	rc, err := cache.read(s.To, stored{r.store, s.To.SHA256}.Open)
	if err != nil {
		return err
	}
	return rc.Close()
}

// lostAdvice says what to do about contents that the store lacks.
func lostAdvice(err error) string {
	if Forgotten(err) {
		return "a forget took it out on purpose, and it cannot be brought back"
	}
	return "'decree verify --all' lists what is damaged"
}
