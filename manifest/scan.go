package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// maxToken bounds one string or number: the longest path, each byte of it escaped by
// C quoting and JSON, fits.
const maxToken = 256 << 10

// maxNesting bounds the unknown values that are passed over.
const maxNesting = 64

// scanner reads JSON tokens from a stream through one buffer. The first error stays.
type scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int
	line     int
	eof      bool
	err      error
	text     []byte // the last string, when it had escapes
}

func newScanner(r io.Reader) *scanner {
	return &scanner{r: r, buf: make([]byte, 64<<10), line: 1}
}

// SyntaxError says what is wrong with a manifest.json, and on which line, from 1.
type SyntaxError struct {
	Line int
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("manifest line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *SyntaxError) Unwrap() error { return e.Err }

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = &SyntaxError{Line: s.line, Err: err}
	}
}

func (s *scanner) failf(format string, args ...any) { s.fail(fmt.Errorf(format, args...)) }

// more reads on, keeping what has not been taken; false at the end or on an error.
func (s *scanner) more() bool {
	if s.eof || s.err != nil {
		return false
	}
	if s.pos > 0 {
		s.end = copy(s.buf, s.buf[s.pos:s.end])
		s.pos = 0
	}
	if s.end == len(s.buf) {
		if len(s.buf) >= maxToken {
			s.fail(errors.New("value too long"))
			return false
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err == io.EOF {
			s.eof = true
		} else if err != nil {
			s.err = err
			return false
		}
		if n > 0 {
			return true
		}
		if s.eof {
			return false
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// peek returns the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case '\n':
				s.line++
				s.pos++
			case ' ', '\t', '\r':
				s.pos++
			default:
				return c
			}
		}
		if !s.more() {
			return 0
		}
	}
}

// take takes c, which must come next.
func (s *scanner) take(c byte) bool {
	got := s.peek()
	if s.err != nil {
		return false
	}
	if got != c || s.pos == s.end {
		s.unexpected(fmt.Sprintf("%q", c))
		return false
	}
	s.pos++
	return true
}

func (s *scanner) unexpected(want string) {
	if s.err != nil {
		return
	}
	if s.pos == s.end {
		s.fail(fmt.Errorf("ends where %s is expected: %w", want, io.ErrUnexpectedEOF))
		return
	}
	s.failf("%q where %s is expected", s.buf[s.pos], want)
}

// str takes a string and returns its text, valid until the next token.
func (s *scanner) str() []byte {
	if !s.take('"') {
		return nil
	}
	n := 0
	escaped := false
	for {
		i := bytes.IndexByte(s.buf[s.pos+n:s.end], '"')
		if i < 0 {
			n = s.end - s.pos
			if !s.more() {
				s.unexpectedEnd()
				return nil
			}
			continue
		}
		n += i
		if slashes := trailing(s.buf[s.pos:s.pos+n], '\\'); slashes%2 == 1 {
			n++
			continue
		}
		break
	}
	raw := s.buf[s.pos : s.pos+n]
	s.pos += n + 1
	for _, c := range raw {
		if c < 0x20 {
			s.failf("control character %#02x in a string", c)
			return nil
		}
		escaped = escaped || c == '\\'
	}
	if !utf8.Valid(raw) {
		s.fail(errors.New("string is not UTF-8"))
		return nil
	}
	if !escaped {
		return raw
	}
	return s.unescape(raw)
}

func (s *scanner) unexpectedEnd() {
	s.pos = s.end
	s.unexpected("the end of a string")
}

// trailing counts how often c stands at the end of b.
func trailing(b []byte, c byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == c {
		n++
	}
	return n
}

func (s *scanner) unescape(raw []byte) []byte {
	s.text = s.text[:0]
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			s.text = append(s.text, raw[i])
			continue
		}
		i++ // there is a byte: a string does not end with an odd backslash
		switch c := raw[i]; c {
		case '"', '\\', '/':
			s.text = append(s.text, c)
		case 'b':
			s.text = append(s.text, '\b')
		case 'f':
			s.text = append(s.text, '\f')
		case 'n':
			s.text = append(s.text, '\n')
		case 'r':
			s.text = append(s.text, '\r')
		case 't':
			s.text = append(s.text, '\t')
		case 'u':
			r, n := hexRune(raw[i+1:])
			if n == 0 {
				s.fail(errors.New(`malformed \u escape`))
				return nil
			}
			s.text = utf8.AppendRune(s.text, r)
			i += n
		default:
			s.failf(`unknown escape \%c`, c)
			return nil
		}
	}
	return s.text
}

// hexRune reads what follows \u, a surrogate pair too; n is 0 if it is malformed.
func hexRune(b []byte) (r rune, n int) {
	r, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(b) < 10 || b[4] != '\\' || b[5] != 'u' {
		return 0, 0
	}
	low, ok := hex4(b[6:])
	if !ok {
		return 0, 0
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0
	}
	return r, 10
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// word takes a number, true, false or null, valid until the next token.
func (s *scanner) word() []byte {
	s.peek()
	n := 0
	for {
		for s.pos+n < s.end && isWord(s.buf[s.pos+n]) {
			n++
		}
		if s.pos+n < s.end || !s.more() {
			break
		}
	}
	if n == 0 {
		s.unexpected("a value")
		return nil
	}
	w := s.buf[s.pos : s.pos+n]
	s.pos += n
	return w
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// number takes a whole number that is not negative.
func (s *scanner) number() int64 {
	w := s.word()
	if s.err != nil {
		return 0
	}
	n, ok := decimal(w)
	if !ok {
		s.failf("%q is not a whole number", clip(w))
	}
	return n
}

// decimal reads digits without a leading zero, up to 1<<62.
func decimal(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 1 && b[0] == '0' {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' || n > (1<<62)/10-1 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func clip(b []byte) []byte { return b[:min(len(b), 80)] }

// field takes what stands before the next field of an object and returns its name;
// false at the object's end, which it takes too. first holds until the first one.
func (s *scanner) field(first *bool) ([]byte, bool) {
	c := s.peek()
	if c == '}' {
		s.pos++
		return nil, false
	}
	if !*first && !s.take(',') {
		return nil, false
	}
	*first = false
	name := s.str()
	if s.err != nil {
		return nil, false
	}
	return name, true
}

// skip passes over one value of any kind.
func (s *scanner) skip() {
	var open []byte
	for s.err == nil {
		switch c := s.peek(); c {
		case '{', '[':
			s.pos++
			open = append(open, c+2) // '}' and ']' stand two behind
			if len(open) > maxNesting {
				s.fail(errors.New("nested too deeply"))
			}
			if s.peek() != c+2 {
				if c == '{' {
					s.str()
					s.take(':')
				}
				continue
			}
		case '"':
			s.str()
		default:
			s.literal()
		}
		open = s.closeAll(open)
		if len(open) == 0 {
			return
		}
	}
}

// closeAll takes the brackets that end here, and the comma before the next value.
func (s *scanner) closeAll(open []byte) []byte {
	for len(open) > 0 && s.err == nil {
		last := open[len(open)-1]
		if s.peek() != last {
			s.take(',')
			if last == '}' {
				s.str()
				s.take(':')
			}
			return open
		}
		s.pos++
		open = open[:len(open)-1]
	}
	return open
}

func (s *scanner) literal() {
	w := s.word()
	if s.err != nil {
		return
	}
	switch string(w) {
	case "true", "false", "null":
		return
	}
	if !isNumber(w) {
		s.failf("%q is not a value", clip(w))
	}
}

// isNumber says whether b is a number as JSON writes it.
func isNumber(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	whole := digits(b)
	if whole == 0 || whole > 1 && b[0] == '0' {
		return false
	}
	b = b[whole:]
	if len(b) > 0 && b[0] == '.' {
		n := digits(b[1:])
		if n == 0 {
			return false
		}
		b = b[1+n:]
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		n := digits(b)
		return n > 0 && n == len(b)
	}
	return len(b) == 0
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return n
}
