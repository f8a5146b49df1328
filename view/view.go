// Package view turns what decree knows into the objects that `--json` prints: records,
// plans, results, files, messages, each as a documented type with its fields in the
// order in which they are written. A server and the command line use the same ones, so
// that a program needs to learn them once.
//
// It converts and formats; it opens nothing, asks nothing and prints nothing. Paths are
// quoted as in the manifest, sizes are in bytes, times are RFC 3339 in UTC. A field that
// a script may hold is never renamed or taken away; new ones come beside it.
package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// timeForm is how run.json writes a time, in UTC.
const timeForm = "2006-01-02T15:04:05.000000000Z"

// Encode writes v on w as an indented object or list that ends in a newline, without
// HTML escapes: a path stays readable. What a terminal would obey is escaped.
func Encode(w io.Writer, v any) error {
	enc := encoder(escaping{w})
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// EncodeLine is Encode on one line.
func EncodeLine(w io.Writer, v any) error { return encoder(escaping{w}).Encode(v) }

// encoder writes JSON without HTML escapes.
func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// EncodeEach writes what each yields as Encode writes a list, without holding it.
func EncodeEach(w io.Writer, each func(yield func(any) error) error) error {
	return encodeList(w, func(item func([]byte) error) error {
		return each(func(v any) error {
			var b bytes.Buffer
			enc := encoder(&b)
			enc.SetIndent("  ", "  ")
			b.WriteString("  ")
			if err := enc.Encode(v); err != nil {
				return err
			}
			return item(b.Bytes())
		})
	})
}

// encodeList writes JSON objects as a list, one after the other as they come; an object's
// last newline is left out.
func encodeList(w io.Writer, each func(item func(data []byte) error) error) error {
	between := "[\n"
	err := each(func(data []byte) error {
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
		between = ",\n"
		_, err := w.Write(Escape(bytes.TrimRight(data, "\n")))
		return err
	})
	if err != nil {
		return err
	}
	end := "\n]\n"
	if between[0] == '[' {
		end = "[]\n"
	}
	_, err = io.WriteString(w, end)
	return err
}

// plain is v on one line, without HTML escapes and without a newline.
func plain(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	err := encoder(&b).Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// escaping writes JSON as Escape has it. Each Write holds whole characters.
type escaping struct{ to io.Writer }

func (w escaping) Write(p []byte) (int, error) {
	if _, err := w.to.Write(Escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Escape is JSON with the unsafe characters of its strings as \u escapes: for a program
// the text is the same.
func Escape(p []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && Unsafe(r) } // JSON has escaped the rest
	if !bytes.ContainsFunc(p, hidden) {
		return p
	}
	out := make([]byte, 0, len(p)+16)
	for i, size := 0, 0; i < len(p); i += size {
		var r rune
		r, size = utf8.DecodeRune(p[i:])
		if hidden(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, p[i:i+size]...)
		}
	}
	return out
}
