package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"decree/capture"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// UnrecordedBack is nil where all that the record of a run could not hold after it, as it was unreadable or too large then, is in the tree as
// before the run, was restored to that since, whatever became of it then, or is ignored today; else it is a *WaitError. No revert takes such
// paths back, whatever the record's status says, and decree cannot tell what the run left of them from what somebody has edited since: that
// is a person's to decide.
func (r *Reader) UnrecordedBack(ctx context.Context, rec *history.Record) error {
	if len(rec.Unrecorded) == 0 {
		return nil
	}
	left, err := r.unrecordedLeft(ctx, rec)
	if rule := new(*capture.RuleError); errors.As(err, rule) { // the run may have made that unreadable, too
		return &WaitError{&project.Error{Kind: project.KindOf(err), Err: err, Advice: "let it be read (chmod u+r)"}}
	}
	if err != nil || len(left) == 0 {
		return err
	}
	return &WaitError{&project.Error{Kind: project.Refused,
		Msg:    fmt.Sprintf("not as before run %s, whose record does not hold what it left there (unreadable then, or larger than capture.max_file): %s", rec.ID, some(left)),
		Advice: fmt.Sprintf("'decree restore %s PATH...' brings what was there before it, once a file that is too large is moved away; what is ignored in .decreeignore stays as it is", rec.ID)}}
}

// unrecordedLeft are the paths that keep UnrecordedBack from being nil.
func (r *Reader) unrecordedLeft(ctx context.Context, rec *history.Record) ([]tree.Path, error) {
	req, err := r.request(captureOptions{phase: "comparing", skipUnreadable: true, unlimited: true})
	if err != nil {
		return nil, err
	}
	res, err := r.captureNow(ctx, req)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	changes, err := r.apart(rec, rec.Before, res)
	if err != nil {
		return nil, err
	}
	changes = slices.DeleteFunc(changes, func(c tree.Change) bool { return !c.Path.Within(rec.Unrecorded...) })
	if changes, _, err = r.withoutRuleChanges(ctx, changes, rec.Before, tree.Hash{}); err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(res.Unrecorded, func(p tree.Path) bool { return !p.Within(rec.Unrecorded...) })
	for _, c := range changes {
		left = append(left, c.Path)
	}
	return r.notRestored(rec, unrecordedPaths(left, nil))
}

// notRestored are the paths that no restore to the state before rec has brought since.
func (r *Reader) notRestored(rec *history.Record, left []tree.Path) ([]tree.Path, error) {
	var failed error
	err := r.history.Newest(func(since *history.Record) bool {
		if since.Reason == history.Restore && since.Parent == rec.ID && since.Status == history.StatusSucceeded {
			left = slices.DeleteFunc(left, func(p tree.Path) bool {
				touched, err := r.history.Touches(since, p)
				failed = errors.Join(failed, err)
				return touched
			})
		}
		return since.ID != rec.ID && len(left) > 0 && failed == nil
	})
	return left, errors.Join(err, failed)
}
