package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxToken bounds one string or number: the longest path, each byte of it escaped by
// C quoting and JSON, fits.
const maxToken = 256 << 10

// tokens reads JSON from a stream. The first error stays, and every method returns zero
// after it. Names that stand twice are found by their order, without keeping them all.
type tokens struct {
	in  *input
	dec *jsontext.Decoder
	err error
}

func newTokens(r io.Reader) *tokens {
	t := &tokens{in: &input{r: r}}
	t.dec = jsontext.NewDecoder(t.in, jsontext.AllowDuplicateNames(true))
	t.in.taken = t.dec.InputOffset
	return t
}

// input counts what is read, and bounds what the decoder must keep for one token.
type input struct {
	r     io.Reader
	taken func() int64 // how much of it the decoder has made tokens of
	read  int64
	lines int
	err   error // of r; not its end
}

var errTooLong = errors.New("value too long")

func (in *input) Read(p []byte) (int, error) {
	if in.read-in.taken() > maxToken {
		in.err = errTooLong
		return 0, in.err
	}
	n, err := in.r.Read(p)
	in.read += int64(n)
	in.lines += bytes.Count(p[:n], []byte("\n"))
	if err != nil && err != io.EOF {
		in.err = err
	}
	return n, err
}

// SyntaxError says what is wrong with a manifest.json, and on which line, from 1.
type SyntaxError struct {
	Line int
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("manifest line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *SyntaxError) Unwrap() error { return e.Err }

// fail notes what is wrong with the last token.
func (t *tokens) fail(err error) { t.failAt(t.dec.InputOffset(), err) }

func (t *tokens) failf(format string, args ...any) { t.fail(fmt.Errorf(format, args...)) }

func (t *tokens) failAt(offset int64, err error) {
	if t.err != nil {
		return
	}
	behind := t.dec.UnreadBuffer()
	behind = behind[min(max(offset-t.dec.InputOffset(), 0), int64(len(behind))):]
	t.err = &SyntaxError{Line: 1 + t.in.lines - bytes.Count(behind, []byte("\n")), Err: err}
}

// took handles the decoder's error.
func (t *tokens) took(err error) bool {
	var syntax *jsontext.SyntacticError
	switch {
	case err == nil || t.err != nil:
	case t.in.err == errTooLong:
		t.fail(t.in.err)
	case t.in.err != nil:
		t.err = t.in.err
	case errors.As(err, &syntax):
		t.failAt(syntax.ByteOffset, syntax.Err)
	default:
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		t.fail(err)
	}
	return t.err == nil
}

// next takes a token, which must be of the kind.
func (t *tokens) next(kind jsontext.Kind, expected string) (jsontext.Token, bool) {
	if t.err != nil {
		return jsontext.Token{}, false
	}
	token, err := t.dec.ReadToken()
	if !t.took(err) {
		return token, false
	}
	if token.Kind() != kind {
		t.failf("expected %s instead of %s", expected, clip(token.String()))
	}
	return token, t.err == nil
}

// begin takes the beginning of an object.
func (t *tokens) begin() bool {
	_, ok := t.next('{', "an object")
	return ok
}

// member takes the name of the next member of an object; false at its end, which it takes.
func (t *tokens) member() (string, bool) {
	if t.err != nil {
		return "", false
	}
	token, err := t.dec.ReadToken()
	if !t.took(err) || token.Kind() == '}' {
		return "", false
	}
	return token.String(), true
}

// text takes a string.
func (t *tokens) text() string {
	token, ok := t.next('"', "a string")
	if !ok {
		return ""
	}
	return token.String()
}

// number takes a whole number that is not negative.
func (t *tokens) number() int64 {
	token, ok := t.next('0', "a whole number")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(token.String(), 10, 64)
	if err != nil || n < 0 {
		t.failf("%s is not a whole number", clip(token.String()))
	}
	return n
}

func (t *tokens) boolean() bool {
	if t.err != nil {
		return false
	}
	token, err := t.dec.ReadToken()
	if t.took(err) && token.Kind() != 't' && token.Kind() != 'f' {
		t.failf("expected true or false instead of %s", clip(token.String()))
	}
	return token.Kind() == 't'
}

// skip passes over one value.
func (t *tokens) skip() {
	if t.err == nil {
		t.took(t.dec.SkipValue())
	}
}

// end wants nothing to follow.
func (t *tokens) end() {
	if t.err != nil {
		return
	}
	if _, err := t.dec.ReadToken(); err == nil {
		t.fail(errors.New("something follows the end"))
	} else if err != io.EOF {
		t.took(err)
	}
}

func clip(s string) string { return s[:min(len(s), 80)] }
