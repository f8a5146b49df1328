package web

import (
	"net/http"
	"slices"
	"strings"

	"decree/recorder"
	"decree/view"
)

// mostMessages is how many messages of each list are shown.
const mostMessages = 100

// mailbox is one list of messages.
type mailbox struct {
	ID, Title string
	List      []view.Waiting
	More      int
	Dead      bool
}

// inbox is the page of messages: those that wait or are being done, those that failed, and those that
// are done.
func (s *Server) inbox(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	var boxes []mailbox
	for _, b := range []mailbox{{ID: "waiting", Title: "Waiting"}, {ID: "dead", Title: "Dead", Dead: true}, {ID: "done", Title: "Done"}} {
		where := b.ID
		if where == "waiting" {
			where = ""
		}
		list, err := s.Messages(rec, where)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if b.ID == "done" { // the newest are wanted
			slices.Reverse(list)
		}
		b.List = list[:min(len(list), mostMessages)]
		b.More = len(list) - len(b.List)
		boxes = append(boxes, b)
	}
	s.page(w, http.StatusOK, "inbox", s.frame(r, "Inbox", "inbox"), boxes)
}

// send writes a message into the inbox.
func (s *Server) send(w http.ResponseWriter, r *http.Request) {
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
	err := s.plans.Use(s.ctx, true, func(rec *recorder.Recorder) error {
		_, err := s.Send(rec, r.PostForm.Get("name"), r.PostForm.Get("routine"), text)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.back(w, r, "/inbox", "said", "sent", "waiting")
}
