package web

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"decree/history"
	"decree/recorder"
	"decree/view"
)

// told is something that happened, as who listens gets it.
type told struct {
	name string // record, progress, restored
	data []byte // a line of JSON
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
	last  map[string]history.Status // of the newest records that were told
	phase string
	at    time.Time
}

// happened tells what an operation of this server does.
func (s *Server) happened(e recorder.Event) {
	switch e.Kind {
	case recorder.Progressed:
		s.listeners.progress(e.Progress, s.Now())
	case recorder.RecordCreated:
		s.look()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.all {
		select {
		case c <- told{name, bytes.TrimSpace(b.Bytes())}:
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

// look tells of the records that are new since it looked last, or have ended since.
func (s *Server) look() {
	rec, err := s.reader.Get()
	if err != nil {
		return
	}
	list, err := rec.History().List(history.ListOptions{Limit: newestRecords, Known: true})
	if err != nil {
		return
	}
	now := make(map[string]history.Status, len(list.Records))
	var fresh []*history.Record
	s.listeners.mu.Lock()
	for _, r := range list.Records {
		now[r.ID] = r.Status
		if was, known := s.listeners.last[r.ID]; s.listeners.last != nil && (!known || was == history.StatusOpen && r.Status != was) {
			fresh = append(fresh, r)
		}
	}
	s.listeners.last = now
	s.listeners.mu.Unlock()
	for i := len(fresh) - 1; i >= 0; i-- {
		s.listeners.tell("record", view.Event(recorder.Event{Kind: recorder.RecordCreated, Record: fresh[i]}, s.Now()))
	}
}

// events streams what happens, until the listener goes or the server ends.
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
	s.look()
	if _, err := w.Write([]byte(": decree\n\n")); err != nil || control.Flush() != nil {
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
			out = []byte("event: " + e.name + "\ndata: " + string(e.data) + "\n\n")
		case <-ticks.C:
			s.look()
			if quiet += lookEvery; quiet < heartbeat {
				continue
			}
			out = []byte(": still here\n\n")
		}
		quiet = 0
		if _, err := w.Write(out); err != nil || control.Flush() != nil {
			return
		}
	}
}
