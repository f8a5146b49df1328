package recorder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"decree/history"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// What is done inside a run is a part of it: where the run's changes are taken back, so
// are those of the records that were made inside it, and they become undone by the run.

// partOf are the records inside the run rec, also inside those, oldest first.
func (r *Recorder) partOf(rec *history.Record) (inner []*history.Record, err error) {
	var since []*history.Record // newest first; what is inside a record has ended before it
	err = r.history.Since(rec, func(o *history.Record) {
		if o.Inside != "" {
			since = append(since, o)
		}
	})
	outer := []string{rec.ID}
	for _, o := range since {
		if slices.Contains(outer, o.Inside) {
			outer, inner = append(outer, o.ID), append(inner, o)
		}
	}
	slices.Reverse(inner)
	return inner, err
}

// Parts are the records inside the run rec, also inside those, each after the one that it is inside of.
func (r *Recorder) Parts(rec *history.Record) ([]*history.Record, error) {
	inner, err := r.partOf(rec)
	slices.Reverse(inner)
	return inner, err
}

// liveParts are the runs inside the run id, also inside those, whose commands work.
func (r *Recorder) liveParts(id string) (live []string, err error) {
	leases, err := r.project.Leases()
	if err != nil || len(leases) < 2 {
		return nil, err
	}
	r.history.Refresh()
	for _, l := range leases {
		rec, err := r.history.Get(l.ID)
		for err == nil && rec.Inside != "" && rec.Inside != id {
			rec, err = r.history.Get(rec.Inside)
		}
		switch {
		case err == nil && rec.Inside == id:
			live = append(live, l.ID)
		case err != nil && project.KindOf(err) != project.NotFound: // else it has just ended, and was pruned
			return nil, fmt.Errorf("whether run %s is a part of this one cannot be told: %w", l.ID, err)
		}
	}
	return live, nil
}

// recoverInside records what a decree left unfinished that died in the run's command; what still works of that one's command ends, as the
// rest of this one's does. Later the put-back, or the work of a further attempt, would count as the dead one's.
func (u *run) recoverInside(ctx context.Context) error {
	open, _, err := u.r.unfinished(nil)
	if err != nil || len(open) == 0 {
		return err
	}
	began := u.x.activity
	defer func() { u.x.activity = began }()
	if u.x.activity, err = u.r.currentActivity(); err == nil {
		err = u.x.activity.addTurns(u.r)
	}
	ours := map[string]bool{}
	isOurs := func(now activity, o *history.Opened) bool {
		ours[o.Record.ID] = u.isOrphan(now, o)
		return ours[o.Record.ID]
	}
	open = slices.DeleteFunc(open, func(o *history.Opened) bool { return !isOurs(u.x.activity, o) })
	if err == nil && len(open) == 0 {
		return nil
	}
	c := &recovery{r: u.r, x: u.x}
	if err == nil {
		err = c.allDead(open, true, isOurs)
	}
	done := c.done
	if err == nil {
		done, err = u.r.recover(ctx, u.x, false)
		done = append(c.done, done...)
	}
	for _, d := range done {
		if d.Record == nil || !ours[d.Record.ID] {
			u.say("%s", d.What)
			continue
		}
		u.say("%s %s, inside this run, was interrupted: its decree died", noun(d.Record), d.Record.ID) // whether its changes stay is this run's to say
	}
	if err != nil {
		u.say("what was left unfinished inside this run is not recorded yet: %v", err)
	}
	return nil
}

// isOrphan says whether an open record was left by the run's command: it is inside the run, and not inside another part of it that still works.
func (u *run) isOrphan(now activity, o *history.Opened) bool {
	u.r.history.Refresh()
	id := o.Record.Inside
	for id != "" && id != u.rec.ID {
		outer, err := u.r.history.Get(id)
		if err != nil || now.live(id) {
			return false
		}
		id = outer.Inside
	}
	return id != ""
}

// takenBack are the effects of putting the run rec back: the records inside it that
// stand are undone by it.
func (r *Recorder) takenBack(rec *history.Record) (list []history.StatusEffect, err error) {
	inner, err := r.partOf(rec)
	for _, o := range inner {
		if isInTree(o) {
			list = append(list, history.StatusEffect{ID: o.ID, Status: history.StatusUndone, UndoneBy: rec.ID})
		}
	}
	return r.withDrafts(list), err
}

// messagesOf are the names of the messages whose runs, or the publishes of their work, are undone by effects.
func (r *Recorder) messagesOf(effects []history.StatusEffect) (names []string) {
	for _, e := range effects {
		rec, err := r.history.Get(e.ID)
		if err == nil && rec.Reason == history.Publish && rec.Parent != "" {
			rec, err = r.history.Get(rec.Parent)
		}
		if err != nil || rec.Reason != history.Run || e.Status != history.StatusUndone {
			continue
		}
		if name := messageName(rec); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// isInTree says whether a record has changed the tree, and was not undone. A checkpoint
// is no change, a draft none of the tree.
func isInTree(rec *history.Record) bool {
	switch rec.Status {
	case history.StatusSucceeded, history.StatusFailed, history.StatusInterrupted:
		return !rec.DiffSHA256.IsZero() && rec.Isolated == ""
	}
	return false
}

// partsUndone adds to an action that takes rec back that it undoes what was made inside it.
// Statuses are a help to the reader: a history that cannot be read holds up no move.
func (r *Recorder) partsUndone(rec *history.Record, a *action) {
	inner, _ := r.partOf(rec)
	for _, o := range inner {
		if isInTree(o) {
			a.effect(o, history.StatusEffect{ID: o.ID, Status: history.StatusUndone})
		}
	}
}

// partsAgain adds to an action that brings rec again that what was made inside it, and undone
// by the record called by, stands.
func (r *Recorder) partsAgain(rec *history.Record, by string, a *action) {
	inner, _ := r.partOf(rec)
	for _, o := range inner {
		if o.Status == history.StatusUndone && o.UndoneBy == by {
			a.effect(o, history.StatusEffect{ID: o.ID, Status: r.statusBefore(o)})
		}
	}
}

// withoutParts leaves out the records that were made inside others of them: taking those
// back, or bringing them, does it with all that is a part of them.
func withoutParts(h *history.History, recs []*history.Record) []*history.Record {
	ids := map[string]bool{}
	for _, rec := range recs {
		ids[rec.ID] = true
	}
	part := func(rec *history.Record) bool {
		for rec.Inside != "" && !ids[rec.Inside] {
			outer, err := h.Get(rec.Inside)
			if err != nil {
				return false // it was pruned
			}
			rec = outer
		}
		return rec.Inside != ""
	}
	return slices.DeleteFunc(recs, part)
}

// maxPutBackTries is how often the tree is looked at again for a put-back in a tree that
// others go on changing.
const maxPutBackTries = 3

// putBack takes the tree back to the manifest. Beside a run that is a part of another
// one the other's processes go on: what they have changed on its paths since its command
// ended is looked at again, so that it is stored, and named, before it is put back too.
// Nothing is put back under a run that began inside this one and outlives its command: that
// run would go on, and could end by bringing back what was taken away.
func (u *run) putBack(ctx context.Context, which string) error {
	parts, err := u.r.liveParts(u.rec.ID)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("run %s, which began inside this one, still works in the tree and is left alone; once that has ended, 'decree revert %s' puts back", some(parts), u.rec.ID)}
	}
	err = u.putBackOnce(ctx, which)
	for n := 0; n < maxPutBackTries && u.rec.Inside != "" && changedMeanwhile(err); n++ {
		was := u.changes
		if err := u.examine(ctx, u.rec.Attempts); err != nil {
			return err
		}
		if paths := differingPaths(was, u.changes); len(paths) > 0 {
			u.say("changed by others after the command had ended; stored, and put back too: %s", some(paths))
		}
		err = u.putBackOnce(ctx, which)
	}
	return err
}

// changedMeanwhile says whether nothing was moved because the tree is not as it was
// looked at.
func changedMeanwhile(err error) bool {
	return (errors.As(err, new(*ConflictError)) || errors.As(err, new(*worktree.ConflictError))) && !halfMoved(err)
}

// differingPaths are the paths that have different new entries in two lists of changes from the same tree.
func differingPaths(was, now []tree.Change) (paths []tree.Path) {
	sides := map[tree.Path]*tree.Entry{}
	for _, c := range was {
		sides[c.Path] = c.New
	}
	for _, c := range now {
		if e, both := sides[c.Path]; !both || !tree.SameEntry(e, c.New) {
			paths = append(paths, c.Path)
		}
		delete(sides, c.Path)
	}
	paths = slices.AppendSeq(paths, maps.Keys(sides)) // they are back at what they were
	slices.Sort(paths)
	return paths
}
