package recorder

import (
	"cmp"
	"context"
	"io"
	"iter"

	"decree/history"
	"decree/patch"
	"decree/tree"
)

// opener reads objects; the store does.
type opener interface {
	Open(tree.Hash) (io.ReadCloser, int64, error)
}

// stored is a patch.Content whose bytes are in the store.
type stored struct {
	objects opener
	hash    tree.Hash
}

// Open reads the object; its hash is checked at the end.
func (s stored) Open() (io.ReadCloser, error) {
	rc, _, err := s.objects.Open(s.hash)
	return rc, err
}

// fetched is for how many changes contents are read ahead.
const fetched = 256

// changeSeq is what changed, one after the other in byte order of the paths. An error ends
// it; it can be read more than once.
type changeSeq = iter.Seq2[tree.Change, error]

// changesInMemory is a changeSeq of a list.
func changesInMemory(changes []tree.Change) changeSeq {
	return func(yield func(tree.Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// collected are changes, brought into memory.
func collected(changes changeSeq) (list []tree.Change, err error) {
	for c, err := range changes {
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// anyOf says whether there is any change.
func anyOf(changes changeSeq) (bool, error) {
	for _, err := range changes {
		return err == nil, err
	}
	return false, nil
}

// withoutChanges leaves out the changes that drop names.
func withoutChanges(changes changeSeq, drop func(tree.Change) bool) changeSeq {
	return func(yield func(tree.Change, error) bool) {
		for c, err := range changes {
			if (err != nil || !drop(c)) && !yield(c, err) {
				return
			}
		}
	}
}

// writeChanges writes changes as a changes.diff, with a mark on those of shared. Contents come
// from the store, never from the tree, so the diff cannot differ from the hashes that it names.
// What is read stays in cache; without one, only as long as it is needed.
func (r *Recorder) writeChanges(ctx context.Context, w io.Writer, changes changeSeq, shared map[tree.Path]bool, cache *contentCache) (patch.Stat, error) {
	pw := r.patchWriter(w)
	some := make([]tree.Change, 0, fetched)
	done := int64(0)
	flush := func() error {
		r.progress(Progress{Phase: "comparing", Done: done})
		err := r.writeSome(ctx, pw, some, shared, cache)
		done, some = done+int64(len(some)), some[:0]
		return err
	}
	for c, err := range changes {
		if some = append(some, c); err == nil && len(some) == fetched {
			err = flush()
		}
		if err != nil {
			return patch.Stat{}, err
		}
	}
	err := cmp.Or(flush(), pw.Close())
	return pw.Stat(), err
}

func (r *Recorder) patchWriter(w io.Writer) *patch.Writer {
	cfg := r.project.Config
	limits := patch.Limits{InlineBinary: cfg.InlineBinary, InlineText: cfg.InlineText}
	if r.reserveGiven { // there is hardly room for what the store has not got yet
		limits.InlineBinary = 1
	}
	return patch.NewWriter(w, limits)
}

// writeSome writes the next changes, of which so many contents are in memory at once. Without
// a cache they are let go of then.
func (r *Recorder) writeSome(ctx context.Context, pw *patch.Writer, changes []tree.Change, shared map[tree.Path]bool, cache *contentCache) error {
	if cache == nil {
		cache = newContentCache()
	}
	cache.fetch(ctx, r.store, changes)
	for _, c := range changes {
		err := pw.Write(ctx, patch.Change{
			Path: c.Path, Old: c.Old, New: c.New, OldContent: r.content(c.Old, cache), NewContent: r.content(c.New, cache), Shared: shared[c.Path],
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorder) content(e *tree.Entry, cache *contentCache) patch.Content {
	if !e.IsFile() {
		return nil
	}
	if data, ok := cache.get(e.SHA256); ok {
		return patch.Bytes(data)
	}
	return stored{r.store, e.SHA256}
}

// counts are a diff's figures as run.json has them.
func counts(s patch.Stat) history.Changes {
	return history.Changes{
		Created: s.Created, Modified: s.Modified, Deleted: s.Deleted,
		AddedLines: int(s.AddedLines), RemovedLines: int(s.RemovedLines),
	}
}
