package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"decree/patch"
)

// This file reads JSON objects field by field: it keeps the order of unknown
// fields, and ten thousand records are read in the time that encoding/json
// takes for a thousand.

const maxNesting = 64

var (
	errJSON   = errors.New("not JSON")
	errNested = errors.New("JSON nested too deep")
)

// object calls field for each field of the one JSON object in data. key and v
// are views of data, good until field returns.
func object(data []byte, field func(key string, v *value) error) error {
	s := scan{data: data, plain: plainText(data)}
	if !s.plain && !utf8.Valid(data) {
		return errJSON
	}
	if err := s.object(field); err != nil {
		return err
	}
	s.space()
	if s.pos != len(data) {
		return errJSON
	}
	return nil
}

// scan is a position in JSON text.
type scan struct {
	data  []byte
	pos   int
	depth int
	plain bool // a string ends at the next quote
}

// plainText says whether data is ASCII without control characters and
// backslashes, as nearly every line of the log is.
func plainText(data []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	odd := uint64(0)
	for ; len(data) >= 8; data = data[8:] {
		v := binary.LittleEndian.Uint64(data)
		slash := v ^ '\\'*ones
		// Each sets the top bit of a byte that is above 7f, below 20, or a backslash,
		// and of none below the first such byte.
		odd |= (v | (v - ' '*ones) | (slash-ones) & ^slash) & tops
	}
	if odd != 0 {
		return false
	}
	for _, c := range data {
		if c < ' ' || c >= 0x80 || c == '\\' {
			return false
		}
	}
	return true
}

func (s *scan) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

// at passes over spaces and c, if c comes next.
func (s *scan) at(c byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scan) object(field func(key string, v *value) error) error {
	if !s.at('{') {
		return errJSON
	}
	if s.at('}') {
		return nil
	}
	v := value{plain: s.plain}
	for {
		s.space()
		start := s.pos
		if err := s.skipText(); err != nil {
			return err
		}
		v.raw = s.data[start:s.pos]
		name := v.view()
		if v.fault != nil || !s.at(':') {
			return errJSON
		}
		s.space()
		start = s.pos
		if err := s.skip(); err != nil {
			return err
		}
		if field != nil {
			v.name, v.raw = name, s.data[start:s.pos]
			if err := field(name, &v); err != nil {
				return err
			}
		}
		if s.at('}') {
			return nil
		}
		if !s.at(',') {
			return errJSON
		}
	}
}

// skip passes over one value, of which it takes nothing on trust.
func (s *scan) skip() error {
	s.space()
	if s.pos == len(s.data) {
		return errJSON
	}
	switch s.data[s.pos] {
	case '"':
		return s.skipText()
	case '{', '[':
		return s.skipNested()
	}
	start := s.pos
	for s.pos < len(s.data) && !delimiter(s.data[s.pos]) {
		s.pos++
	}
	word := s.data[start:s.pos]
	if plainNumber(word) {
		return nil
	}
	if !json.Valid(word) {
		return errJSON
	}
	return nil
}

func (s *scan) skipNested() error {
	if s.depth++; s.depth > maxNesting {
		return errNested
	}
	defer func() { s.depth-- }()
	if s.data[s.pos] == '{' {
		return s.object(nil)
	}
	return s.array(nil)
}

func (s *scan) array(item func(raw []byte)) error {
	if !s.at('[') {
		return errJSON
	}
	if s.at(']') {
		return nil
	}
	for {
		s.space()
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		if item != nil {
			item(s.data[start:s.pos])
		}
		if s.at(']') {
			return nil
		}
		if !s.at(',') {
			return errJSON
		}
	}
}

func (s *scan) skipText() error {
	if s.pos >= len(s.data) || s.data[s.pos] != '"' {
		return errJSON
	}
	if s.plain {
		n := bytes.IndexByte(s.data[s.pos+1:], '"')
		if n < 0 {
			return errJSON
		}
		s.pos += n + 2
		return nil
	}
	start := s.pos
	escaped := false
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			if escaped && !json.Valid(s.data[start:s.pos]) {
				return errJSON
			}
			return nil
		case c == '\\':
			escaped = true
			s.pos++
		case c < 0x20:
			return errJSON
		}
	}
	return errJSON
}

func delimiter(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

// plainNumber says whether b is a whole number of at most 18 digits.
func plainNumber(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 || b[0] == '0' && len(b) > 1 {
		return false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// value is one JSON value. Its methods note the first fault and return zero
// after it; null is the zero of every kind.
type value struct {
	name  string
	raw   []byte
	fault error
	plain bool // as in scan
}

func (v *value) err() error { return v.fault }

func (v *value) fail(want string) {
	if v.fault == nil {
		v.fault = errors.New(v.name + ": must be " + want)
	}
}

func (v *value) null() bool { return string(v.raw) == "null" }

// text is a string that may be kept.
func (v *value) text() string { return strings.Clone(v.view()) }

// view is a string that lives as long as the data does.
func (v *value) view() string {
	if v.null() {
		return ""
	}
	if len(v.raw) < 2 || v.raw[0] != '"' {
		v.fail("text")
		return ""
	}
	inner := v.raw[1 : len(v.raw)-1]
	if v.plain || bytes.IndexByte(inner, '\\') < 0 {
		return unsafe.String(unsafe.SliceData(inner), len(inner))
	}
	var s string
	if json.Unmarshal(v.raw, &s) != nil {
		v.fail("text")
	}
	return s
}

// known is text where it is nearly always one of a few words.
func (v *value) known(words ...string) string {
	s := v.view()
	for _, w := range words {
		if s == w {
			return w
		}
	}
	return strings.Clone(s)
}

func (v *value) path() string {
	s, err := patch.Unquote(v.text())
	if err != nil && v.fault == nil {
		v.fault = errors.New(v.name + ": " + err.Error())
	}
	return s
}

func (v *value) number() int64 {
	if v.null() {
		return 0
	}
	if plainNumber(v.raw) && v.raw[0] != '-' {
		n := int64(0)
		for _, c := range v.raw {
			n = 10*n + int64(c-'0')
		}
		return n
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil {
		v.fail("a whole number")
		return 0
	}
	return n
}

func (v *value) time() time.Time {
	s := v.view()
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() < firstYear || t.Year() > lastYear {
		v.fail("a time")
		return time.Time{}
	}
	return t.UTC()
}

func (v *value) hash() patch.Hash {
	s := v.view()
	if s == "" {
		return patch.Hash{}
	}
	h, err := patch.ParseHash(s)
	if err != nil {
		v.fail("64 hex digits")
	}
	return h
}

func (v *value) array(item func(v *value)) {
	if v.null() {
		return
	}
	s := scan{data: v.raw, plain: v.plain}
	e := value{name: v.name, plain: v.plain}
	err := s.array(func(raw []byte) {
		e.raw = raw
		item(&e)
		if v.fault == nil {
			v.fault = e.fault
		}
	})
	if err != nil {
		v.fail("a list")
	}
}

func (v *value) texts() []string {
	out := []string{}
	v.array(func(e *value) { out = append(out, e.text()) })
	return out
}

func (v *value) paths() []string {
	var out []string
	v.array(func(e *value) { out = append(out, e.path()) })
	return out
}

// fields reads a nested object.
func (v *value) fields(field func(key string, f *value)) {
	if v.null() {
		return
	}
	s := scan{data: v.raw, plain: v.plain}
	err := s.object(func(key string, f *value) error {
		field(key, f)
		return f.fault
	})
	if err != nil && v.fault == nil {
		v.fault = errors.New(v.name + ": " + err.Error())
	}
}

func (v *value) changes() (c Changes) {
	v.fields(func(key string, f *value) {
		switch key {
		case "created":
			c.Created = int(f.number())
		case "modified":
			c.Modified = int(f.number())
		case "deleted":
			c.Deleted = int(f.number())
		case "added_lines":
			c.AddedLines = int(f.number())
		case "removed_lines":
			c.RemovedLines = int(f.number())
		}
	})
	return c
}

func (v *value) actor() (a Actor) {
	v.fields(func(key string, f *value) {
		switch key {
		case "user":
			a.User = f.text()
		case "host":
			a.Host = f.text()
		case "agent":
			a.Agent = f.text()
		case "session":
			a.Session = f.text()
		case "turn":
			a.Turn = int(f.number())
		}
	})
	return a
}
