package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"

	"decree/page"
	"decree/recorder"
)

//go:embed static/script.js
var static embed.FS

// routes are all that the server answers to; a server that is read-only has none that changes anything.
func (s *Server) routes() {
	look := func(pattern string, do http.HandlerFunc) {
		s.looks = append(s.looks, pattern)
		s.mux.HandleFunc("GET "+s.path+pattern, do)
	}
	look("/{$}", s.timeline)
	look("/static/{file}", s.static)
	look("/r/{id}", s.reading(s.record))
	look("/f/{path...}", s.reading(s.file))
	look("/drafts", s.reading(s.drafts))
	look("/race/{name}", s.reading(s.race))
	look("/sessions/{id}", s.reading(s.session))
	look("/inbox", s.reading(s.inbox))
	look("/health", s.reading(s.health))
	s.api(look)
	if s.ReadOnly { // also no plan: it would lock the project
		return
	}
	change := func(pattern string, do http.HandlerFunc) {
		s.changes = append(s.changes, pattern)
		s.mux.HandleFunc("POST "+s.path+pattern, s.writes(do))
	}
	look("/plan/{id}", s.showPlan)
	change("/checkpoint", s.checkpoint)
	change("/api/v1/plan", s.apiPlan)
	change("/api/v1/perform", s.apiPerform)
	change("/plan", s.plan)
	change("/perform", s.perform)
	change("/r/{id}/label", s.label)
	change("/inbox/retry", s.retry)
	change("/inbox/send", s.send)
}

// reading has do look at the project; where it cannot be opened that is the answer.
func (s *Server) reading(do func(http.ResponseWriter, *http.Request, *recorder.Reader)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec, err := s.reader.Get()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		do(w, r, rec)
	}
}

// asset is a file that is the same for every server of this version.
type asset struct {
	data []byte
	tag  string
}

var assets = map[string]asset{}

func init() {
	script, err := static.ReadFile("static/script.js")
	if err != nil {
		panic(err) // it is embedded
	}
	for name, data := range map[string][]byte{"script.js": script, "style.css": []byte(page.Style)} {
		sum := sha256.Sum256(data)
		assets[name] = asset{data, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
}

// static serves what may be kept by a browser, as long as it asks whether it is still the same.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.PathValue("file")]
	if !ok {
		s.refuse(w, r, http.StatusNotFound, "there is no such file")
		return
	}
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("ETag", a.tag)
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.PathValue("file"))))
	w.Header().Set("Content-Length", strconv.Itoa(len(a.data)))
	_, _ = w.Write(a.data)
}
