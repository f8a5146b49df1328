package history

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"decree/tree"
)

// writer appends the fields of one JSON object.
type writer struct {
	dst        []byte
	sep, colon string
	begun      bool
}

// compact begins an object without blanks behind dst.
func compact(dst []byte) *writer { return &writer{dst: append(dst, '{'), sep: ",", colon: ":"} }

// spaced begins one with a blank behind each comma and colon.
func spaced(dst []byte) *writer { return &writer{dst: append(dst, '{'), sep: ", ", colon: ": "} }

// end ends the object and returns all that was appended.
func (w *writer) end() []byte { return append(w.dst, '}') }

func (w *writer) key(name string) {
	if w.begun {
		w.dst = append(w.dst, w.sep...)
	}
	w.begun = true
	w.dst = appendText(w.dst, name)
	w.dst = append(w.dst, w.colon...)
}

// value writes what appends itself.
func (w *writer) value(name string, appendTo func(dst []byte) []byte) {
	w.key(name)
	w.dst = appendTo(w.dst)
}

func (w *writer) raw(name, value string) {
	w.key(name)
	w.dst = append(w.dst, value...)
}

func (w *writer) number(name string, v int64) {
	w.key(name)
	w.dst = strconv.AppendInt(w.dst, v, 10)
}

func (w *writer) text(name, v string) {
	w.key(name)
	w.dst = appendText(w.dst, v)
}

// textIfAny leaves the field out where v is "".
func (w *writer) textIfAny(name, v string) {
	if v != "" {
		w.text(name, v)
	}
}

func (w *writer) texts(name string, v []string) { writeList(w, name, v, appendText) }

// writeList writes a list; each appends an item to dst.
func writeList[T any](w *writer, name string, items []T, each func(dst []byte, item T) []byte) {
	w.key(name)
	w.dst = append(w.dst, '[')
	for i, item := range items {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = each(w.dst, item)
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) paths(name string, v []tree.Path) {
	quoted := make([]string, len(v))
	for i, p := range v {
		quoted[i] = tree.Quote(p)
	}
	w.texts(name, quoted)
}

func (w *writer) time(name string, t time.Time) {
	w.key(name)
	if t.IsZero() {
		w.dst = append(w.dst, "null"...)
		return
	}
	w.dst = append(w.dst, '"')
	w.dst = t.UTC().AppendFormat(w.dst, timeForm)
	w.dst = append(w.dst, '"')
}

func (w *writer) hash(name string, h tree.Hash) {
	w.key(name)
	if h.IsZero() {
		w.dst = append(w.dst, `""`...)
		return
	}
	w.dst = append(w.dst, '"')
	w.dst = hex.AppendEncode(w.dst, h[:])
	w.dst = append(w.dst, '"')
}

// appendText writes s as a JSON string. An argument that is not UTF-8 is shown
// C-quoted as paths are: JSON has no bytes.
func appendText(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = tree.Quote(s)
	}
	return tree.AppendJSONString(dst, s)
}

func (w *writer) file(v fileStat) {
	w.key("file")
	w.dst = strconv.AppendInt(append(w.dst, '['), v.size, 10)
	w.dst = strconv.AppendInt(append(w.dst, ','), v.mtime, 10)
	w.dst = append(w.dst, ']')
}

func (w *writer) files(files map[string]tree.Hash) {
	w.key("files")
	in := compact(w.dst)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		in.hash(name, files[name])
	}
	w.dst = in.end()
}

// appendHash writes a hash as JSON, null for none.
func appendHash(dst []byte, h tree.Hash) []byte {
	if h.IsZero() {
		return append(dst, "null"...)
	}
	return append(hex.AppendEncode(append(dst, '"'), h[:]), '"')
}
