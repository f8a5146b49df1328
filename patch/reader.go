package patch

import (
	"bufio"
	"bytes"
	"decree/tree"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Reader reads a diff, strictly: what it accepts, Writer could have written (but for
// fields of the "# decree:" lines that it does not know and passes over). Lines are taken
// by the counts in the hunk headers, so that contents that look like headers stay
// contents. Memory grows with the section that is read, never with what a header claims.
//
// A Reader is for one goroutine.
type Reader struct {
	r      *bufio.Reader
	order  order
	line   int   // lines read so far
	offset int64 // bytes read so far
	err    error // what Next returns from now on

	raw     []byte // the bytes of the section at hand
	peekErr error  // what a look ahead met, for the next readLine
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 1<<16)}
}

// Next returns the next section, or io.EOF after the last. What is malformed is a
// *[SyntaxError] with its line; other errors are those of the underlying reader. After an
// error Next returns it again. Sections stay valid.
func (r *Reader) Next() (*Section, error) {
	if r.err != nil {
		return nil, r.err
	}
	s, err := r.next()
	if errors.Is(err, errEnd) {
		err = io.EOF
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	return s, nil
}

// EachSection reads a diff and calls visit with each section of a wanted path.
func EachSection(diff io.Reader, wanted []tree.Path, visit func(*Section) error) error {
	r := NewReader(diff)
	for {
		sec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !sec.Path.Within(wanted...) {
			continue
		}
		if err := visit(sec); err != nil {
			return err
		}
	}
}

// errEnd is the end of the diff at the end of a line. It is not io.EOF itself, so that an
// error of the source that wraps one cannot be taken for it: half a diff would look whole.
var errEnd = errors.New("end of the diff")

// sourceError turns what the source returned into errEnd, or keeps it from looking like
// io.EOF.
func sourceError(err error) error {
	if err == io.EOF { //nolint:errorlint // the end itself, not what wraps it
		return errEnd
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, err.Error())
	}
	return err
}

func (r *Reader) next() (*Section, error) {
	if r.line == 0 {
		if err := r.version(); err != nil {
			return nil, err
		}
	}
	offset := r.offset
	r.raw = nil
	line, err := r.readLine(MaxFacts)
	if errors.Is(err, errEnd) && r.line == 1 {
		return nil, r.syntax("a section expected", nil)
	}
	if err != nil {
		return nil, err
	}
	data, ok := bytes.CutPrefix(line, []byte(FactsPrefix))
	if !ok {
		return nil, r.syntax(`"# decree:" line expected`, line)
	}
	s, err := ParseFacts(data)
	if err != nil {
		return nil, r.syntax(err.Error(), line)
	}
	if reason := r.order.add(s); reason != "" {
		return nil, r.syntax(reason, line)
	}
	s.Line, s.Offset = r.line, offset
	if err := r.body(s); err != nil {
		return nil, err
	}
	s.Size = r.offset - offset
	s.Raw = r.raw[:len(r.raw):len(r.raw)]
	return s, nil
}

// version reads the first line. An empty diff is one of no change.
func (r *Reader) version() error {
	line, err := r.readLine(len(versionPrefix) + 100)
	if err != nil {
		return err
	}
	if string(line) == VersionLine {
		return nil
	}
	if v, ok := bytes.CutPrefix(line, []byte(versionPrefix)); ok {
		return r.syntax("version "+tree.Clip(string(v))+" of the format is unknown; this decree reads version 1", line)
	}
	return r.syntax(`not a changes.diff: "`+VersionLine+`" expected`, line)
}

// body reads what follows the "# decree:" line.
func (r *Reader) body(s *Section) error {
	if err := r.header(s); err != nil {
		return err
	}
	switch {
	case s.Binary && !s.Stored:
		return r.payloads(s)
	case s.hasHunks():
		return r.hunks(s)
	}
	return nil
}

// header reads the lines up to the hunks or the payload, which follow from the facts.
func (r *Reader) header(s *Section) error {
	want := string(s.appendHeader(nil))
	for want != "" {
		var line string
		line, want, _ = strings.Cut(want, "\n")
		got, err := r.readLine(len(line) + 100)
		if errors.Is(err, errEnd) {
			return r.syntax("cut short: "+tree.Clip(line)+" expected", nil)
		}
		if err != nil {
			return err
		}
		if string(got) != line {
			return r.syntax("header does not match its \"# decree:\" line: "+tree.Clip(line)+" expected", got)
		}
	}
	return nil
}

// payloads reads the base64 lines of both sides.
func (r *Reader) payloads(s *Section) error {
	var err error
	if s.Old != nil {
		if s.OldData, err = r.payload(oldPrefix, s.Old); err != nil {
			return err
		}
	}
	if s.New != nil {
		if s.NewData, err = r.payload(newPrefix, s.New); err != nil {
			return err
		}
	}
	if bytes.IndexByte(s.OldData, 0) < 0 && bytes.IndexByte(s.NewData, 0) < 0 {
		return r.syntax("binary section without a NUL byte", nil)
	}
	return nil
}

func (r *Reader) payload(prefix string, e *tree.Entry) ([]byte, error) {
	const columns = 76
	data := []byte{}
	for int64(len(data)) < e.Size {
		line, err := r.readLine(len(prefix) + columns + 100)
		if errors.Is(err, errEnd) {
			return nil, r.syntax("cut short: payload expected", nil)
		}
		if err != nil {
			return nil, err
		}
		text, ok := bytes.CutPrefix(line, []byte(prefix))
		if !ok {
			return nil, r.syntax("payload shorter than the size of its entry", line)
		}
		n := min(e.Size-int64(len(data)), base64Line)
		if len(text) != base64.StdEncoding.EncodedLen(int(n)) {
			return nil, r.syntax("payload line of a wrong length", line)
		}
		if data, err = base64.StdEncoding.Strict().AppendDecode(data, text); err != nil {
			return nil, r.syntax("payload is not base64", line)
		}
	}
	if int64(len(data)) != e.Size {
		return nil, r.syntax("payload does not have the size of its entry", nil)
	}
	if tree.Sum(data) != e.SHA256 {
		return nil, r.syntax("payload does not have the sha256 of its entry", nil)
	}
	return data, nil
}

// readLine returns the next line without its '\n'; it is valid until the next call. A file
// that ends inside a line is a *SyntaxError, as is a line longer than most.
func (r *Reader) readLine(most int) ([]byte, error) {
	if r.peekErr != nil {
		return nil, r.peekErr
	}
	start := len(r.raw)
	for {
		part, err := r.r.ReadSlice('\n')
		r.raw = append(r.raw, part...)
		if err == nil {
			break
		}
		if len(r.raw)-start > most && most > 0 {
			r.line++
			return nil, r.syntax("line too long", r.raw[start:])
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == io.EOF && len(r.raw) > start {
			r.line++
			return nil, r.syntax(`cut short: no '\n' at the end of the line`, r.raw[start:])
		}
		return nil, sourceError(err)
	}
	return r.count(r.raw[start:]), nil
}

func (r *Reader) count(line []byte) []byte {
	r.line++
	r.offset += int64(len(line))
	return line[:len(line)-1]
}

// peekByte returns the first byte of the next line, and false at the end of the file or on
// an error. bufio reports an error once only, so it is kept for the next readLine.
func (r *Reader) peekByte() (byte, bool) {
	b, err := r.r.Peek(1)
	if err != nil {
		r.peekErr = sourceError(err)
		return 0, false
	}
	return b[0], true
}

// syntax returns a *SyntaxError for the line read last; a nil text means that the end of
// the file, or what is missing behind that line, is the matter.
func (r *Reader) syntax(reason string, text []byte) error {
	line := max(r.line, 1)
	return &SyntaxError{Line: line, Reason: reason, Text: tree.Clip(string(text))}
}
