package agent

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// facts are the scalars of a JSON object by the names that lead to them, joined by
// dots: "tool_input.file_path". Indexes are left out, so that the elements
// of an array are several values of one name. null is no value.
type facts map[string][]string

// get returns the first value of the first of the names that has one.
func (f facts) get(names ...string) string {
	for _, name := range names {
		for _, value := range f[name] {
			if value != "" {
				return value
			}
		}
	}
	return ""
}

// maxDepth is how deep values are looked for. None that an adapter asks for is deeper than six.
const maxDepth = 8

// readFacts returns what data says, and an error if it is no JSON object that is whole. The facts
// in front of the fault are there all the same, as is the beginning of a text that
// the end of data cuts off. Names that come again add values; text that is no UTF-8 gets
// U+FFFD: agents pass on what models wrote.
func readFacts(data []byte) (facts, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return facts{}, errors.New("nothing was sent")
	}
	r := factReader{found: facts{}, data: data}
	r.dec = jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if r.dec.PeekKind() != '{' {
		return r.found, errors.New("what was sent is no JSON object")
	}
	if err := r.value("", 0); err != nil {
		return r.found, err
	}
	return r.found, nil
}

type factReader struct {
	found facts
	data  []byte
	dec   *jsontext.Decoder
}

// value reads the next value, whose name is given.
func (r *factReader) value(name string, depth int) error {
	kind := r.dec.PeekKind()
	if depth > maxDepth {
		return fault(r.dec.SkipValue())
	}
	switch kind {
	case '{', '[':
		return r.members(name, depth, kind == '{')
	}
	start := r.dec.InputOffset()
	token, err := r.dec.ReadToken()
	if err != nil {
		r.cutOff(name, start, err)
		return fault(err)
	}
	if kind != 'n' {
		r.found[name] = append(r.found[name], token.String())
	}
	return nil
}

func (r *factReader) members(name string, depth int, object bool) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return fault(err)
	}
	for {
		switch kind := r.dec.PeekKind(); {
		case kind == '}' || kind == ']':
			_, err := r.dec.ReadToken()
			return fault(err)
		case object:
			token, err := r.dec.ReadToken()
			if err != nil {
				return fault(err)
			}
			member := token.String()
			if name != "" {
				member = name + "." + member
			}
			if err := r.value(member, depth+1); err != nil {
				return err
			}
		default:
			if err := r.value(name, depth+1); err != nil {
				return err
			}
		}
	}
}

// cutOff keeps the beginning of the text that was being read as the data ended: a
// prompt may be longer than what is taken of a payload.
func (r *factReader) cutOff(name string, start int64, err error) {
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		return
	}
	_, text, isText := bytes.Cut(r.data[start:], []byte(`"`))
	if !isText {
		return
	}
	// What is unquoted up to the fault comes with the error, which an escape that is cut off is.
	whole, _ := jsontext.AppendUnquote(nil, append([]byte{'"'}, text...))
	if value := strings.TrimRight(string(whole), string(utf8.RuneError)); value != "" {
		r.found[name] = append(r.found[name], value)
	}
}

// fault says in short what is wrong: the library's words have Go's names in them.
func fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("what was sent ends too early")
	}
	return errors.New("what was sent is malformed JSON")
}
