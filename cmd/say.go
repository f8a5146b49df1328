package cmd

import (
	"bufio"
	"fmt"
	"io"

	"decree/view"
)

// say tells people something on stderr; -q leaves it out.
func (s *session) say(format string, args ...any) {
	if s.global.events {
		s.newFeed().note(fmt.Sprintf(format, args...))
		return
	}
	if s.global.quiet {
		return
	}
	s.meter.pause()
	var out io.Writer = s.env.Stderr
	if s.above != nil {
		out = s.above
	}
	fmt.Fprintf(out, format+"\n", args...)
}

// note is a remark of the layers below, one line.
func (s *session) note(text string) { s.say("decree: note: %s", oneLine(text)) }

// tell gives people the result of a command on stdout; -q leaves it out, and
// --json has an object instead.
func (s *session) tell(format string, args ...any) {
	if s.global.quiet || s.global.json {
		return
	}
	s.meter.pause()
	fmt.Fprintf(s.env.Stdout, format+"\n", args...)
}

// printJSON prints v on stdout, indented, without HTML escapes: a path stays readable.
func (s *session) printJSON(v any) error {
	s.meter.pause()
	return view.Encode(s.env.Stdout, v)
}

// print runs fill on a buffered stdout.
func (s *session) print(fill func(w io.Writer) error) error { return s.printOn(s.env.Stdout, fill) }

func (s *session) printOn(out io.Writer, fill func(w io.Writer) error) error {
	s.meter.pause()
	w := bufio.NewWriterSize(out, 64<<10)
	err := fill(w)
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	return err
}

// printLine prints v on stdout as one line of JSON.
func (s *session) printLine(v any) error {
	s.meter.pause()
	return view.EncodeLine(s.env.Stdout, v)
}
