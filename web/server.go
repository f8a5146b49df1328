// Package web shows a project's records on pages, and lets a person choose from them what is
// taken back, brought again or restored. What the pages show a program gets as JSON, at /api/v1/.
//
// Pages are made whole by the server, from html/template: names, contents, logs and prompts of
// the tree are data in them, never markup. They work without script. What changes the tree is
// planned first, by package planner, and performed only if the plan still holds.
//
// # Who may
//
// A server is for the one person who started it. It knows him by a random token, which the
// address that he opens has, and which becomes a cookie. Cookies know no ports, and other users
// of the machine, and other servers on it, can reach a port of the loopback as well as he; so all
// pages lie below a random path, which is the cookie's, and each request is looked at before
// anything is done for it:
//
//   - its Host must be what was listened on, so that no name that somebody points here serves (421);
//   - its Origin and Sec-Fetch-Site, where a browser sends them, must be this server's own (403);
//   - its path must be below the random one (404), and it must have the cookie (403);
//   - what changes anything is a POST (405) with the token of the pages' forms (403).
//
// Nothing on a page comes from elsewhere, and its Content-Security-Policy forbids it to.
package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"decree/backup"
	"decree/planner"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/view"
)

// Options are what a server works on. All but TLS, ReadOnly and Patience are needed.
type Options struct {
	// Read opens the project to look at it. It is called until it succeeds once.
	Read func() (*recorder.Reader, error)
	// Change opens the project to change it, and tells what happens meanwhile; with create one is
	// made where there is none. The server closes what it gets.
	Change func(ctx context.Context, create bool, happens func(recorder.Event)) (*recorder.Recorder, error)
	// Resolve finds the record that a REF names.
	Resolve func(rec *recorder.Reader, ref string) (recorder.Point, error)
	// Messages are those of the inbox (""), of "dead" or of "done".
	Messages func(rec *recorder.Reader, where string) ([]view.Waiting, error)
	// Send writes a message into the inbox; "" is a free name, and the default routine.
	Send func(rec *recorder.Recorder, name, routine, text string) (view.Sent, error)
	// Retry has a dead message wait again.
	Retry func(ctx context.Context, rec *recorder.Recorder, name string) error
	// Backup says how the project's backups are.
	Backup   func(ctx context.Context) (*backup.Status, error)
	Now      func() time.Time
	Location *time.Location
	// TLS, if not nil, has the certificate that the server shows.
	TLS *tls.Config
	// ReadOnly: there is no route that changes anything.
	ReadOnly bool
	// Patience is how long the next part of an answer may take to be taken; 0: 30 seconds.
	Patience time.Duration
	Version  string
}

// Server is safe for concurrent use.
type Server struct {
	Options
	path      string // "/" and the random name below which all pages lie
	token     string // of the address that a person opens
	cookie    string // what it becomes
	form      string // of the pages' forms
	mux       *http.ServeMux
	hosts     hosts
	held      connections
	listeners listeners
	// looks and changes are the patterns of the routes that only look, and of those that change something.
	looks, changes []string

	plans  *planner.Planner
	reader *recorder.KeptReader

	mu     sync.Mutex
	shown  map[string]*shownPlan // by their ids
	order  []string              // of these, the oldest first
	proofs map[string]proof      // what was compared, by the records that were made

	ended chan struct{} // is closed when the server begins to end
	ctx   context.Context
}

// Limits of a server. A person has a few pages open; who has more wants something else.
const (
	maxBody        = 1 << 20
	maxHeader      = 16 << 10
	maxConnections = 200
	headerTime     = 5 * time.Second
	bodyTime       = 20 * time.Second
	writeTime      = 30 * time.Second // for the next part of an answer to be taken, unless Options say another
	idleTime       = time.Minute
	endTime        = 10 * time.Second // for requests to end, once the server is to
)

// New makes a server. Close it when it has ended.
func New(o Options) *Server {
	s := &Server{
		Options: o, path: "/" + rand.Text(), token: rand.Text() + rand.Text(), cookie: rand.Text() + rand.Text(), form: rand.Text(),
		mux: http.NewServeMux(), ended: make(chan struct{}), ctx: context.Background(),
		reader: recorder.KeepReader(o.Read), shown: map[string]*shownPlan{}, proofs: map[string]proof{},
	}
	s.Patience = cmp.Or(s.Patience, writeTime)
	s.plans = planner.New(planner.Options{Change: s.change, Barred: timeline.Barred})
	s.routes()
	return s
}

// Serve answers on a listener until ctx ends. What then changes the tree is taken back or
// finished first; other requests have a moment to end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.ctx = ctx
	s.hosts = listenedOn(l.Addr(), s.TLS)
	srv := s.standard()
	srv.RegisterOnShutdown(func() { close(s.ended) })
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		err := srv.Shutdown(end)
		if errors.Is(err, context.DeadlineExceeded) {
			err = srv.Close()
		}
		stopped <- err
	})
	var err error
	if s.TLS != nil {
		err = srv.ServeTLS(l, "", "")
	} else {
		err = srv.Serve(l)
	}
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// standard is the library's server, with the limits of this one. What an answer may take is
// bounded part by part: see patient.
func (s *Server) standard() *http.Server {
	return &http.Server{
		Handler: s, TLSConfig: s.TLS, ErrorLog: log.New(io.Discard, "", 0), // it tells what clients do wrong
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ConnState: s.held.changed, ConnContext: withConnection,
	}
}

// Ready says whether there is something to serve: a tree, if not yet a record of it.
func (s *Server) Ready() error {
	if _, err := s.reader.Get(); err != nil && !errors.Is(err, project.ErrNoProject) {
		return err
	}
	return nil
}

// Address is what a person opens: it has the token.
func (s *Server) Address(l net.Listener) string {
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + l.Addr().String() + s.path + "/?token=" + s.token
}

// Close lets go of the project. No request may be under way.
func (s *Server) Close() error { return s.reader.Close() }
