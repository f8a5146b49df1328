package recorder

import (
	"context"
	"io"

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

// writeChanges writes changes as a changes.diff. Contents come from the store,
// never from the tree, so the diff cannot differ from the hashes that it names.
// What is read stays in cache; without one, only as long as it is needed.
func (r *Recorder) writeChanges(ctx context.Context, w io.Writer, changes []tree.Change, cache *contentCache) (patch.Stat, error) {
	return r.writeMarked(ctx, w, changes, nil, cache)
}

// writeMarked is writeChanges with a mark on the changes of shared.
func (r *Recorder) writeMarked(ctx context.Context, w io.Writer, changes []tree.Change, shared map[tree.Path]bool, cache *contentCache) (patch.Stat, error) {
	cfg := r.project.Config
	limits := patch.Limits{InlineBinary: cfg.InlineBinary, InlineText: cfg.InlineText}
	if r.given { // there is hardly room for what the store has not got yet
		limits.InlineBinary = 1
	}
	pw := patch.NewWriter(w, limits)
	near := cache
	for i, c := range changes {
		if i%fetched == 0 {
			r.progress(Progress{Phase: "comparing", Done: int64(i), Total: int64(len(changes))})
			if cache == nil {
				near = newContentCache()
			}
			near.fetch(ctx, r.store, changes[i:min(i+fetched, len(changes))])
		}
		err := pw.Write(ctx, patch.Change{
			Path: c.Path, Old: c.Old, New: c.New, OldContent: r.content(c.Old, near), NewContent: r.content(c.New, near), Shared: shared[c.Path],
		})
		if err != nil {
			return patch.Stat{}, err
		}
	}
	err := pw.Close()
	return pw.Stat(), err
}

func (r *Recorder) content(e *tree.Entry, cache *contentCache) patch.Content {
	if e == nil || e.Type != tree.Regular {
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
