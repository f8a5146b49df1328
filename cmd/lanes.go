package cmd

import (
	"fmt"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"decree/history"
	"decree/recorder"
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
	if s.meter != nil { // which would write between the lines
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
		if c.State != recorder.Judged {
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
	switch c.State {
	case recorder.Works, recorder.Judged:
		word := "works"
		if c.State == recorder.Judged {
			word = "is judged"
		}
		return func() string {
			if l.all == nil {
				return fmt.Sprintf("%s begins: %s", c.Name, c.ID)
			}
			return fmt.Sprintf("%s %s, %s", c.Name, word, roughly(l.s.env.Now().Sub(began)))
		}
	}
	text := c.Name + " " + l.outcome(c)
	return func() string { return text }
}

// outcome is how a candidate ended.
func (l *lanes) outcome(c recorder.Candidate) string {
	if c.Err != nil {
		return "is not recorded: " + oneLine(c.Err.Error())
	}
	if c.Result == nil {
		return "was not begun"
	}
	r, text := c.Result.Record, "succeeded"
	if r.Status != history.StatusSucceeded {
		text = "failed (" + ending(c.Result) + ")"
	}
	text += " in " + span(c.Result.Last.Duration)
	if l.judged {
		text += ", judged " + judgeWord(r.Judge)
	}
	if len(c.Result.Changes) == 0 {
		return text + "; it changed nothing"
	}
	return text + ": " + changesInWords(r.Changes)
}
