package message

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The types of messages.
const (
	Task = "task"
	Spec = "spec"
)

// Message is a message as Parse or Complete leave it. Text fields that the message does
// not have are "". It is not safe for concurrent use.
type Message struct {
	Name      string // of its file, without a directory; for names and errors
	ID        string // <chain>-<seq>
	Chain     string
	Seq       int    // from 0; -1: the front matter has none
	Depth     int    // 0, and of a follow-up one more than of the message that it follows
	Type      string // Task or Spec, or what the front matter says
	InputFile string // relative to the root, slashes; its bytes, which need not be text
	Routine   string
	Cron      string  // five fields; only in .decree/cron
	CronJob   string  // the job that has fired it
	CatchUp   bool    // one firing that was missed is made up for
	Isolated  *bool   // nil: its routine, or else the config, says whether its run is
	Params    []Param // the other fields, in the file's order
	Body      []byte  // exactly as in the file; shares the bytes given to Parse

	front front
}

// IDOf is the id of the message that a file called name holds; "": it has none, or cannot be understood.
func IDOf(name string, data []byte) string {
	m, err := Parse(name, data)
	if err != nil {
		return ""
	}
	return m.ID
}

// Param is a name and its text.
type Param struct{ Name, Value string }

// maxHeading is how long a heading is, in characters.
const maxHeading = 72

// Heading is what the message is about, in one line that is safe to print: the first
// line of its body that is not blank, without the marks of a heading, shortened.
func (m *Message) Heading() string {
	for line := range strings.Lines(string(m.Body)) {
		text := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#"))
		text = strings.Map(func(r rune) rune {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(text, "\ufffd"))
		if r := []rune(text); len(r) > maxHeading {
			text = string(r[:maxHeading-1]) + "…"
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// Error is a message, a routine or a cron expression that cannot be understood.
type Error struct {
	Name   string // of the file; "" where there is none
	Line   int    // from 1; 0 when the file as a whole is meant
	Reason string
}

// Error is one line, whatever the file is called.
func (e *Error) Error() string {
	name := e.Name
	if control(name) || !utf8.ValidString(name) {
		name = strconv.Quote(name)
	}
	switch {
	case name == "":
		return e.Reason
	case e.Line == 0:
		return name + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", name, e.Line, e.Reason)
}
