package cmd

import (
	"os"
	"strings"
	"sync"
	"time"

	"decree/recorder"
	"decree/view"
)

// eventsText is `decree help events`.
const eventsText = `With --events a command that writes reports on stderr what happens, one JSON object per line, instead of notes, a progress bar and error texts. stdout, the exit status and what is done stay the same, but no question is asked: what would ask one needs --yes. Every object has "event" and "time" (RFC 3339, UTC); more fields may be added.

progress: a phase of an operation has advanced. "phase" is recording, comparing, checking or moving; "done" of "total" (0: not known) files or paths, and "bytes" where they are counted. At most ten per second for each phase.

record-created: a record is in the history: "id", "reason", "status", "description", "changes" as in run.json, and for a run "exit_code". A run's comes when it ends.

restored: a restore has ended, and the tree is in the state asked for: "id" is the restore's own record ("" if there was nothing to do), "to" the record that was restored, "created", "modified" and "deleted" count paths.

failed: the command failed or was refused, and this is its last object: "command", "message", "exit_code", "hint", "state" (in which state things are left, which the message says too), and "paths" with "path" and "reason" where single paths stand in the way. (For run this means that decree failed, not the recorded command.)

note: something people should know: "text".

A recorded command's own stderr goes to stderr too, as it comes: a reader of run's events takes the lines that begin with {"event":.
`

func eventsHelp(columns int) string { return wrap(eventsText, columns, "") }

// feed writes events as NDJSON. It may be used by several goroutines at once.
type feed struct {
	mu    sync.Mutex
	out   *os.File
	now   func() time.Time
	phase string
	last  time.Time
}

// newFeed is the feed on stderr, the same each time.
func (s *session) newFeed() *feed {
	if s.feed == nil {
		s.feed = &feed{out: s.env.Stderr, now: s.env.Now}
	}
	return s.feed
}

// happened takes an event of the layers below: the progress bar and the feed are
// made of the same.
func (s *session) happened(e recorder.Event) {
	if e.Kind == recorder.Progressed {
		s.meter.update(e.Progress)
	}
	if s.global.events {
		s.feed.write(e)
	}
}

// breath is the least time between two objects of one phase's progress.
const breath = 100 * time.Millisecond

func (f *feed) write(e recorder.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.Kind {
	case recorder.Progressed:
		p := e.Progress
		now := f.now()
		if p.Phase == f.phase && now.Sub(f.last) < breath && (p.Total == 0 || p.Done < p.Total) {
			return
		}
		f.phase, f.last = p.Phase, now
	case recorder.RecordCreated:
		f.phase = ""
	}
	if v := view.Event(e, f.now()); v != nil {
		f.line(v)
	}
}

// line writes one object at once, so that lines of a command's own stay apart.
func (f *feed) line(v any) {
	_ = view.EncodeLine(f.out, v) // who listens may be gone; the work goes on
}

func (f *feed) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text = strings.TrimPrefix(strings.TrimPrefix(text, "decree: "), "note: ")
	f.line(view.NoteEvent(text, f.now()))
}

func (f *feed) failed(s *session, err error, code int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line(view.FailedEvent(s.failed(err, code), f.now()))
}
