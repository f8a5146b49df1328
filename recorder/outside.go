package recorder

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"decree/capture"
	"decree/history"
	"decree/manifest"
	"decree/patch"
	"decree/plan"
	"decree/store"
)

// What changes between two records is nobody's run: an editor's work, a branch
// switched. The capture that finds it keeps it as outside.diff in its record, so
// that it is neither lost nor blamed on the run that begins then.

// outside is what a capture found changed since the last known state; nil: nothing.
type outside struct {
	history.Outside
	data []byte // the diff, where it is small enough to be kept
}

// file is outside.diff for the run directory.
func (o *outside) file(r *Recorder) history.RunFile {
	f := history.RunFile{Name: history.OutsideFile, Write: history.Bytes(o.data)}
	if o.data == nil {
		f.Write = func(w io.Writer) error { return r.copyObject(w, o.SHA256) }
	}
	return f
}

// files are the run directory's files with outside.diff, if there is one.
func (o *outside) files(r *Recorder, files ...history.RunFile) []history.RunFile {
	if o == nil {
		return files
	}
	return append(files, o.file(r))
}

// stored adds outside.diff to the files that the store keeps of a record.
func (o *outside) stored(files map[string]manifest.Hash) map[string]manifest.Hash {
	if o == nil {
		return files
	}
	if files == nil {
		files = map[string]manifest.Hash{}
	}
	files[history.OutsideFile] = o.SHA256
	return files
}

// storeFiles puts the files of a run's directory into the store. outside.diff is as
// old as the run: one that the command deleted or changed is written again.
func (r *Recorder) storeFiles(x *writing, rec *history.Record) (map[string]manifest.Hash, error) {
	files, err := r.history.StoreFiles(x.w, rec.ID)
	o, ok := rec.Outside()
	if err != nil || !ok || files[history.OutsideFile] == o.SHA256 {
		return files, err
	}
	if err := r.history.RewriteFile(rec.ID, history.RecordFile{Name: history.OutsideFile, SHA256: o.SHA256}); err != nil && !lostContents(err) {
		return nil, err
	}
	if files == nil {
		files = map[string]manifest.Hash{}
	}
	files[history.OutsideFile] = o.SHA256
	return files, nil
}

// mark tells of it in the record.
func (o *outside) mark(rec *history.Record) error {
	if o == nil {
		return nil
	}
	return rec.SetOutside(o.Outside)
}

// observeOutside writes the difference from the last known state to the captured
// one into the store; it is durable after the next flush. Its cost is that of
// what changed, and what it reads stays in held. A content that the store has lost is no reason to record nothing:
// then the diff is left out, with a note.
//
// What changes while the command of a run works is that run's, whoever looks at it
// meanwhile, and what had changed before it stands in its own record.
func (r *Recorder) observeOutside(ctx context.Context, x *writing, res *capture.Result, held *held) (*outside, error) {
	if len(x.beside.leases) > 0 {
		return nil, nil
	}
	s, err := r.sinceLast(ctx, res)
	if err == nil && len(s.changes) > 0 {
		var o *outside
		if o, err = r.storeOutside(ctx, x, s.changes, held); err == nil {
			return o, nil
		}
	}
	if lostContents(err) {
		r.note("what changed since the last record is not written down: %v", err)
		return nil, nil
	}
	return nil, err
}

func (r *Recorder) storeOutside(ctx context.Context, x *writing, changes []manifest.Change, held *held) (*outside, error) {
	kept := &bounded{left: maxOutside}
	var stat patch.Stat
	sum, _, err := store.PutWritten(x.w, func(to io.Writer) (err error) {
		stat, err = r.writeChanges(ctx, io.MultiWriter(to, kept), changes, held)
		return err
	})
	if err != nil {
		return nil, err
	}
	o := &outside{Outside: history.Outside{SHA256: sum, Changes: counts(stat)}}
	if kept.left >= 0 {
		o.data = kept.Bytes()
	}
	return o, nil
}

// maxOutside is how long an outside.diff is kept in memory, in bytes, on its way
// to the run directory; a longer one is read from the store again.
const maxOutside = 4 << 20

// bounded keeps what is written as long as it is not too much.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left >= 0 {
		return b.Buffer.Write(p)
	}
	b.Reset()
	return len(p), nil
}

// sinceLast is what changed since the last known state.
type sinceLast struct {
	last     *history.Record // whose end that state is; nil: nothing is known yet
	changes  []manifest.Change
	ruleOnly int // paths that joined or left by ignore rules alone; they are no changes
}

// lastKnown is the state of the tree that the records end with: the newest whole
// tree, and the reverts and applies since, which know their own paths only.
type lastKnown struct {
	newest *history.Record // nil: there is none
	whole  *history.Record // nil: no tree was observed yet
	base   manifest.Hash
	steps  []*history.Record // newest first
}

func (r *Reader) lastKnown() (k lastKnown, err error) {
	err = r.history.Newest(func(rec *history.Record) bool {
		switch {
		case rec.Status == history.StatusOpen:
			return true
		case k.newest == nil:
			k.newest = rec
		}
		if !observedWhole(rec) {
			k.steps = append(k.steps, rec)
			return true
		}
		k.whole, k.base = rec, left(rec)
		return false
	})
	return k, err
}

// sinceLast compares a captured tree with the last known state. The stat cache's
// tree is mostly that state, or one side of its record: then only what changed is
// looked at. Else, as after a capture that no record followed, both are read whole.
func (r *Reader) sinceLast(ctx context.Context, res *capture.Result) (sinceLast, error) {
	k, err := r.lastKnown()
	s := sinceLast{last: k.newest}
	if err != nil || k.whole == nil {
		return s, err
	}
	var steps []manifest.Change
	for _, rec := range slices.Backward(k.steps) {
		step, err := r.stepOf(rec)
		if err != nil {
			return s, err
		}
		steps = joinChanges(steps, step)
	}
	if res.Tree == k.base && len(steps) == 0 {
		s.ruleOnly = len(res.RuleOnly)
		return s, nil
	}
	way, ok := r.detour(k, res)
	if ok {
		// Only then: of a path that left, way may hold the change that was put back.
		s.changes = withoutPaths(joinChanges(invert(steps), joinChanges(invert(way), res.Changes)), res.RuleOnly)
		s.ruleOnly = len(res.RuleOnly)
	} else if s, err = r.compareWhole(ctx, s, k, steps, res); err != nil {
		return s, err
	}
	s.changes = readable(s.changes, k.whole.Unrecorded, res.Unrecorded)
	return s, nil
}

// detour leads from the cache's tree to the newest whole tree, by its record's own
// diff: a run that was put back, a restore. ok is false where there is no such way.
func (r *Reader) detour(k lastKnown, res *capture.Result) (way []manifest.Change, ok bool) {
	rec := k.whole
	switch {
	case res.Base.IsZero():
		return nil, false
	case res.Base == k.base:
		return nil, true
	case res.Base != rec.Before && res.Base != afterOf(rec):
		return nil, false
	}
	if way, ok = r.ownChanges(rec); ok && res.Base == afterOf(rec) {
		way = invert(way)
	}
	return way, ok
}

// ownChanges are what a record changed, by the facts of its changes.diff; ok is
// false where that is not to be had.
func (r *Reader) ownChanges(rec *history.Record) (changes []manifest.Change, ok bool) {
	f, err := r.history.OpenStored(rec.ID, diffFile)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	err = history.Facts(f, func(f *patch.Section) bool {
		changes = append(changes, manifest.Change{Path: f.Path, Old: f.Old, New: f.New})
		return true
	})
	return onePathOnce(changes), err == nil
}

// onePathOnce joins the two sections of a path that changed its kind.
func onePathOnce(changes []manifest.Change) []manifest.Change {
	out := changes[:0]
	for _, c := range changes {
		if n := len(out); n > 0 && out[n-1].Path == c.Path {
			out[n-1].New = c.New
			continue
		}
		out = append(out, c)
	}
	return out
}

// stepOf is what a revert or apply changed: by its diff, else by its two manifests.
func (r *Reader) stepOf(rec *history.Record) ([]manifest.Change, error) {
	if changes, ok := r.ownChanges(rec); ok {
		return changes, nil
	}
	return r.step(rec)
}

// compareWhole is the long way: the last known tree against the captured one, and
// what the ignore rules of either side leave out is no change.
func (r *Reader) compareWhole(ctx context.Context, s sinceLast, k lastKnown, steps []manifest.Change, res *capture.Result) (sinceLast, error) {
	seq, _, err := r.history.Tree(k.base)
	if err != nil {
		return s, err
	}
	changes, err := manifest.Compare(withChanges(seq, steps), res.Entries())
	if err != nil {
		return s, err
	}
	s.changes, s.ruleOnly, err = r.withoutRuleChanges(ctx, changes, k.whole.Before, manifest.Hash{})
	return s, err
}

// withoutRuleChanges drops the paths of a difference that joined the tree because
// the ignore files in the tree from ignored them, or left it because those of to do; a
// zero to is the tree as it is now, where such a path must still exist. It says how many.
func (r *Reader) withoutRuleChanges(ctx context.Context, changes []manifest.Change, from, to manifest.Hash) ([]manifest.Change, int, error) {
	var joined, gone []string
	for _, c := range changes {
		switch {
		case c.Old == nil:
			joined = append(joined, asRulesSee(c.Path, c.New))
		case c.New == nil:
			gone = append(gone, asRulesSee(c.Path, c.Old))
		}
	}
	drop := map[string]bool{}
	if len(joined) > 0 {
		ignored, err := r.ignoredThen(ctx, from, joined)
		if err != nil {
			return nil, 0, err
		}
		drop = ignored
	}
	if len(gone) > 0 {
		ignored, err := r.ignoredAt(ctx, to, gone)
		if err != nil {
			return nil, 0, err
		}
		for path, yes := range ignored {
			drop[path] = drop[path] || yes
		}
	}
	all := len(changes)
	changes = slices.DeleteFunc(changes, func(c manifest.Change) bool { return (c.Old == nil || c.New == nil) && drop[c.Path] })
	return changes, all - len(changes), nil
}

// asRulesSee marks a directory, which rules may be for alone.
func asRulesSee(path string, e *manifest.Entry) string {
	if e.Type == manifest.Dir {
		return path + "/"
	}
	return path
}

// ignoredAt is ignoredThen for a stored tree, or for the tree as it is now: a path
// that is not there any more is then not ignored but gone.
func (r *Reader) ignoredAt(ctx context.Context, tree manifest.Hash, paths []string) (map[string]bool, error) {
	if !tree.IsZero() {
		return r.ignoredThen(ctx, tree, paths)
	}
	req, err := r.request(look{unlimited: true})
	if err != nil {
		return nil, err
	}
	req.Progress = nil
	out := map[string]bool{}
	answers, err := capture.Explain(ctx, req, paths)
	for _, a := range answers {
		out[strings.TrimSuffix(a.Path, "/")] = a.Ignored && !a.Missing
	}
	return out, err
}

// withoutPaths are the changes but for those of paths, which are sorted.
func withoutPaths(changes []manifest.Change, paths []string) []manifest.Change {
	if len(paths) == 0 {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c manifest.Change) bool {
		_, found := slices.BinarySearch(paths, c.Path)
		return found
	})
}

// readable drops what one of two captures could not read: it is not known whether
// it changed.
func readable(changes []manifest.Change, unread ...[]string) []manifest.Change {
	lost := slices.Concat(unread...)
	if len(lost) == 0 {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c manifest.Change) bool { return plan.Within(c.Path, lost) })
}
