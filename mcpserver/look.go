package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"decree/history"
	"decree/patch"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// maxText bounds what one answer has of a diff or a file, in bytes, and maxList what it has of a list.
const (
	maxText = 64 << 10
	maxList = 256 << 10
)

// page is a part of a list, and where the next part begins.
type page struct {
	Records []json.RawMessage `json:"records"`
	Next    string            `json:"next_cursor,omitempty"`
	Notes   []string          `json:"notes,omitempty"`
}

func (s *server) history(_ context.Context, rec *recorder.Reader, a arguments) (any, error) {
	limit, err := bounded(a.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	keep := func(*history.Record) bool { return true }
	if a.Cursor != "" {
		last, err := rec.History().Get(a.Cursor)
		if err != nil {
			return nil, usagef("cursor %q: no record has this id any more", a.Cursor).Hintf("call again without a cursor")
		}
		keep = func(r *history.Record) bool { return history.Compare(r, last) < 0 }
	}
	paths, err := pathsOf(rec.Project().Root, a.Paths)
	if err != nil {
		return nil, err
	}
	names, err := labels(rec)
	if err != nil {
		return nil, err
	}
	if len(paths) > 0 {
		return moments(rec, history.PastOptions{Paths: paths, Keep: keep}, limit, names)
	}
	list, err := rec.History().List(history.ListOptions{Limit: limit + 1, Keep: keep})
	if err != nil {
		return nil, err
	}
	out := page{Records: []json.RawMessage{}, Notes: list.Warnings()}
	size := 0
	for i, r := range list.Records {
		raw := view.Record(r, names)
		if size += len(raw); i == limit || i > 0 && size > maxList {
			out.Next = list.Records[i-1].ID
			break
		}
		out.Records = append(out.Records, raw)
	}
	return out, nil
}

// moments are what changed paths. All of one record stay together.
func moments(rec *recorder.Reader, o history.PastOptions, limit int, names view.Labels) (any, error) {
	out := page{Records: []json.RawMessage{}}
	size, last := 0, ""
	var failed error
	warnings, err := rec.History().Past(o, func(m history.Moment) bool {
		if (len(out.Records) >= limit || size > maxList) && m.Record.ID != last {
			out.Next = last
			return false
		}
		raw, err := view.Moment(m, names)
		if err != nil {
			failed = err
			return false
		}
		out.Records, size, last = append(out.Records, raw), size+len(raw), m.Record.ID
		return true
	})
	out.Notes = warnings
	return out, errors.Join(err, failed)
}

// point is the record that ref names, the newest for "".
func (s *server) point(rec *recorder.Reader, ref string) (recorder.Point, error) {
	if ref == "" {
		ref = "last"
	}
	return s.Resolve(rec, ref)
}

// content is a file as a record found it.
type content struct {
	view.File
	Text   string `json:"text,omitempty"`
	Binary bool   `json:"binary,omitempty"`
	Cut    bool   `json:"cut,omitempty"` // there is more than an answer has
}

func (s *server) show(ctx context.Context, rec *recorder.Reader, a arguments) (any, error) {
	at, err := s.point(rec, a.Ref)
	if err != nil {
		return nil, err
	}
	if len(a.Paths) == 0 {
		names, err := labels(rec)
		if err != nil {
			return nil, err
		}
		return view.Record(at.Record, names), nil
	}
	paths, err := pathsOf(rec.Project().Root, a.Paths)
	if err != nil {
		return nil, err
	}
	files := []content{}
	room := int64(maxText)
	for _, path := range paths {
		file, err := fileAt(ctx, rec, at, path, room)
		if err != nil {
			return nil, err
		}
		room -= int64(len(file.Text))
		files = append(files, file)
	}
	return map[string]any{"files": files}, nil
}

// fileAt reads at most room bytes of a file.
func fileAt(ctx context.Context, rec *recorder.Reader, at recorder.Point, path tree.Path, room int64) (content, error) {
	r, entry, err := rec.Content(ctx, at, path)
	if entry.Type == tree.Dir || path == "" {
		return content{}, usagef("%s is a directory", view.ShownPath(path)).Hintf("name files: history with this path says which of them changed")
	}
	if err != nil {
		return content{}, err
	}
	defer r.Close()
	out := content{File: view.FileAt(at, path, entry)}
	data, err := io.ReadAll(io.LimitReader(r, room+1))
	if err != nil {
		return out, err
	}
	if int64(len(data)) > room {
		out.Cut = true
		data = whole(data[:room])
	}
	if out.Binary = !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0; !out.Binary {
		out.Text = string(data)
	}
	return out, nil
}

// whole leaves out a character that was cut off at the end.
func whole(data []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if c := data[len(data)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(data[len(data)-n:]) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}

func (s *server) diff(ctx context.Context, rec *recorder.Reader, a arguments) (any, error) {
	from, err := offset(a.Cursor)
	if err != nil {
		return nil, err
	}
	paths, err := pathsOf(rec.Project().Root, a.Paths)
	if err != nil {
		return nil, err
	}
	write, err := s.diffOf(ctx, rec, a, paths)
	if err != nil {
		return nil, err
	}
	part := &window{skip: from}
	if err := write(part); err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	out := map[string]any{}
	text := part.buf.Bytes()
	if len(text) > maxText {
		text = text[:maxText]
		if i := bytes.LastIndexByte(text, '\n'); i > 0 {
			text = text[:i+1]
		} else {
			text = whole(text)
		}
		out["next_cursor"] = strconv.FormatInt(from+int64(len(text)), 10)
	}
	out["diff"] = string(text)
	return out, nil
}

// diffOf returns what writes the diff that is asked for.
func (s *server) diffOf(ctx context.Context, rec *recorder.Reader, a arguments, paths []tree.Path) (func(io.Writer) error, error) {
	switch {
	case len(a.Refs) > 2 || len(a.Refs) > 0 && a.Ref != "":
		return nil, usagef("a diff is of one ref, or of two refs")
	case len(a.Refs) == 1:
		a.Ref = a.Refs[0]
	}
	if len(a.Refs) == 2 {
		o := recorder.DiffOptions{To: recorder.Point{Now: true}, Paths: paths}
		var err error
		if o.From, err = s.point(rec, a.Refs[0]); err != nil {
			return nil, err
		}
		if a.Refs[1] != "now" {
			if o.To, err = s.point(rec, a.Refs[1]); err != nil {
				return nil, err
			}
			o.To.After = true
		}
		return func(w io.Writer) error {
			_, err := rec.Diff(ctx, w, o)
			return err
		}, nil
	}
	at, err := s.point(rec, a.Ref)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return recordDiff(rec, at.Record.ID, paths, w) }, nil
}

// recordDiff writes a record's own diff, or its sections of paths.
func recordDiff(rec *recorder.Reader, id string, paths []tree.Path, w io.Writer) error {
	f, err := rec.History().OpenFile(id, history.ChangesFile)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(paths) == 0 {
		_, err := io.Copy(w, f)
		return err
	}
	return patch.EachSection(f, paths, func(sec *patch.Section) error {
		_, err := w.Write(sec.Raw)
		return err
	})
}

// window keeps what is written behind the first skip bytes, until an answer is full.
type window struct {
	skip int64
	buf  bytes.Buffer
}

var errEnough = errors.New("the answer is full")

func (w *window) Write(p []byte) (int, error) {
	n := len(p)
	if skipped := min(w.skip, int64(len(p))); skipped > 0 {
		p, w.skip = p[skipped:], w.skip-skipped
	}
	w.buf.Write(p)
	if w.buf.Len() > maxText {
		return n, errEnough
	}
	return n, nil
}

func (s *server) blame(ctx context.Context, rec *recorder.Reader, a arguments) (any, error) {
	paths, err := pathsOf(rec.Project().Root, a.Paths)
	if err != nil {
		return nil, err
	}
	if len(paths) != 1 {
		return nil, usagef("blame is of one file: give one path")
	}
	first, err := offset(a.Cursor)
	if err != nil {
		return nil, err
	}
	limit, err := bounded(a.Limit, 200, 1000)
	if err != nil {
		return nil, err
	}
	file, err := rec.Blame(ctx, paths[0])
	if err != nil {
		return nil, err
	}
	lines, size := []view.Line{}, 0
	out := map[string]any{}
	err = file.Each(func(i int, l recorder.Blamed) error {
		if int64(i) < first {
			return nil
		}
		if len(lines) == limit || len(lines) > 0 && size > maxText {
			out["next_cursor"] = strconv.Itoa(i)
			return errEnough
		}
		l.Text = slices.Clone(l.Text[:min(len(l.Text), maxText)])
		size += len(l.Text)
		lines = append(lines, view.Blamed(i, l))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	out["lines"] = lines
	return out, nil
}
