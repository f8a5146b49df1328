package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// The line of a run in the history decides what becomes of its message. Where decree died before
// it had moved the message, that lies in the inbox as if it waited, and the next process ends it:
// a person's command must not make another one of it meanwhile.

// End notes the end of a message whose run has decided it, as the next process would: before it is cancelled where the run
// has succeeded, before it is edited also where that has failed. The result is nil where there was nothing to note.
func (q *Queue) End(ctx context.Context, wait time.Duration, name string, editing bool) (*Result, error) {
	if refuseUnderWay(q.project(), q.o.Host, name) != nil {
		return nil, nil // its own process notes it
	}
	inbox, err := openInbox(q.project().Dir, "")
	if err != nil {
		return nil, disk.UnlessMissingOrOther(err)
	}
	defer inbox.Close()
	u, rec, err := decidingRecord(q.o.Recorder, name, inbox, name)
	if rec == nil || err != nil || !editing && !succeeded(rec) {
		return nil, err
	}
	return q.job(q.o.Recorder, q.o.Signals).take(ctx, wait, Pick{Name: u.Name, Ended: true})
}

// EndDead notes the end of a message that lies in dead as name, where decree died before it had done so: else, tried again,
// the message would count as the one that has ended.
func (q *Queue) EndDead(ctx context.Context, wait time.Duration, name string) error {
	dead, err := openInbox(q.project().Dir, deadName)
	if err != nil {
		return unlessNoFile(err)
	}
	defer dead.Close()
	s, err := readState(q.project().Store)
	if err != nil {
		return err
	}
	for _, u := range s.UnderWay {
		if same, err := u.isAt(dead, name); err != nil {
			return err
		} else if same && refuseUnderWay(q.project(), q.o.Host, u.Name) == nil {
			_, err := q.job(q.o.Recorder, q.o.Signals).take(ctx, wait, Pick{Name: u.Name, Ended: true})
			return err
		}
	}
	return nil
}

// EndAll deals with each message that a dead process left under way, as the next process would, and begins none: before
// what is known of them is replaced. Of those that it could not deal with, in the order of their names, it returns why.
func (q *Queue) EndAll(ctx context.Context, wait time.Duration) (left []error, err error) {
	s, err := readState(q.project().Store)
	if err != nil {
		return nil, err
	}
	for _, u := range s.UnderWay {
		if refuseUnderWay(q.project(), q.o.Host, u.Name) != nil {
			continue // its own process goes on with it
		}
		if _, err := q.job(q.o.Recorder, q.o.Signals).take(ctx, wait, Pick{Name: u.Name, Ended: true}); err != nil {
			left = append(left, fmt.Errorf("message %s: %w", tree.Quote(u.Name), err))
		}
	}
	return left, nil
}

// decidingRecord is the message called name, which lies in dir as as and is not being done, with the record that has decided what becomes
// of it; nil: it is to be done, or done again.
func decidingRecord(rec *recorder.Recorder, name string, dir disk.Dir, as string) (*underWay, *history.Record, error) {
	s, err := readState(rec.Project().Store)
	if err != nil {
		return nil, nil, err
	}
	rec.History().CatchUp() // the run may have ended while a person was in the editor
	for _, u := range s.UnderWay {
		if u.Record == "" {
			continue
		}
		if is, err := u.isCalled(name, dir, as); err != nil {
			return nil, nil, err
		} else if is {
			of, err := decidedBy(rec, u)
			return u, of, err
		}
	}
	return nil, nil, nil
}

// decidedBy is the record that has decided what becomes of a message under way.
func decidedBy(rec *recorder.Recorder, u *underWay) (*history.Record, error) {
	of, err := recordOf(rec.Reader, u)
	switch {
	case of == nil || err != nil || of.Status == history.StatusOpen:
		return nil, err
	case of.Isolated == "":
		if succeeded(of) || of.Recovered == nil {
			return of, nil
		}
		return nil, nil
	case !succeeded(of):
		return nil, nil
	}
	if brought, err := isBrought(rec.Reader, of); !brought || err != nil {
		return nil, err
	}
	return of, nil
}

// recordOf is the record of the last run of a message under way; nil: it had not begun.
func recordOf(rec *recorder.Reader, u *underWay) (*history.Record, error) {
	of, err := rec.History().Get(u.Record)
	if project.KindOf(err) == project.NotFound || isMissing(err) || err == nil && !isOf(of, u.Name) {
		return nil, nil
	}
	return of, err
}

// isBrought says whether the work of an isolated run is, or was, in the tree, or a dead process was about to bring
// it there.
func isBrought(rec *recorder.Reader, of *history.Record) (bool, error) {
	if of.Draft == nil || of.Draft.State == history.DraftPublished {
		return true, nil
	}
	open, _, err := rec.History().ListOpen()
	if err != nil {
		return false, err
	}
	for _, o := range open {
		if o.Record.Reason == history.Publish && o.Record.Parent == of.ID {
			return true, nil
		}
	}
	return rec.WasPublished(of)
}

// refuseEnded is the refusal to touch a message that a record has decided: what would be done to it comes too late. One
// that has failed may be cancelled.
func refuseEnded(rec *recorder.Recorder, name string, dir disk.Dir, as string, editing bool) error {
	_, of, err := decidingRecord(rec, name, dir, as)
	if of == nil || err != nil {
		return err
	}
	if succeeded(of) {
		return DoneError(name, of.ID).Unchanged()
	}
	if !editing {
		return nil
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("%s has failed: record %s", name, of.ID),
		Advice: "'decree process' puts it among the dead, where it can be edited: 'decree inbox --dead'"}
}

// DoneError is the refusal to cancel or edit a message that the run id has done.
func DoneError(name, id string) *project.Error {
	return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("%s is done: record %s", strings.TrimSuffix(name, suffix), id),
		Advice: fmt.Sprintf("'decree revert %s' takes back what it did; 'decree send' writes a new message", id)}
}
