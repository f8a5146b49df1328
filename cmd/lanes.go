package cmd

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"decree/history"
	"decree/recorder"
	"decree/view"
)

// lanes show how the candidates of a race come along: on a terminal each has a line that
// changes, elsewhere a line is printed when one begins and when it has ended.
type lanes struct {
	s      *session
	judged bool
	all    *mpb.Progress // nil: there is no terminal
	lines  map[int]*lane
}

// lane is one candidate's line. Its text is read whenever the lines are drawn.
type lane struct {
	bar  *mpb.Bar
	text atomic.Pointer[func() string]
}

func (s *session) newLanes(judged bool) *lanes {
	l := &lanes{s: s, judged: judged, lines: map[int]*lane{}}
	// The meter would write between the lines, and a terminal that does not say how large it
	// is has room for none.
	if columns, rows, err := term.GetSize(int(s.env.Stderr.Fd())); s.meter != nil && err == nil && columns > 0 && rows > 0 {
		l.all = mpb.New(mpb.WithOutput(s.env.Stderr))
		s.meter, s.above = nil, l.all
	}
	return l
}

// close leaves the lines as they are.
func (l *lanes) close() {
	if l.all != nil {
		l.all.Wait()
		l.s.above = nil
	}
}

// moved shows that a candidate has come to another state.
func (l *lanes) moved(c recorder.Candidate) {
	if c.State == recorder.Ended && c.Result != nil {
		for _, n := range c.Result.Notes {
			l.s.note(c.Name + ": " + n)
		}
	}
	text := l.text(c)
	if l.all == nil {
		if c.State == recorder.Works || c.State == recorder.Ended {
			l.s.say("decree: %s", text())
		}
		return
	}
	of := l.lines[c.Number]
	if of == nil {
		of = &lane{}
		of.text.Store(&text)
		of.bar = l.all.New(0, mpb.NopStyle(), mpb.BarPriority(c.Number), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			return (*of.text.Load())()
		})))
		l.lines[c.Number] = of
	}
	of.text.Store(&text)
	if c.State == recorder.Ended {
		of.bar.SetTotal(-1, true)
	}
}

// text says how far a candidate has come.
func (l *lanes) text(c recorder.Candidate) func() string {
	began := l.s.env.Now()
	since := func(word string) func() string {
		return func() string {
			return fmt.Sprintf("%s %s, %s", c.Name, word, roughly(l.s.env.Now().Sub(began).Truncate(time.Second)))
		}
	}
	always := func(text string) func() string { return func() string { return c.Name + " " + text } }
	switch {
	case c.State == recorder.Waits:
		return always("waits")
	case c.State == recorder.Works && l.all == nil:
		return always("begins: " + c.ID)
	case c.State == recorder.Works:
		return since("works")
	case c.State == recorder.Judged:
		return since("is judged")
	}
	return always(l.outcome(c))
}

// outcome is how a candidate ended.
func (l *lanes) outcome(c recorder.Candidate) string {
	if c.Err != nil {
		return "is not recorded" // the table is followed by why
	}
	if c.Result == nil {
		return "was not begun"
	}
	r, text := c.Result.Record, "succeeded"
	if r.Status != history.StatusSucceeded {
		text = "failed (" + ending(c.Result) + ")"
	}
	text += " in " + span(c.Result.Last.Duration)
	switch {
	case r.Judge != nil:
		text += ", judged " + view.Judged(r)
	case l.judged:
		text += ", not judged"
	}
	if len(c.Result.Changes) == 0 {
		return text + "; it changed nothing"
	}
	return text + ": " + changesInWords(r.Changes)
}
