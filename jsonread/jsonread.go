// Package jsonread reads JSON objects member by member, and takes only what every reader
// understands in the same way: RFC 8259 in UTF-8, no name twice in an object, nothing
// behind it. encoding/json would let repeated names, names in another case and bytes that
// are no text pass. Members come in the order in which they stand, with their raw
// bytes, so that unknown ones can be kept.
package jsonread

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxNames bounds the member names that are kept from one object to the next.
const maxNames = 256

// object is a decoder that is used again, with the names that it has seen: the same few
// dozen stand in every object of a kind.
type object struct {
	in    bytes.Buffer
	dec   *jsontext.Decoder
	names map[string]string
}

var objects = sync.Pool{New: func() any {
	return &object{dec: jsontext.NewDecoder(new(bytes.Buffer)), names: map[string]string{}}
}}

func (o *object) name(b []byte) string {
	if s, ok := o.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(o.names) < maxNames {
		o.names[s] = s
	}
	return s
}

// open makes o read data and returns what gives it back.
func open(data []byte) (o *object, release func()) {
	o = objects.Get().(*object)
	o.in = *bytes.NewBuffer(data)
	o.dec.Reset(&o.in)
	return o, func() {
		o.in = bytes.Buffer{}
		o.dec.Reset(&o.in)
		objects.Put(o)
	}
}

// Object calls member for each member of the one JSON object in data. The value is good
// until member returns. The error is the first that is found: what is wrong with the
// text, member's, or a fault that a method of the value has noted.
func Object(data []byte, member func(name string, v *Value) error) error {
	o, release := open(data)
	defer release()
	if kind := o.dec.PeekKind(); kind != '{' && kind != 0 {
		return errors.New("no JSON object")
	}
	if _, err := o.dec.ReadToken(); err != nil {
		return syntax(err)
	}
	var v Value
	for o.dec.PeekKind() != '}' {
		raw, err := o.dec.ReadValue()
		if err != nil {
			return syntax(err)
		}
		v = Value{}
		if v.name, err = o.unquoted(raw); err != nil {
			return syntax(err)
		}
		if v.raw, err = o.dec.ReadValue(); err != nil {
			return syntax(err)
		}
		if err = member(v.name, &v); err == nil {
			err = v.fault
		}
		if err != nil {
			return err
		}
	}
	if _, err := o.dec.ReadToken(); err != nil {
		return syntax(err)
	}
	if _, err := o.dec.ReadToken(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return nil
}

func (o *object) unquoted(raw []byte) (string, error) {
	if text := raw[1 : len(raw)-1]; bytes.IndexByte(text, '\\') < 0 {
		return o.name(text), nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err
}

// syntax says in short what is wrong: where the text comes from, the caller knows.
func syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("malformed JSON: it ends too early")
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return errors.New("malformed JSON: a name stands twice in one object")
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("malformed JSON: %s at byte %d", s.Err.Error(), s.ByteOffset+1)
	}
	return errors.New("malformed JSON: " + err.Error())
}
