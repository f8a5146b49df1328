package web

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
	"time"

	"decree/history"
	"decree/recorder"
	"decree/view"
)

// news is told of a record that was made: each listener looks for himself which are new to him.
const news = "news"

// told is something that happened, as who listens gets it.
type told struct {
	name string // record, progress, restored
	data []byte // a line of JSON
}

// message is how a listener gets it.
func (t told) message() []byte {
	return []byte("event: " + t.name + "\ndata: " + string(t.data) + "\n\n")
}

// Limits of who listens.
const (
	maxListeners = 32
	backlog      = 256         // what one may have to read; the rest he does not get
	lookEvery    = time.Second // for what other processes record
	breath       = 100 * time.Millisecond
	heartbeat    = 15 * time.Second
)

// listeners are the pages and programs that want to know what happens. While there is one, the
// history is looked at for what other processes have recorded.
type listeners struct {
	mu    sync.Mutex
	all   map[chan told]struct{}
	phase string
	at    time.Time
}

// happened tells what an operation of this server does.
func (s *Server) happened(e recorder.Event) {
	switch e.Kind {
	case recorder.Progressed:
		s.listeners.progress(e.Progress, s.Now())
	case recorder.RecordCreated:
		s.listeners.send(told{name: news})
	default:
		s.listeners.tell(string(e.Kind), view.Event(e, s.Now()))
	}
}

// progressed says how far a phase of an operation is; Percent is -1 where that is not known.
type progressed struct {
	Phase   string `json:"phase"`
	Percent int    `json:"percent"`
	Done    int64  `json:"done"`
	Total   int64  `json:"total"`
}

func (l *listeners) progress(p recorder.Progress, now time.Time) {
	l.mu.Lock()
	soon := p.Phase == l.phase && now.Sub(l.at) < breath && (p.Total == 0 || p.Done < p.Total)
	if !soon {
		l.phase, l.at = p.Phase, now
	}
	l.mu.Unlock()
	if soon {
		return
	}
	out := progressed{p.Phase, -1, p.Done, p.Total}
	if p.Total > 0 {
		out.Percent = int(100 * min(p.Done, p.Total) / p.Total)
	}
	l.tell("progress", out)
}

func (l *listeners) tell(name string, v any) {
	var b bytes.Buffer
	if v == nil || view.EncodeLine(&b, v) != nil {
		return
	}
	l.send(told{name, bytes.TrimSpace(b.Bytes())})
}

func (l *listeners) send(what told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.all {
		select {
		case c <- what:
		default: // he does not read
		}
	}
}

// join adds a listener; nil where there are too many.
func (l *listeners) join() chan told {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) >= maxListeners {
		return nil
	}
	if l.all == nil {
		l.all = map[chan told]struct{}{}
	}
	c := make(chan told, backlog)
	l.all[c] = struct{}{}
	return c
}

func (l *listeners) leave(c chan told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, c)
}

// newestRecords is how many of the newest records are looked at for what is new.
const newestRecords = 50

// known is what a listener knows of the newest records: nil before he has looked.
type known map[string]history.Status

// look returns what a listener knows from now on, and the records that he is to be told of, the oldest first: those that are
// new to him, or have ended. who looks for the first time knows all but what is newer than the record after; "": all.
func (s *Server) look(was known, after string) (now known, fresh []*history.Record) {
	rec, err := s.reader.Get()
	if err != nil {
		return was, nil
	}
	list, err := rec.History().List(history.ListOptions{Limit: newestRecords, Known: true})
	if err != nil {
		return was, nil
	}
	now = make(known, len(list.Records))
	newer := was != nil || after != ""
	for _, r := range list.Records {
		now[r.ID] = r.Status
		if was == nil && r.ID == after {
			newer = false
		}
		if before, there := was[r.ID]; newer && (!there || before == history.StatusOpen && r.Status != before) {
			fresh = append(fresh, r)
		}
	}
	slices.Reverse(fresh)
	return now, fresh
}

// events streams what happens, until the listener goes or the server ends. A page asks for what came after its newest record.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	c := s.listeners.join()
	if c == nil {
		s.refuse(w, r, http.StatusServiceUnavailable, "too many listen already")
		return
	}
	defer s.listeners.leave(c)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // there is nothing to be read, for as long as somebody listens
	w.Header().Set("Content-Type", "text/event-stream")
	var knows known
	tell := func() (out []byte) {
		var fresh []*history.Record
		for knows, fresh = s.look(knows, r.URL.Query().Get("after")); len(fresh) > 0; fresh = fresh[1:] {
			var b bytes.Buffer
			if event := view.Event(recorder.Event{Kind: recorder.RecordCreated, Record: fresh[0]}, s.Now()); event != nil && view.EncodeLine(&b, event) == nil {
				out = append(out, told{"record", bytes.TrimSpace(b.Bytes())}.message()...)
			}
		}
		return out
	}
	if _, err := w.Write(append([]byte(": decree\n\n"), tell()...)); err != nil || control.Flush() != nil {
		return
	}
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	quiet := time.Duration(0)
	for {
		var out []byte
		select {
		case <-s.ended:
			return
		case <-r.Context().Done():
			return
		case e := <-c:
			if out = e.message(); e.name == news {
				out = tell()
			}
		case <-ticks.C:
			if out = tell(); len(out) == 0 && quiet+lookEvery >= heartbeat {
				out = []byte(": still here\n\n")
			}
		}
		if quiet += lookEvery; len(out) == 0 {
			continue
		}
		quiet = 0
		if _, err := w.Write(out); err != nil || control.Flush() != nil {
			return
		}
	}
}
