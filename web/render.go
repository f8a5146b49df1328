package web

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"decree/history"
	"decree/page"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/view"
)

//go:embed templates
var files embed.FS

// templates are the pages; each names the layout's beginning and end itself, so that what takes
// long can be written after the beginning.
var templates = template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/*.html"))

// Frame is what all pages have in common.
type Frame struct {
	Title    string
	Here     string // the place of the menu
	Base     string // the path below which all pages lie
	Form     string // the token of forms
	Root     string
	ReadOnly bool
	Banner   *banner
	From     string // the page below the base, to come back to
}

// shown is what a template gets.
type shown struct {
	Frame
	Data any
}

// frame is the frame of a page that was asked for, with the banner of what was done before.
func (s *Server) frame(r *http.Request, title, here string) Frame {
	f := s.frameOf(title, here)
	f.From = strings.TrimPrefix(r.URL.EscapedPath(), s.path)
	q := r.URL.Query()
	if words := said[q.Get("said")]; words != "" {
		f.Banner = &banner{Did: words}
	}
	if rec, err := s.reader.Get(); err == nil && q.Get("done") != "" {
		f.Banner = s.bannerOf(rec.History(), q.Get("done"))
	}
	return f
}

// said are what banners say of what is no record.
var said = map[string]string{
	"nothing": "Nothing had to be done", "discarded": "Discarded", "sent": "Sent", "waits": "It waits again",
}

// frameOf is the frame of any page.
func (s *Server) frameOf(title, here string) Frame {
	f := Frame{Title: title, Here: here, Base: s.path, Form: s.form, ReadOnly: s.ReadOnly}
	if rec := s.reader.Opened(); rec != nil {
		f.Root = view.ShownPath(rec.Project().Root)
	}
	return f
}

// begin writes the beginning of a page at once, so that it is seen while the rest is made.
func (s *Server) begin(w http.ResponseWriter, status int, name string, f Frame, data any) bool {
	return s.page(w, status, name, f, data) && http.NewResponseController(w).Flush() == nil
}

// end writes what comes after a page's beginning, or a part of it.
func (s *Server) end(w io.Writer, name string, f Frame, data any) {
	if err := templates.ExecuteTemplate(w, name, shown{f, data}); err != nil {
		s.say(w, "failure", "The rest of the page cannot be made: "+err.Error())
	}
}

// say writes a paragraph.
func (s *Server) say(w io.Writer, class, text string) {
	fmt.Fprintf(w, "<p class=\"%s\">%s</p>\n", class, page.Text(view.OneLine(text)))
}

// attribute is a text as the value of an attribute.
func attribute(text string) string { return template.HTMLEscapeString(text) }

// heading writes one, which others can point to.
func heading(w io.Writer, id, text string) {
	fmt.Fprintf(w, "<h2 id=\"%s\">%s</h2>\n", id, page.Text(text))
}

// page writes a page that is made in one go, and only if it can be made. It says whether it was taken.
func (s *Server) page(w http.ResponseWriter, status int, name string, f Frame, data any) bool {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, shown{f, data}); err != nil {
		http.Error(w, "the page cannot be made: "+view.OneLine(err.Error()), http.StatusInternalServerError)
		return false
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes()) // who asked may be gone
	return err == nil
}

// refuse answers with why there is no page, or, to a program, no object.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	s.failed(w, r, status, view.Failure{Message: why, Paths: []view.FailureAtPath{}})
}

// fail answers with an error of what was asked for.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.failed(w, r, statusOf(err), view.FailureOf("", err))
}

func (s *Server) failed(w http.ResponseWriter, r *http.Request, status int, f view.Failure) {
	f.Command = "serve"
	if strings.HasPrefix(r.URL.Path, s.path+"/api/") {
		answer(w, status, map[string]any{"error": f})
		return
	}
	s.page(w, status, "error", s.frameOf(cmp.Or(titles[status], http.StatusText(status)), ""), f)
}

// titles say for people what a status says for programs.
var titles = map[int]string{
	http.StatusBadRequest: "It is not clear what is wanted", http.StatusNotFound: "There is no such thing", http.StatusConflict: "It cannot be done",
	http.StatusGone: "The tree is gone", http.StatusInternalServerError: "It did not work",
}

// statusOf is the status for an error.
func statusOf(err error) int {
	switch {
	case errors.Is(err, recorder.ErrGone):
		return http.StatusGone
	case errors.Is(err, history.ErrNoRecord), errors.Is(err, fs.ErrNotExist):
		return http.StatusNotFound
	case errors.As(err, new(*recorder.ConflictError)), recorder.Forgotten(err):
		return http.StatusConflict
	}
	switch project.KindOf(err) {
	case project.Usage:
		return http.StatusBadRequest
	case project.NotFound:
		return http.StatusNotFound
	case project.Refused:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// answer writes an object as the command line does.
func answer(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	if err := view.Encode(&b, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// functions are what templates call.
var functions = template.FuncMap{
	"line":   view.OneLine,
	"path":   func(raw string) string { return view.ShownPath(raw) },
	"url":    url.PathEscape,
	"badge":  strings.ToLower,
	"rowOf":  rowOf,
	"act":    act,
	"named":  func(a action, word, key string) action { a.Word, a.Key = word, key; return a },
	"file":   func(a action, path string) action { a.Path = urlPath(path); return a },
	"after":  func(a action) action { a.After = true; return a },
	"main":   func(a action) action { a.Main = true; return a },
	"about":  func(a action, what string) action { a.About = what; return a },
	"text":   func(s string) template.HTML { return page.Text(s) },
	"facts":  page.FactList,
	"count":  view.Count,
	"size":   view.Size,
	"took":   view.Took,
	"words":  page.Changes,
	"status": view.StatusWords,
	"inc":    func(n int) int { return n + 1 },
}

// action is a button that asks for a plan.
type action struct {
	Frame
	Operation, Ref, Word string
	Path                 string // escaped; "": all
	After                bool
	Why                  string // it cannot be done now
	Key                  string // of the keyboard
	About                string // what it is about, for ears, where a page has several of the same word
	Main                 bool
}

func act(f Frame, operation, ref string, why string) action {
	key := map[string]string{"restore": "R", "revert": "r", "apply": "a", "publish": "p", "discard": "x", "undo": "u", "redo": "U"}[operation]
	return action{Frame: f, Operation: operation, Ref: ref, Word: verbs[operation], Why: why, Key: key}
}

// row is a row of the timeline with what its template needs beside it.
type row struct {
	Frame
	Barred string // why nothing can be restored now
	Row    timeline.Row
	More   int // rows inside it that are not shown
}

// rowOf is a row of a page, or of another row.
func rowOf(around any, of timeline.Row) row {
	switch a := around.(type) {
	case row:
		return row{Frame: a.Frame, Barred: a.Barred, Row: of}
	case shown:
		out := row{Frame: a.Frame, Row: of}
		if p, ok := a.Data.(timelinePage); ok {
			out.Barred = p.Barred["restore"]
			out.More = max(0, len(of.Inner)-p.Folded)
			out.Row.Inner = of.Inner[:len(of.Inner)-out.More]
		}
		return out
	}
	return row{Row: of}
}

// urlPath is a raw path as a part of an address.
func urlPath(raw string) string {
	parts := strings.Split(raw, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
