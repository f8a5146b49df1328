package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// A message may have to wait for what a person or another process has to end first, and what concerns others as well: before its run,
// where no run can be isolated or, in place, the tree not be recorded, or, when its routine has succeeded, with the publishing of its work, such as
// for a file above capture.max_file or a draft in which somebody works. It keeps its place and all its attempts; the state says why it
// waits, others are done meanwhile, and it is tried again: by each process once when it starts, and from then on as often as costs little.

// stuckError is the end of a try to go on with such a message.
type stuckError struct{ refusal *project.Error }

func (e *stuckError) Error() string { return e.refusal.Error() }
func (e *stuckError) Unwrap() error { return e.refusal }

// stuck is what a process knows of such a message.
type stuck struct {
	name string
	identity
	reason  string // that was told
	begun   bool   // its run has ended
	retryAt time.Time
}

// inTreeError is about a message in place whose failed run is still in the tree, so that all others wait for it. A daemon tries again to
// take it back.
type inTreeError struct {
	record string
	why    error
}

func (e *inTreeError) Error() string { return e.why.Error() }
func (e *inTreeError) Unwrap() error { return e.why }

// triesAgainLater says whether a daemon goes on after the error of its work, and tells that error the first time.
func (w *worker) triesAgainLater() bool {
	held := new(*inTreeError)
	if w.running > 0 || !errors.As(w.failed, held) {
		return false
	}
	if told := (*held).record + w.failed.Error(); w.held != told {
		w.held = told
		w.q.note("%v; %s; this is tried again", w.failed, project.HintOf(w.failed))
	}
	w.failed = nil
	return true
}

// triesCost is how much longer than the last try the wait for the next one is: it may capture the tree.
const triesCost = 20

// waitsUnpublished has the message under way wait with its work, after a try to publish that which began at a time.
func (q *job) waitsUnpublished(cause *recorder.WaitError, began time.Time) error {
	return q.waits(cause, "it has succeeded, and its work is not in the tree yet: ", began,
		fmt.Sprintf("message %s has succeeded, and its work is not in the tree yet; 'decree process' goes on with that", tree.Quote(q.u.Name)))
}

// waitsUnbegun has the message under way wait for its run, after a try to begin that at a time. What keeps one from beginning keeps, as a
// rule, all: they are tried again together, in their order.
func (q *job) waitsUnbegun(cause *recorder.WaitError, began time.Time) error {
	q.u.Record, q.u.Attempt, q.u.Before, q.u.Partly, q.u.Beside = "", 0, nil, false, nil
	err := q.waits(cause, "its run cannot begin: ", began, project.NotStarted)
	for _, other := range q.stuck {
		if !other.begun {
			other.retryAt = q.stuck[q.u.ID].retryAt
		}
	}
	return err
}

// waits notes why the message under way cannot be gone on with, after a try that began at a time.
func (q *job) waits(cause error, what string, began time.Time, state string) error {
	u, hint, reason := q.u, project.HintOf(cause), what+strings.TrimSuffix(cause.Error(), "; "+project.StateOf(cause))+recorder.NamedIn(cause)
	known := q.stuck[u.ID]
	if known == nil {
		known = &stuck{name: u.Name, identity: u.identity}
		q.stuck[u.ID] = known
	}
	if known.reason != reason {
		known.reason = reason
		q.note("%s waits: %s; %s; this is tried again, and others are done meanwhile", tree.Quote(u.Name), reason, hint)
	}
	if u.Stuck != reason {
		u.Stuck = reason
		if err := q.saveState(); err != nil {
			return err
		}
	}
	now := time.Now()
	known.begun, known.retryAt = u.Record != "", now.Add(triesCost*now.Sub(began))
	return &stuckError{&project.Error{Kind: project.KindOf(cause), Err: cause, Advice: hint, State: state}}
}

// isStuck says whether an error is about one message that waits so, and others can be done.
func isStuck(err error) bool { return errors.As(err, new(*stuckError)) }

// goesOn forgets that the message under way waited.
func (q *job) goesOn() {
	delete(q.stuck, q.u.ID)
	q.u.Stuck = ""
}

// triesLater says whether it is too early for another try with a message.
func (q *job) triesLater(d *dirs, u *underWay) (bool, error) {
	known := q.stuck[u.ID]
	if u.Stuck == "" || known == nil || !time.Now().Before(known.retryAt) {
		return false, nil
	}
	name, err := u.calledIn(d.inbox)
	known.name, known.identity = name, u.identity
	return name != "", err // else somebody has taken it away, and it waits no longer
}

// triesAgain says whether it is time for another try.
func (q *Queue) triesAgain() bool {
	q.turn.acquire(beginner)
	defer q.turn.release()
	for _, known := range q.stuck {
		if !time.Now().Before(known.retryAt) {
			return true
		}
	}
	return false
}

// forgetStuck forgets those that wait no longer, as another process has gone on with them.
func (q *job) forgetStuck() {
	for id := range q.stuck {
		if !slices.ContainsFunc(q.s.UnderWay, func(u *underWay) bool { return u.ID == id && u.Stuck != "" }) {
			delete(q.stuck, id)
		}
	}
}

// areStuck says which of the files in the inbox are messages that wait so. Another one that has the name of one by now is none.
func (q *Queue) areStuck(list []Pending) (names []string) {
	q.turn.acquire(beginner)
	defer q.turn.release()
	if len(q.stuck) == 0 {
		return nil
	}
	inbox, err := openInbox(q.project().Dir, "")
	if err != nil {
		return nil
	}
	defer inbox.Close()
	for _, known := range q.stuck {
		if !slices.ContainsFunc(list, func(p Pending) bool { return p.Name == known.name }) {
			continue
		}
		if same, err := known.isAt(inbox, known.name); same && err == nil {
			names = append(names, known.name)
		}
	}
	return names
}

// Stuck says how many messages this process has left that could not be gone on with yet.
func (q *Queue) Stuck() int {
	q.turn.acquire(beginner)
	defer q.turn.release()
	return len(q.stuck)
}

// WhyStuck says of the messages that cannot be gone on with yet, by their names, why.
func WhyStuck(rec *recorder.Reader) (map[string]string, error) {
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
		if u == nil || u.Stuck == "" {
			continue
		}
		brought := false // by a person
		if u.Record != "" {
			of, err := recordOf(rec, u)
			if of != nil && err == nil {
				brought, err = isBrought(rec, of)
			}
			if err != nil {
				return nil, err
			}
		}
		if !brought {
			why[f.Name] = u.Stuck
		}
	}
	return why, nil
}
