package history

import (
	"fmt"
	"slices"
	"time"

	"decree/project"
)

// State is a state of the whole tree that a record observed.
type State struct {
	Record *Record
	Side   Side      // of the record: Before or After
	Time   time.Time // when it was observed
}

// Observed returns the newest state of the whole tree that was observed at or
// before t. A record observes the tree when it starts and, where it says what
// it left, when it ends; a run that was put back ends at the state before it.
// Reverts and applies know their own paths only and observe nothing. Before the
// first state the error is of kind NotFound and names the earliest.
func (h *History) Observed(t time.Time) (*State, error) {
	// The newest record that began by then decides, but for those that were made while
	// it was open: they come before it.
	second := t.UTC().Format(chainForm)
	began := func(k key) bool {
		// Where the clock was set back, the id alone has the time.
		return k.at <= t.UnixNano() || k.chain[:len(chainForm)] <= second
	}
	var newest *State
	for id, err := range h.backward(began) {
		if err != nil {
			return nil, err
		}
		r, err := h.Get(id)
		if err != nil {
			continue // the listing names it
		}
		for _, s := range slices.Backward(observations(r)) {
			if !s.Time.After(t) && (newest == nil || s.Time.After(newest.Time)) {
				newest = s
				break
			}
		}
		if newest != nil && !r.Ended.IsZero() && !r.Ended.After(newest.Time) {
			break
		}
	}
	if newest != nil {
		return newest, nil
	}
	return nil, h.beforeTheFirst(t)
}

// beforeTheFirst names the earliest state.
func (h *History) beforeTheFirst(t time.Time) error {
	l, err := h.List(ListOptions{})
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(l.Records) {
		for _, s := range observations(r) {
			return &project.Error{Kind: project.NotFound,
				Err:    noRecord{fmt.Sprintf("no state is recorded from %s or earlier", t.Format("2006-01-02 15:04:05 -07:00"))},
				Advice: fmt.Sprintf("the earliest recorded state is from %s, before %s: 'decree files %s' lists it", s.Time.In(t.Location()).Format("2006-01-02 15:04:05 -07:00"), r.ID, r.ID)}
		}
	}
	return refError("@"+t.Format(time.RFC3339), "there are none yet", firstRecord)
}

// observations are the states of the whole tree that r saw, in order of time.
func observations(r *Record) []*State {
	if r.Partial() {
		return nil
	}
	out := []*State{{r, Before, r.Started}}
	switch {
	case r.Ended.IsZero() || r.Status == StatusOpen:
	case r.Status == StatusReverted:
		out = append(out, &State{r, Before, r.Ended})
	case !r.After.IsZero():
		out = append(out, &State{r, After, r.Ended})
	}
	return out
}

func (h *History) resolveTime(s string, loc *time.Location) (Ref, error) {
	t, err := ParseTime(s, h.now(), loc)
	if err != nil {
		return Ref{}, err
	}
	st, err := h.Observed(t)
	if err != nil {
		return Ref{}, err
	}
	return Ref{ID: st.Record.ID, Side: st.Side, Time: t}, nil
}
