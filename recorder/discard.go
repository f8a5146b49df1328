package recorder

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"decree/history"
	"decree/layer"
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
	Confirm func([]Discarded) (bool, error)
}

// Discarded is a draft that is given up.
type Discarded struct {
	*history.Record
	Refs  []string // of git: branches and tags that its run made or moved, which its layer alone has
	layer bool     // it still had one
	// unrenewed: a command worked in the layer afterwards, and is not recorded.
	unrenewed bool
}

// Discard gives up drafts. Their records stay, their layers go.
func (r *Recorder) Discard(ctx context.Context, o DiscardOptions) ([]Discarded, error) {
	x, err := r.enterFor(ctx, "discard", besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	recs, free, err := r.toDiscard(ctx, o)
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
		if err := r.dropLayer(rec.Record, history.DraftDiscarded); err != nil {
			return nil, err
		}
	}
	return recs, nil
}

// toDiscard finds the drafts, and holds their layers until free is called. One in whose
// layer somebody works is refused where it was named, else left out with a note.
func (r *Recorder) toDiscard(ctx context.Context, o DiscardOptions) (recs []Discarded, free func(), err error) {
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
		l, unlock, err := r.holdLayer(rec)
		switch {
		case err == nil:
			held, recs = append(held, unlock), append(recs, Discarded{rec, r.refsOf(ctx, rec, l), l != nil, unrenewed(l)})
		case len(o.Refs) > 0 || project.KindOf(err) != project.Refused:
			return nil, free, err
		default:
			r.note("left out: %v", err)
		}
	}
	return recs, free, nil
}

// refsOf are the branches, tags and stashes that a draft's layer alone has; none where that cannot be
// found out, as for a message only.
func (r *Recorder) refsOf(ctx context.Context, rec *history.Record, l *layer.Layer) (names []string) {
	if rec.Draft.Git == 0 || l == nil {
		return nil
	}
	work, err := r.gitWorkOf(ctx, l)
	if err != nil {
		return nil
	}
	for _, ref := range work.refs {
		if ref.is != "" && ref.name != "HEAD" {
			names = append(names, ref.name)
		}
	}
	if slices.Contains(work.kept, path.Join(gitDir, stashRef)) {
		names = append(names, stashRef)
	}
	return names
}

// Lost says what of a discarded draft no record has; "" for nothing.
func (d Discarded) Lost() string {
	if !d.layer {
		return ""
	}
	var lost []string
	if d.Draft.Git > 0 {
		text := filesIn(d.Draft.Git) + " in .git"
		if len(d.Refs) > 0 {
			text += " (" + some(d.Refs) + ")"
		}
		lost = append(lost, text)
	}
	inDecree, unrecorded := unrecordedOf(d.Record)
	if len(inDecree) > 0 {
		lost = append(lost, some(inDecree))
	}
	if len(unrecorded) > 0 {
		lost = append(lost, fmt.Sprintf("what could not be recorded (%s)", some(unrecorded)))
	}
	if d.unrenewed {
		lost = append(lost, "what 'decree enter' was last used for")
	}
	if len(lost) == 0 {
		return ""
	}
	return strings.Join(lost, " and ") + ", which nothing but its layer has"
}

// confirmDiscard asks, as work that was never published goes for good.
func confirmDiscard(recs []Discarded, o DiscardOptions) error {
	if o.Yes {
		return nil
	}
	what := "this gives up work that was never published"
	for _, rec := range recs {
		if lost := rec.Lost(); lost != "" {
			what += fmt.Sprintf(", draft %s with %s", draftName(rec.Record), lost)
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
