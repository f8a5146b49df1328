package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// A message whose routine has succeeded may have to wait with the publishing of its work, for what a person or another process
// has to end first: a file above capture.max_file, a draft in which somebody works. It keeps its place and all its attempts;
// the state says why it waits, others are done meanwhile, and the publishing is tried again: by each process once when it starts, and
// from then on as often as costs little.

// unpublishedError is the end of a try to publish.
type unpublishedError struct{ refusal *project.Error }

func (e *unpublishedError) Error() string { return e.refusal.Error() }
func (e *unpublishedError) Unwrap() error { return e.refusal }

// unpublished is what a process knows of such a message.
type unpublished struct {
	name string
	identity
	reason string // that was told
	again  time.Time
}

// triesCost is how much longer than the last try the wait for the next one is: each captures the tree.
const triesCost = 20

// waitsUnpublished notes why the work of the message under way is not in the tree, after a try that began at a time.
func (q *job) waitsUnpublished(cause *recorder.WaitError, began time.Time) error {
	u, hint := q.u, project.HintOf(cause)
	reason := strings.TrimSuffix(cause.Error(), "; "+project.StateOf(cause)) + recorder.NamedIn(cause)
	known := q.unpublished[u.Record]
	if known == nil {
		known = &unpublished{name: u.Name, identity: u.identity}
		q.unpublished[u.Record] = known
	}
	if known.reason != reason {
		known.reason = reason
		q.note("%s has succeeded, and its work is not in the tree yet: %s; %s; this is tried again, and what else waits is done meanwhile", tree.Quote(u.Name), reason, hint)
	}
	if u.Unpublished != reason {
		u.Unpublished = reason
		if err := q.s.write(q.project().Store); err != nil {
			return err
		}
	}
	now := time.Now()
	known.again = now.Add(triesCost * now.Sub(began))
	return &unpublishedError{&project.Error{Kind: project.KindOf(cause), Err: cause, Advice: hint,
		State: fmt.Sprintf("message %s has succeeded, and its work is not in the tree yet; 'decree process' goes on with that", tree.Quote(u.Name))}}
}

// isUnpublished says whether an error is about the work of one message that waits, so that others can be done.
func isUnpublished(err error) bool { return errors.As(err, new(*unpublishedError)) }

// isPublished forgets that the work of the message under way waited.
func (q *job) isPublished() {
	delete(q.unpublished, q.u.Record)
	q.u.Unpublished = ""
}

// triesLater says whether it is too early for another try to publish the work of a message.
func (q *job) triesLater(d *dirs, u *underWay) (bool, error) {
	known := q.unpublished[u.Record]
	if u.Unpublished == "" || known == nil || !time.Now().Before(known.again) {
		return false, nil
	}
	name, err := u.calledIn(d.inbox)
	known.name, known.identity = name, u.identity
	return name != "", err // else somebody has taken it away, and it waits no longer
}

// triesAgain says whether it is time for another try.
func (q *Queue) triesAgain() bool {
	q.turn.take(beginner)
	defer q.turn.give()
	for _, known := range q.unpublished {
		if !time.Now().Before(known.again) {
			return true
		}
	}
	return false
}

// forgetUnpublished forgets those that are not under way any more, as another process has published their work.
func (q *job) forgetUnpublished() {
	for record := range q.unpublished {
		if !slices.ContainsFunc(q.s.UnderWay, func(u *underWay) bool { return u.Record == record && u.Unpublished != "" }) {
			delete(q.unpublished, record)
		}
	}
}

// waitUnpublished says which of the files in the inbox are messages that wait so. Another one that has the name of one by now is none.
func (q *Queue) waitUnpublished(list []Pending) (names []string) {
	q.turn.take(beginner)
	defer q.turn.give()
	if len(q.unpublished) == 0 {
		return nil
	}
	inbox, err := disk.OpenPath(q.project().Dir, ".decree/"+project.InboxDir)
	if err != nil {
		return nil
	}
	defer inbox.Close()
	for _, known := range q.unpublished {
		if !slices.ContainsFunc(list, func(p Pending) bool { return p.Name == known.name }) {
			continue
		}
		if same, err := known.isAt(inbox, known.name); same && err == nil {
			names = append(names, known.name)
		}
	}
	return names
}

// Unpublished says how many messages this process has left that have succeeded, and whose work could not be published yet.
func (q *Queue) Unpublished() int {
	q.turn.take(beginner)
	defer q.turn.give()
	return len(q.unpublished)
}

// Unpublished says of the messages that have succeeded, and whose work is not in the tree yet, by their names, why it is not.
func Unpublished(rec *recorder.Reader) (map[string]string, error) {
	p := rec.Project()
	s, err := readState(p.Store)
	if err != nil {
		return nil, err
	}
	list, err := Waiting(p, "")
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, f := range list {
		u := s.named(f.Name)
		if u == nil || u.Unpublished == "" {
			continue
		}
		of, err := recordOf(rec, u)
		brought := false // by a person
		if of != nil && err == nil {
			brought, err = isBrought(rec, of)
		}
		if err != nil {
			return nil, err
		}
		if !brought {
			why[f.Name] = "it has succeeded, and its work is not in the tree yet: " + u.Unpublished
		}
	}
	return why, nil
}
