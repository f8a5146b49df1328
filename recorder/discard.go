package recorder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"decree/history"
	"decree/project"
)

// DiscardOptions say which drafts are given up: those of Refs, or, without any, those that
// did not succeed, or are older than an age, or both.
type DiscardOptions struct {
	Refs   []string
	Failed bool
	Older  time.Duration // since the run's end; 0: of any age
	Yes    bool
	// Confirm asks whether the drafts are to be given up; nil: there is nobody to ask.
	Confirm func([]*history.Record) (bool, error)
}

// Discard gives up drafts. Their records stay, their layers go.
func (r *Recorder) Discard(ctx context.Context, o DiscardOptions) ([]*history.Record, error) {
	x, err := r.enterFor(ctx, "discard", besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	recs, free, err := r.toDiscard(o)
	defer free()
	if err != nil || len(recs) == 0 {
		return nil, err
	}
	if err := confirmDiscard(recs, o); err != nil {
		return nil, err
	}
	ids := make([]string, len(recs))
	for i, rec := range recs {
		ids[i] = rec.ID
	}
	if err := r.history.SetDrafts(ids, history.DraftDiscarded); err != nil {
		return nil, err
	}
	for _, rec := range recs {
		if err := r.dropLayer(rec, history.DraftDiscarded); err != nil {
			return nil, err
		}
	}
	return recs, nil
}

// toDiscard finds the drafts, and holds their layers until free is called. One in whose
// layer somebody works is refused where it was named, else left out with a note.
func (r *Recorder) toDiscard(o DiscardOptions) (recs []*history.Record, free func(), err error) {
	var held []func()
	free = func() {
		for _, f := range held {
			f()
		}
	}
	var wanted []*history.Record
	for _, ref := range o.Refs {
		rec, err := r.draft(ref)
		if err != nil {
			return nil, free, err
		}
		if !slices.ContainsFunc(wanted, func(w *history.Record) bool { return w.ID == rec.ID }) {
			wanted = append(wanted, rec)
		}
	}
	if len(o.Refs) == 0 {
		if wanted, err = r.WaitingDrafts(); err != nil {
			return nil, free, err
		}
		now := r.opt.Clock()
		wanted = slices.DeleteFunc(wanted, func(rec *history.Record) bool {
			return o.Failed && rec.Status == history.StatusSucceeded || o.Older > 0 && now.Sub(rec.Ended) <= o.Older
		})
	}
	for _, rec := range wanted {
		_, unlock, err := r.holdLayer(rec)
		switch {
		case err == nil:
			held, recs = append(held, unlock), append(recs, rec)
		case len(o.Refs) > 0 || project.KindOf(err) != project.Refused:
			return nil, free, err
		default:
			r.note("left out: %v", err)
		}
	}
	return recs, free, nil
}

// confirmDiscard asks, as work that was never published goes for good.
func confirmDiscard(recs []*history.Record, o DiscardOptions) error {
	if o.Yes {
		return nil
	}
	what := "this gives up work that was never published"
	for _, rec := range recs {
		if n := rec.Draft.Git; n > 0 {
			what += fmt.Sprintf(", with %s in .git that nothing but the layer of draft %s has", filesIn(n), draftName(rec))
		}
	}
	refused := &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: what + ", and there is no terminal to ask on", Advice: "repeat it with --yes"}
	if o.Confirm == nil {
		return refused
	}
	yes, err := o.Confirm(recs)
	if err == nil && !yes {
		refused.Msg, refused.Advice = "not confirmed", ""
		err = refused
	}
	return err
}
