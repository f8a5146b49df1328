package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// The run of an isolated message changes nothing but its layer. Success publishes it, and only
// then is taken over what the routine left in its outbox and put into the inbox, which the
// record has. A failed attempt leaves nothing to put back, and one whose work cannot be
// published counts as failed: the next one has a record and a layer of its own, which begin
// with the tree as it is then. The drafts of attempts that were followed by another one are
// discarded when the message ends; their records stay.

// doIsolated has the routine do the message until its work is published or its attempts
// are spent.
func (q *job) doIsolated(ctx context.Context, d *dirs, res *Result, m *message.Message, found *message.Found) (*Result, error) {
	for {
		began := time.Now()
		run, err := q.runIsolated(ctx, d, m, found)
		if rerr := q.backAtQueue(d); rerr != nil {
			return nil, errors.Join(err, rerr)
		}
		if bad, ok := errors.AsType[*message.Error](err); ok {
			return q.reject(d, res, bad)
		}
		if waits := new(*recorder.WaitError); errors.As(err, waits) {
			return nil, q.waitsUnbegun(*waits, began)
		}
		if err != nil {
			return q.notBegun(d, res, err)
		}
		res.Run = run
		q.ran(res, found)
		if err := q.list.look(d.inbox); err != nil {
			return nil, err
		}
		ended, err := q.settle(ctx, d, res)
		if isStuck(err) {
			q.list.noteOwnChange(d.inbox, "")
			return nil, err
		}
		if ended != nil || err != nil {
			q.list.noteOwnChange(d.inbox, res.Name)
			return ended, err
		}
		q.list.noteOwnChange(d.inbox, "")
		if err := q.follow(d); err != nil {
			return nil, err
		}
		m.Name, res.Name = q.u.Name, q.u.Name
		if err := q.beginRun(m.ID); err != nil {
			return nil, err
		}
		if err := q.stillThere(d); err != nil {
			return nil, err
		}
	}
}

// runIsolated has the routine do the message in a layer. While it works others have the turn.
func (q *job) runIsolated(ctx context.Context, d *dirs, m *message.Message, found *message.Found) (*recorder.RunResult, error) {
	o := q.runOptions(d, m, found)
	o.Freed = func() {
		q.giveTurn()
		if q.working != nil {
			q.working()
		}
	}
	o.Back = q.takeTurn
	if q.u.Spent > 0 && q.u.Spent == o.Attempts-1 {
		q.turn.makeLast(q.number)
	}
	return q.rec.RunIsolated(ctx, o, recorder.IsolatedOptions{Queued: true})
}

// settle publishes what a run that has ended did, and gives the message its place. Where
// another attempt is to be made the result is nil. errGone: somebody has taken the message
// out of the inbox meanwhile.
func (q *job) settle(ctx context.Context, d *dirs, res *Result) (*Result, error) {
	if res.Run != nil && res.Run.Last.Interrupted != nil {
		return q.interrupted(d, res)
	}
	reason := failedAfter(q.u.Attempt)
	if res.Record.Status == history.StatusSucceeded {
		conflict, err := q.publish(ctx, d, res)
		if err != nil {
			return nil, err
		}
		if conflict == nil {
			return q.acceptIsolated(ctx, d, res)
		}
		reason = fmt.Sprintf("the work of attempt %d of %d could not be published: %s", q.u.Attempt, q.project().Config.MaxAttempts, conflictInWords(conflict))
	} else if res.Run != nil {
		reason = howItFailed(res.Run)
	} else if res.Record.Recovered != nil {
		reason = q.whyDead(res.Record, q.u.Attempt)
	}
	if err := q.wanted(d, res); err != nil {
		return nil, err
	}
	return q.attemptFailed(ctx, d, res, reason)
}

// publish brings the work of the run into the tree, once. conflict is why that cannot be.
func (q *job) publish(ctx context.Context, d *dirs, res *Result) (conflict, err error) {
	rec := res.Record
	if rec.Draft == nil || rec.Draft.State == history.DraftPublished {
		return nil, nil
	}
	if was, err := q.rec.WasPublished(rec); was || err != nil {
		if was && rec.Draft.State == history.DraftWaiting {
			q.note("%s: its work was published, and somebody has taken it back since; 'decree publish %s' brings it again", tree.Quote(res.Name), rec.ID)
		}
		return nil, err
	}
	if rec.Draft.State == history.DraftDiscarded {
		return errors.New("its draft was discarded"), nil
	}
	if err := q.wanted(d, res); err != nil {
		return nil, err
	}
	began := time.Now()
	out, err := q.rec.Publish(ctx, recorder.PublishOptions{Ref: rec.ID, Unasked: true})
	if waits := new(*recorder.WaitError); errors.As(err, waits) {
		return nil, q.waitsUnpublished(*waits, began)
	}
	q.goesOn()
	if kind := project.KindOf(err); err != nil && (kind == project.Refused || kind == project.Integrity) { // forgotten or damaged work stays so
		return err, nil
	}
	if err != nil {
		return nil, &project.Error{Kind: project.KindOf(err), Err: err, Advice: project.HintOf(err),
			State: fmt.Sprintf("message %s has succeeded, and its work is not in the tree yet; 'decree process' goes on with that", tree.Quote(res.Name))}
	}
	res.Published = out.Record
	for _, note := range out.Notes {
		q.note("%s: %s", tree.Quote(res.Name), note)
	}
	return nil, nil
}

// wanted gives the message up, with errGone, where somebody took its file out of the inbox:
// its routine sees another one.
func (q *job) wanted(d *dirs, res *Result) error {
	name, err := q.nowCalled(d)
	if name != "" || err != nil {
		return err
	}
	if as, err := q.nameIn(d.dead); err != nil {
		return err
	} else if as == "" {
		if err := q.tellUnwanted(d, res.Record); err != nil {
			return err
		}
	}
	q.s.over(q.u)
	if err := q.saveState(); err != nil {
		return err
	}
	return errGone
}

// tellUnwanted says that the message under way was deleted, or has another text now.
func (q *job) tellUnwanted(d *dirs, rec *history.Record) error {
	there, err := disk.Has(d.inbox, q.u.Name)
	if !there {
		q.tellCancelled(rec)
		return err
	}
	q.note("%s was changed in the inbox while it was done, and is done as it is now; what its earlier text did is not in the tree: record %s, text .decree/runs/%s/%s",
		tree.Quote(q.u.Name), rec.ID, rec.ID, messageFile)
	return err
}

// interrupted has a message wait whose run a signal has ended. Its draft waits too.
func (q *job) interrupted(d *dirs, res *Result) (*Result, error) {
	if err := q.staysInInbox(d, res); err != nil {
		return nil, err
	}
	res.Outcome, res.Reason = Interrupted, "stopped by "+res.Run.Last.Interrupted.String()
	if res.Place != "" {
		q.s.comeFirst(res.Place)
	}
	return res, q.over(res)
}

// attemptFailed counts the attempt that the record of res made: the message is dead, or
// another attempt is to be made.
func (q *job) attemptFailed(ctx context.Context, d *dirs, res *Result, reason string) (*Result, error) {
	rec, most := res.Record, q.project().Config.MaxAttempts
	spent := q.spentBy(rec)
	notStarted := cannotExecute(rec) || res.Run != nil && res.Run.Last.NotStarted != nil
	if spent < most && !notStarted {
		q.note("%s: attempt %d of %d has failed (%s); the next one begins with the tree as it is now", tree.Quote(res.Name), spent, most, firstLine(reason))
		return nil, q.spend(rec.ID, spent, fmt.Sprintf("Attempt %d, record %s: %s", spent, rec.ID, reason))
	}
	if rec.Draft.Waits() {
		if err := q.discardEarlier(ctx); err != nil {
			return nil, err
		}
	}
	return q.dead(d, res, reason, rec)
}

// firstLine is a reason in one line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// acceptIsolated ends a message whose work is published. Each step can be repeated.
func (q *job) acceptIsolated(ctx context.Context, d *dirs, res *Result) (*Result, error) {
	tries, err := q.earlierTries(res.Record)
	if err != nil {
		return nil, err
	}
	q.u.Earlier = slices.Concat(q.u.Earlier, tries)
	if err := q.discardEarlier(ctx); err != nil {
		return nil, err
	}
	var joined []Pending
	if res.Run == nil { // by a dead process, which may have begun with this
		came, err := q.cameUntilDeath(d)
		if err != nil {
			return nil, err
		}
		joined = slices.DeleteFunc(came, func(p Pending) bool { return !q.ofChain(p.Name) })
	}
	return q.accept(d, res, joined)
}

// earlierTries are the drafts of the runs that the message of rec had before it was dead, or interrupted, and then tried again.
func (q *job) earlierTries(rec *history.Record) (ids []string, err error) {
	drafts, err := q.rec.WaitingDrafts()
	for _, draft := range drafts {
		if draft.ID == rec.ID || slices.Contains(q.u.Earlier, draft.ID) {
			continue
		}
		if f, err := q.rec.History().OpenFile(draft.ID, messageFile); err == nil { // else it is no message's
			data, rerr := io.ReadAll(f)
			f.Close()
			if rerr == nil && message.IDOf(q.u.Name, data) == q.u.ID {
				ids = append(ids, draft.ID)
			}
		}
	}
	if len(ids) > 0 {
		q.note("%s: done, and so the drafts of its earlier tries are given up; 'decree diff ID' shows each: %s", tree.Quote(q.u.Name), strings.Join(ids, ", "))
	}
	return ids, err
}

// discardEarlier gives up the drafts of the attempts before the last one. One whose layer has what nothing else has, as commits
// of its run's or of a person who has entered it, stays and is named.
func (q *job) discardEarlier(ctx context.Context) error {
	for _, id := range q.u.Earlier {
		rec, err := q.rec.History().Get(id)
		if err != nil || !rec.Draft.Waits() {
			continue //nolint:nilerr // it was pruned
		}
		lost := ""
		_, err = q.rec.Discard(ctx, recorder.DiscardOptions{Refs: []string{id}, Confirm: func(list []recorder.Discarded) (bool, error) {
			lost = list[0].Lost()
			return lost == "", nil
		}})
		if lost != "" {
			q.note("%s: the draft of an earlier attempt stays: %s has %s; 'decree publish %s' or 'decree discard %s' ends it", tree.Quote(q.u.Name), id, lost, id, id)
			continue
		}
		if waits := new(*recorder.WaitError); errors.As(err, waits) {
			q.note("%s: the draft of an earlier attempt is not discarded: %v", tree.Quote(q.u.Name), err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// mostNamed is how many paths a reason names.
const mostNamed = 50

// conflictInWords says why work could not be published, with a line a path.
func conflictInWords(err error) string {
	var text strings.Builder
	text.WriteString(err.Error())
	var conflict *recorder.ConflictError
	if !errors.As(err, &conflict) {
		return text.String()
	}
	for _, it := range conflict.Items[:min(len(conflict.Items), mostNamed)] {
		fmt.Fprintf(&text, "\n- %s: %s", tree.Quote(it.Path), it.Reason)
	}
	if more := len(conflict.Items) - mostNamed; more > 0 {
		fmt.Fprintf(&text, "\n- and %d more", more)
	}
	return text.String()
}

// recoverIsolated ends or goes on with a message whose isolated run has ended or was
// recorded by a recovery. Nothing of it is in the tree that was not published.
func (q *job) recoverIsolated(ctx context.Context, d *dirs, res *Result) (*Result, bool, error) {
	if moved, err := q.alreadyDone(d); moved || err != nil {
		return nil, false, err
	}
	res, err := q.settle(ctx, d, res)
	if errors.Is(err, errGone) {
		return nil, false, nil
	}
	return res, res == nil && err == nil, err
}

// takenOver are the messages that the routine put into the inbox as it saw it, and that are
// its own: the follow-ups among them, and the others, which are messages like all.
func (q *job) takenOver(d *dirs, from disk.Dir) (follow []followUp, others []string, err error) {
	list, err := files(from)
	if err != nil {
		return nil, nil, err
	}
	began := q.whenBegun()
	var came []Pending
	for _, p := range list {
		isNew, err := q.isNew(d, from, p.Name, began)
		if err != nil {
			return nil, nil, err
		}
		if isNew {
			came = append(came, p)
		}
	}
	follow = q.followUps(from, came)
	for _, p := range came {
		if !slices.ContainsFunc(follow, func(f followUp) bool { return f.name == p.Name }) {
			others = append(others, p.Name)
		}
	}
	return follow, others, nil
}

// isNew says whether a message was not there when the run began, nor came from elsewhere while it worked. What has the text of one that
// did, and no id, may also be the routine's own, and that is told.
func (q *job) isNew(d *dirs, from disk.Dir, name string, began int64) (bool, error) {
	if name == q.u.Name {
		return false, nil
	}
	if waited, err := q.waitedBefore(d, from, name, began); waited || err != nil {
		return false, err
	}
	elsewhere, err := q.wasBegunBeside(from, name)
	if !elsewhere && err == nil {
		elsewhere, err = q.cameBeside(d, from, name, began)
	}
	if elsewhere && err == nil && idIn(from, name) == "" {
		q.note("%s, which the routine of %s wrote or only touched, says the same as one of that name that came meanwhile, and is not queued beside it; it is in .decree/runs/%s/%s",
			tree.Quote(name), tree.Quote(q.u.Name), q.u.Record, project.LayerInbox)
	}
	return !elsewhere && err == nil, err
}

// waitedBefore says whether from/name has the name of a message that waited when the run began, unless it was written after that had
// begun, and so had left the name. Of a full inbox the names of the running chain alone are noted: there what has begun since had
// waited, and of what still waits times tell.
func (q *job) waitedBefore(d *dirs, from disk.Dir, name string, began int64) (bool, error) {
	begun := slices.DeleteFunc(slices.Clone(q.u.Beside), func(b begunBeside) bool { return b.Name != name })
	full := q.u.Partly && !q.ofChain(name)
	if slices.Contains(q.u.Before, name) || full && len(begun) > 0 {
		after := func(b begunBeside) bool { return q.writtenSince(from, name, b.ID) }
		return idIn(from, name) != "" || !slices.ContainsFunc(begun, after), nil
	}
	if !full {
		return false, nil
	}
	info, err := d.inbox.Stat(name)
	return err == nil && info.Ctime < began, disk.UnlessMissing(err)
}

// openTakenOver opens the directory of a record in which takenOver looks; nil: there is none.
func (q *job) openTakenOver(id string) (disk.Dir, error) {
	run, err := q.rec.History().OpenRun(id)
	var dir disk.Dir
	if err == nil {
		defer run.Close()
		dir, err = disk.OpenPath(run, project.LayerInbox)
	}
	return dir, unlessNoFile(err)
}

// notDead takes the messages that from/name is, queued again by a routine in its layer, out of dead, where
// the layer's own move has left them. One that the routine wrote anew with the text of a dead one has no id, and is another message.
// The record has the text until the message waits.
func notDead(d *dirs, from disk.Dir, name string) error {
	self, err := from.Stat(name)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	list, err := files(d.dead)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.Size != self.Size && !isNumbered(p.Name, name) {
			continue
		}
		same, _, _, err := compareMessages(from, name, d.dead, p.Name)
		if err == nil && same {
			err = errors.Join(disk.UnlessMissing(d.dead.Remove(p.Name)), disk.UnlessMissing(d.dead.Remove(reasonOf(p.Name))), d.dead.Sync())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
