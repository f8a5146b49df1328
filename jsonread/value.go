package jsonread

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is one value of an object or array. Each method that reads it notes as a fault
// what it finds instead, and returns zero then; null is the zero of every kind.
type Value struct {
	name  string
	raw   jsontext.Value
	fault error
}

// Raw returns the value's text, which must be copied to be kept.
func (v *Value) Raw() []byte { return v.raw }

// Null says whether the value is null.
func (v *Value) Null() bool { return string(v.raw) == "null" }

// Err returns the first fault.
func (v *Value) Err() error { return v.fault }

// Expected notes that the value is not what it should be: "a time".
func (v *Value) Expected(what string) { v.Fail(errors.New("expected " + what)) }

// Fail notes a fault.
func (v *Value) Fail(err error) {
	if v.fault == nil {
		v.fault = &memberError{v.name, err}
	}
}

// memberError is a fault with the name of its member.
type memberError struct {
	name string
	err  error
}

func (e *memberError) Error() string {
	name := e.name
	if strings.ContainsFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		name = strconv.Quote(name)
	}
	return name + ": " + e.err.Error()
}
func (e *memberError) Unwrap() error { return e.err }

// Bytes is the text of a string, which must be copied to be kept.
func (v *Value) Bytes() []byte {
	if v.Null() {
		return nil
	}
	if v.raw.Kind() != '"' {
		v.Expected("a string")
		return nil
	}
	if text := v.raw[1 : len(v.raw)-1]; bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	text, err := jsontext.AppendUnquote(nil, v.raw)
	if err != nil {
		v.Expected("a string")
		return nil
	}
	return text
}

// Text is the text of a string.
func (v *Value) Text() string { return string(v.Bytes()) }

// Known is Text where it is nearly always one of words, which then need no copy.
func (v *Value) Known(words ...string) string {
	b := v.Bytes()
	for _, w := range words {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}

// Int is a whole number.
func (v *Value) Int() int64 {
	if v.Null() {
		return 0
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil {
		v.Expected("a whole number")
		return 0
	}
	return n
}

// Bool is true or false.
func (v *Value) Bool() bool {
	if kind := v.raw.Kind(); kind != 't' && kind != 'f' && kind != 'n' {
		v.Expected("true or false")
	}
	return v.raw.Kind() == 't'
}

// Array calls item for each value of an array.
func (v *Value) Array(item func(v *Value)) {
	if v.Null() {
		return
	}
	if v.raw.Kind() != '[' {
		v.Expected("a list")
		return
	}
	o, release := open(v.raw)
	defer release()
	_, err := o.dec.ReadToken()
	for err == nil && v.fault == nil && o.dec.PeekKind() != ']' {
		e := Value{name: v.name}
		if e.raw, err = o.dec.ReadValue(); err == nil {
			item(&e)
			v.fault = e.fault
		}
	}
	if err != nil {
		v.Fail(err) // not reached: the array was read once as a whole
	}
}

// Texts is an array of strings; never nil.
func (v *Value) Texts() []string {
	out := []string{}
	v.Array(func(e *Value) { out = append(out, e.Text()) })
	return out
}

// Members calls member for each member of an object.
func (v *Value) Members(member func(name string, m *Value)) {
	if v.Null() {
		return
	}
	err := Object(v.raw, func(name string, m *Value) error {
		member(name, m)
		return nil
	})
	if err != nil {
		v.Fail(err)
	}
}
