package web

import (
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// policy is the Content-Security-Policy of every answer.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// cookieName is the cookie that the token becomes.
const cookieName = "decree"

// formField is the field of a form that has its token, formHeader the header of a program's request.
const (
	formField  = "form"
	formHeader = "Decree-Form"
)

// ServeHTTP looks at a request before anything is done for it; see the package's doc.
func (s *Server) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	w := &patient{ResponseWriter: plain, control: http.NewResponseController(plain), time: s.Patience}
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cache-Control":                "no-store",
		"X-Frame-Options":              "DENY",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	status, why := s.guard(r)
	if status == 0 {
		s.held.works(r)
	} else { // the connection can be given up for another one: perhaps the body never comes
		w.Header().Set("Connection", "close")
	}
	if status == http.StatusRequestEntityTooLarge {
		if r.Header.Get("Expect") == "" { // who still writes when the connection is closed may miss the answer
			_, _ = io.CopyN(io.Discard, r.Body, 8*maxBody)
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	switch {
	case status != 0: // whoever asks is perhaps not the person: he learns nothing but why
		http.Error(w, why, status)
	case entering(r, s.path):
		s.enter(w, r)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// guard says why a request is not answered; 0 where it is.
func (s *Server) guard(r *http.Request) (status int, why string) {
	switch {
	case r.ContentLength > maxBody:
		return http.StatusRequestEntityTooLarge, tooLarge
	case !s.hosts.has(r.Host):
		return http.StatusMisdirectedRequest, "this server answers only to the address that it listens on"
	case !s.sameOrigin(r):
		return http.StatusForbidden, "the request comes from another site"
	case !s.below(r.URL.Path):
		return http.StatusNotFound, "there is no such page"
	case entering(r, s.path):
		if !same(r.URL.Query().Get("token"), s.token) {
			return http.StatusForbidden, "this is not the token of the server that runs now: open the address that 'decree serve' printed when it started"
		}
		return 0, ""
	case foreignFetch(r):
		return http.StatusForbidden, "the request comes from another site"
	case !s.knows(r):
		return http.StatusForbidden, "open the address that 'decree serve' printed when it started: it has a token, and this request does not"
	}
	return 0, ""
}

const tooLarge = "the request is larger than 1 MiB"

// entering says whether a request is that of the address that was printed.
func entering(r *http.Request, path string) bool {
	return r.URL.Path == path+"/" && r.Method == http.MethodGet && r.URL.Query().Has("token")
}

// below says whether a path lies below the random one.
func (s *Server) below(path string) bool {
	return len(path) > len(s.path) && same(path[:len(s.path)], s.path) && path[len(s.path)] == '/'
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// sameOrigin says whether a request's Origin, where it has one, is this server. Browsers give
// "null" to the forms of pages that have no referrer, as these have; then Sec-Fetch-Site, which
// no page can set, must say it.
func (s *Server) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	switch {
	case origin == "":
		return true
	case origin == "null":
		return r.Header.Get("Sec-Fetch-Site") == "same-origin"
	case s.TLS != nil:
		return strings.EqualFold(origin, "https://"+r.Host)
	}
	return strings.EqualFold(origin, "http://"+r.Host)
}

// foreignFetch says whether a browser tells that another site, which may be another port of this
// machine, has caused a request; for what changes something nothing but the own pages may.
func foreignFetch(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
		return false
	case "none": // typed, or from a bookmark
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	return true
}

// knows says whether a request has the cookie. Another server on this machine can set a cookie of the
// same name, which comes beside it.
func (s *Server) knows(r *http.Request) bool {
	for _, c := range r.CookiesNamed(cookieName) {
		if same(c.Value, s.cookie) {
			return true
		}
	}
	return false
}

// enter gives the cookie for the token, and takes the token out of the address bar. Where another
// place has led here, as the file of --open does, the browser would not send the cookie on a
// redirect: it is told to go on by a page of our own.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: s.cookie, Path: s.path + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.TLS != nil,
	})
	if foreignFetch(r) {
		s.page(w, http.StatusOK, "enter", s.frameOf("", ""), nil)
		return
	}
	http.Redirect(w, r, s.path+"/", http.StatusSeeOther)
}

// writes has a form's token looked at before do changes anything.
func (s *Server) writes(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get(formHeader)
		if given == "" {
			if err := r.ParseForm(); err != nil {
				s.badBody(w, r, err)
				return
			}
			given = r.PostForm.Get(formField)
		}
		if !same(given, s.form) {
			s.refuse(w, r, http.StatusForbidden, "the form is of another server, or of none: load the page again")
			return
		}
		do(w, r)
	}
}

func (s *Server) badBody(w http.ResponseWriter, r *http.Request, err error) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		s.refuse(w, r, http.StatusRequestEntityTooLarge, tooLarge)
		return
	}
	s.refuse(w, r, http.StatusBadRequest, "the request cannot be read: "+err.Error())
}

// hosts are the names that a server answers to.
type hosts struct {
	listened string // as the Host header has it
	port     string
	cert     *tls.Config
}

func listenedOn(a net.Addr, cert *tls.Config) hosts {
	host, port, _ := net.SplitHostPort(a.String())
	h := hosts{listened: a.String(), port: port, cert: cert}
	if usual := map[bool]string{false: "80", true: "443"}[cert != nil]; port == usual {
		h.listened = strings.TrimSuffix(a.String(), ":"+port)
		if host == "" {
			h.listened = host
		}
	}
	return h
}

// has says whether a Host header is of this server: what was listened on, or a name that its
// certificate has, under which nobody else can pass for it.
func (h hosts) has(given string) bool {
	if strings.EqualFold(given, h.listened) {
		return true
	}
	if h.cert == nil {
		return false
	}
	name, port, err := net.SplitHostPort(given)
	if err != nil {
		name, port = given, "443"
	}
	if port != h.port {
		return false
	}
	for i := range h.cert.Certificates {
		if leaf := h.cert.Certificates[i].Leaf; leaf != nil && leaf.VerifyHostname(strings.Trim(name, "[]")) == nil {
			return true
		}
	}
	return false
}

// patient gives whoever reads an answer some time for each part of it, however long it is, and no more.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	time    time.Duration
}

// Write gives up where the part before was not taken in time.
func (p *patient) Write(data []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.time)) // a recorder of a test has none
	return p.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
