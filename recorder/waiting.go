package recorder

import (
	"context"
	"errors"
	"path"

	"decree/disk"
	"decree/history"
	"decree/plan"
)

// A WaitingDraft is a draft of which something is left to publish, and what its publish
// would meet now.
type WaitingDraft struct {
	*history.Record
	Conflicts []plan.Item // paths that a publish would refuse
	Unknown   error       // why the conflicts are not known; nil: they are
	Layer     int64       // bytes; -1: there is none any more
}

// WaitingDraftsNow are the drafts that wait, newest first, compared with the tree as it is.
func (r *Reader) WaitingDraftsNow(ctx context.Context) ([]WaitingDraft, error) {
	waiting, err := r.WaitingDrafts()
	if err != nil {
		return nil, err
	}
	out := make([]WaitingDraft, len(waiting))
	for i, rec := range waiting {
		d := WaitingDraft{Record: rec}
		d.Conflicts, d.Unknown = r.conflictsOf(ctx, rec)
		if errors.Is(d.Unknown, context.Canceled) {
			return nil, d.Unknown
		}
		if d.Layer, err = r.layersSize(rec.ID); err != nil {
			return nil, err
		}
		out[i] = d
	}
	return out, nil
}

// conflictsOf is what stands in the way of a publish of a whole draft.
func (r *Reader) conflictsOf(ctx context.Context, rec *history.Record) ([]plan.Item, error) {
	t := &selection{records: []*history.Record{rec}}
	defer t.done()
	src, err := t.source(ctx, r.history, rec, r.store)
	if err != nil {
		return nil, err
	}
	t.sources = []*plan.Source{src}
	p, _, err := r.planDraft(ctx, t, PublishOptions{})
	if err != nil {
		return nil, err
	}
	return p.Conflicts(), nil
}

// layersSize is the sum of the files of a record's layer, in bytes, or of all with "" for id;
// -1 where there is none.
func (r *Reader) layersSize(id string) (int64, error) {
	dir, err := disk.OpenPath(r.project.Store, path.Join(layersDir, id))
	if isMissing(err) || disk.OtherKind(err) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	return (&measure{}).below(dir)
}
