package recorder

import (
	"bytes"
	"context"
	"io"
	"slices"

	"decree/capture"
	"decree/history"
	"decree/tree"
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
func (o *outside) file(r *Recorder) history.RunFile { return o.fileOf(r, history.OutsideFile) }

// fileOf is the diff as a file of the run directory.
func (o *outside) fileOf(r *Recorder, name string) history.RunFile {
	f := history.RunFile{Name: name, Write: history.Bytes(o.data)}
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
func (o *outside) stored(files map[string]tree.Hash) map[string]tree.Hash {
	if o == nil {
		return files
	}
	if files == nil {
		files = map[string]tree.Hash{}
	}
	files[history.OutsideFile] = o.SHA256
	return files
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
// what changed, and what it reads stays in cache. A content that the store has lost is no reason to record nothing:
// then the diff is left out, with a note.
//
// What changes while the command of a run works, or in an open turn of a coding agent, is
// that one's, whoever looks at it meanwhile, and what had changed before it stands in its own record.
func (r *Recorder) observeOutside(ctx context.Context, x *writeSession, res *capture.Result, cache *contentCache) (*outside, error) {
	if x.activity.inPlace() || len(x.activity.turns) > 0 {
		return nil, nil
	}
	s, err := r.sinceLast(ctx, res)
	return r.keepOutside(ctx, x, s.changes, err, cache)
}

// keepOutside is keepDiff of what changed since the last record, or err is why that is not known.
func (r *Recorder) keepOutside(ctx context.Context, x *writeSession, changes changeSeq, err error, cache *contentCache) (*outside, error) {
	found := false
	if err == nil {
		found, err = anyOf(changes)
	}
	if found && err == nil {
		var o *outside
		if o, err = r.keepDiff(ctx, x, changes, nil, cache); err == nil {
			return o, nil
		}
	}
	if lostContents(err) {
		r.note("what changed since the last record is not written down: %v", err)
		return nil, nil
	}
	return nil, err
}

// outsideAtPaths is observeOutside of a move that looks at its own paths alone, which before has as they are: what was edited
// there would be found by no later record, since these compare with what the move left.
func (r *Recorder) outsideAtPaths(ctx context.Context, x *writeSession, before tree.Hash, cache *contentCache) (*outside, error) {
	if x.activity.inPlace() || len(x.activity.turns) > 0 {
		return nil, nil
	}
	k, err := r.lastKnown()
	if err != nil || k.newest == nil || k.base == before {
		return nil, err
	}
	changes, err := r.history.Compare(k.base, before)
	return r.keepOutside(ctx, x, changesInMemory(changes), err, cache)
}

// keepDiff writes a diff into the store, in which the changes of shared are marked as
// such; it is durable after the next flush.
func (r *Recorder) keepDiff(ctx context.Context, x *writeSession, changes changeSeq, shared map[tree.Path]bool, cache *contentCache) (*outside, error) {
	kept := &bounded{left: maxOutside}
	sum, stat, err := r.storeMarked(ctx, x, changes, shared, cache, kept)
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
	base     tree.Hash       // that state
	changes  changeSeq
	ruleOnly int // paths that joined or left by ignore rules alone; they are no changes
}

// lastKnown is the state of the tree that the records end with.
type lastKnown struct {
	newest *history.Record // nil: there is none
	base   tree.Hash       // what it left
}

func (r *Reader) lastKnown() (k lastKnown, err error) {
	err = r.history.Newest(func(rec *history.Record) bool {
		if rec.Status == history.StatusOpen || rec.Isolated != "" {
			return true
		}
		k.newest, k.base = rec, treeAfter(rec)
		return false
	})
	return k, err
}

// sinceLast compares a captured tree with the last known state.
func (r *Reader) sinceLast(ctx context.Context, res *capture.Result) (sinceLast, error) {
	k, err := r.lastKnown()
	s := sinceLast{last: k.newest, base: k.base, changes: changesInMemory(nil)}
	if err != nil || k.newest == nil {
		return s, err
	}
	s.ruleOnly = len(res.RuleOnly)
	if res.Tree == k.base {
		return s, nil
	}
	if s.changes, err = r.each(k.base, res); err != nil {
		return s, err
	}
	if res.Base == k.base || !res.Base.IsZero() && (res.Base == k.newest.Before || res.Base == k.newest.After) {
		// The cache was at this record's tree: it knows what the rules alone did since.
		s.changes = withoutPaths(s.changes, res.RuleOnly)
	} else {
		rules, err := r.rulesAt(Point{Record: k.newest})
		if err == nil && !rules.IsZero() {
			var list []tree.Change
			if list, err = collected(s.changes); err == nil {
				list, s.ruleOnly, err = r.withoutRuleChanges(ctx, list, rules, tree.Hash{})
				s.changes = changesInMemory(list)
			}
		}
		if err != nil {
			return s, err
		}
	}
	s.changes = readable(s.changes, k.newest.Unrecorded, res.Unrecorded)
	return s, nil
}

// withoutRuleChanges drops the paths of a difference that joined the tree because
// the ignore files in the tree from ignored them, or left it because those of to do; a
// zero to is the tree as it is now, where such a path must still exist. It says how many.
func (r *Reader) withoutRuleChanges(ctx context.Context, changes []tree.Change, from, to tree.Hash) ([]tree.Change, int, error) {
	var joined, gone []tree.Path
	for _, c := range changes {
		switch {
		case c.Old == nil:
			joined = append(joined, asRulesSee(c.Path, c.New))
		case c.New == nil:
			gone = append(gone, asRulesSee(c.Path, c.Old))
		}
	}
	drop := map[tree.Path]bool{}
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
	changes = slices.DeleteFunc(changes, func(c tree.Change) bool { return (c.Old == nil || c.New == nil) && drop[c.Path] })
	return changes, all - len(changes), nil
}

// asRulesSee marks a directory, which rules may be for alone.
func asRulesSee(path tree.Path, e *tree.Entry) tree.Path {
	if e.Type == tree.Dir {
		return path + "/"
	}
	return path
}

// ignoredAt is ignoredThen for a stored tree, or for the tree as it is now: a path
// that is not there any more is then not ignored but gone.
func (r *Reader) ignoredAt(ctx context.Context, of tree.Hash, paths []tree.Path) (map[tree.Path]bool, error) {
	if !of.IsZero() {
		return r.ignoredThen(ctx, of, paths)
	}
	req, err := r.request(captureOptions{unlimited: true})
	if err != nil {
		return nil, err
	}
	req.Progress = nil
	out := map[tree.Path]bool{}
	answers, err := capture.Explain(ctx, req, paths)
	for _, a := range answers {
		out[a.Path] = a.Ignored && !a.Missing
	}
	return out, err
}

// withoutPaths are the changes but for those of paths, which are sorted.
func withoutPaths(changes changeSeq, paths []tree.Path) changeSeq {
	return withoutChanges(changes, func(c tree.Change) bool {
		_, found := slices.BinarySearch(paths, c.Path)
		return found
	})
}

// readable drops what one of two captures could not read: it is not known whether
// it changed.
func readable(changes changeSeq, unread ...[]tree.Path) changeSeq {
	lost := slices.Concat(unread...)
	return withoutChanges(changes, func(c tree.Change) bool { return len(lost) > 0 && c.Path.Within(lost...) })
}
