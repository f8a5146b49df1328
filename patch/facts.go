package patch

import (
	"encoding/hex"
	"errors"
	"strconv"
	"unicode/utf8"
)

// This file reads the JSON of a "# decree:" line. encoding/json would do, but for what it
// lets pass: repeated keys, keys in another case, bytes that are not UTF-8. A diff that two
// readers can understand differently must not be understood at all.

// maxDepth bounds the nesting of fields that are not known and so passed over.
const maxDepth = 16

// scanner reads one JSON value. fault is the first thing that is wrong; after it every
// method returns zero values.
type scanner struct {
	data  []byte
	pos   int
	fault string
}

func (sc *scanner) fail(reason string) {
	if sc.fault == "" {
		sc.fault = reason
		sc.pos = len(sc.data)
	}
}

// peek passes over spaces and returns the next byte, 0 at the end.
func (sc *scanner) peek() byte {
	for sc.pos < len(sc.data) && sc.data[sc.pos] == ' ' {
		sc.pos++
	}
	if sc.pos == len(sc.data) {
		return 0
	}
	return sc.data[sc.pos]
}

// take passes over c, which must come next.
func (sc *scanner) take(c byte) {
	if sc.peek() != c {
		sc.fail("JSON: " + strconv.QuoteRune(rune(c)) + " expected")
		return
	}
	sc.pos++
}

// object calls field for each key of an object, which must read the value. A key that
// comes twice is a fault.
func (sc *scanner) object(field func(key string)) {
	sc.take('{')
	if sc.peek() == '}' {
		sc.pos++
		return
	}
	seen := make(map[string]bool, 8)
	for sc.fault == "" {
		key := sc.text()
		if seen[key] {
			sc.fail("JSON: " + strconv.Quote(clip(key)) + " twice")
		}
		seen[key] = true
		sc.take(':')
		field(key)
		if sc.peek() != ',' {
			break
		}
		sc.pos++
	}
	sc.take('}')
}

// text reads a string.
func (sc *scanner) text() string {
	sc.take('"')
	start := sc.pos
	for sc.pos < len(sc.data) {
		switch c := sc.data[sc.pos]; {
		case c == '"':
			s := string(sc.data[start:sc.pos])
			sc.pos++
			return s
		case c == '\\':
			return sc.escapedText(start)
		case c < 0x20:
			sc.fail("JSON: control character in a string")
			return ""
		}
		sc.pos++
	}
	sc.fail("JSON: string without an end")
	return ""
}

// escapedText reads the rest of a string that holds an escape.
func (sc *scanner) escapedText(start int) string {
	out := append([]byte(nil), sc.data[start:sc.pos]...)
	for sc.pos < len(sc.data) {
		c := sc.data[sc.pos]
		sc.pos++
		switch {
		case c == '"':
			return string(out)
		case c < 0x20:
			sc.fail("JSON: control character in a string")
		case c == '\\':
			out = sc.escape(out)
		default:
			out = append(out, c)
		}
	}
	sc.fail("JSON: string without an end")
	return ""
}

// escape reads what follows a backslash.
func (sc *scanner) escape(out []byte) []byte {
	if sc.pos == len(sc.data) {
		return out
	}
	c := sc.data[sc.pos]
	sc.pos++
	switch c {
	case '"', '\\', '/':
		return append(out, c)
	case 'b', 't', 'n', 'f', 'r':
		b, _ := unescape(c)
		return append(out, b)
	case 'u':
		r := sc.hex4()
		if 0xd800 <= r && r < 0xdc00 && sc.pos+1 < len(sc.data) && sc.data[sc.pos] == '\\' && sc.data[sc.pos+1] == 'u' {
			sc.pos += 2
			if low := sc.hex4(); 0xdc00 <= low && low < 0xe000 {
				return utf8.AppendRune(out, 0x10000+(r-0xd800)<<10|(low-0xdc00))
			}
		}
		if 0xd800 <= r && r < 0xe000 {
			sc.fail("JSON: half a surrogate pair")
		}
		return utf8.AppendRune(out, r)
	}
	sc.fail("JSON: unknown escape")
	return out
}

func (sc *scanner) hex4() rune {
	var b [2]byte
	if sc.pos+4 > len(sc.data) {
		sc.fail("JSON: unknown escape")
		return 0
	}
	if _, err := hex.Decode(b[:], sc.data[sc.pos:sc.pos+4]); err != nil {
		sc.fail("JSON: unknown escape")
		return 0
	}
	sc.pos += 4
	return rune(b[0])<<8 | rune(b[1])
}

// word reads a bare word: a number, true, false or null.
func (sc *scanner) word() string {
	sc.peek()
	start := sc.pos
	for sc.pos < len(sc.data) {
		c := sc.data[sc.pos]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' && c != '+' && c != '.' && c != 'E' {
			break
		}
		sc.pos++
	}
	return string(sc.data[start:sc.pos])
}

// number reads a count: digits without a leading zero that fit 63 bits.
func (sc *scanner) number() int64 {
	w := sc.word()
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != w {
		sc.fail("JSON: a whole number below 2^63 expected")
		return 0
	}
	return n
}

func (sc *scanner) boolean() bool {
	w := sc.word()
	if w != "true" && w != "false" {
		sc.fail("JSON: true or false expected")
	}
	return w == "true"
}

// skip passes over any value.
func (sc *scanner) skip(depth int) {
	if depth == maxDepth {
		sc.fail("JSON: nested too deep")
		return
	}
	switch c := sc.peek(); c {
	case '"':
		sc.text()
	case '{':
		sc.object(func(string) { sc.skip(depth + 1) })
	case '[':
		sc.array(depth)
	default:
		w := sc.word()
		if w == "true" || w == "false" || w == "null" {
			return
		}
		if !jsonNumber(w) {
			sc.fail("JSON: a value expected")
		}
	}
}

func (sc *scanner) array(depth int) {
	sc.take('[')
	if sc.peek() == ']' {
		sc.pos++
		return
	}
	for sc.fault == "" {
		sc.skip(depth + 1)
		if sc.peek() != ',' {
			break
		}
		sc.pos++
	}
	sc.take(']')
}

// jsonNumber reports whether s is a number of JSON's grammar; ParseFloat alone would take
// "inf", "+1" and ".5" as well.
func jsonNumber(s string) bool {
	if len(s) > 1 && s[0] == '-' {
		s = s[1:]
	}
	if s == "" || s[0] < '0' || s[0] > '9' || s[len(s)-1] == '.' || len(s) > 1 && s[0] == '0' && '0' <= s[1] && s[1] <= '9' {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// parseFacts reads the JSON of a "# decree:" line into a Section that has nothing else. The
// second result says what is wrong, or is "".
func parseFacts(data []byte) (*Section, string) {
	s, sc := &Section{}, &scanner{data: data}
	if !utf8.Valid(data) {
		return nil, "JSON: not UTF-8"
	}
	hasPath := false
	sc.object(func(key string) {
		switch key {
		case "path":
			hasPath = true
			s.Path = sc.quoted("path")
		case "op":
			s.Op = Op(sc.text())
		case "old":
			s.Old = sc.entry()
		case "new":
			s.New = sc.entry()
		case "binary":
			s.Binary = sc.boolean()
		case "store":
			s.Stored = sc.boolean()
		default:
			sc.skip(0)
		}
	})
	if sc.peek() != 0 || sc.pos != len(data) {
		sc.fail("JSON: something after the object")
	}
	if sc.fault == "" && !hasPath {
		sc.fail("no path")
	}
	if sc.fault != "" {
		return nil, sc.fault
	}
	if reason := s.checkFacts(); reason != "" {
		return nil, reason
	}
	return s, ""
}

// checkFacts returns what is wrong with a section's facts, or "".
func (s *Section) checkFacts() string {
	if reason := pathFault(s.Path); reason != "" {
		return reason
	}
	switch s.Op {
	case OpCreate, OpDelete, OpModify, OpMode, OpMkdir, OpRmdir, OpDirMode:
	case "":
		return "no op"
	default:
		return "unknown op " + strconv.Quote(clip(string(s.Op)))
	}
	if s.Old == nil && s.New == nil {
		return "neither old nor new"
	}
	return s.fault()
}

// quoted reads a string that Quote wrote.
func (sc *scanner) quoted(name string) string {
	raw, err := Unquote(sc.text())
	if err != nil && sc.fault == "" {
		sc.fail(name + " " + err.Error())
	}
	return raw
}

// entry reads one side's facts. A directory's has a mode alone.
func (sc *scanner) entry() *Entry {
	e := &Entry{}
	var mode, sum, size, target bool
	kind := ""
	sc.object(func(key string) {
		switch key {
		case "mode":
			mode = true
			ok := false
			if e.Mode, ok = ParseMode(sc.text()); !ok {
				sc.fail("mode is not octal in its shortest form")
			}
		case "size":
			size = true
			e.Size = sc.number()
		case "sha256":
			sum = true
			h, err := ParseHash(sc.text())
			if err != nil {
				sc.fail("sha256 is not 64 lower-case hex digits")
			}
			e.SHA256 = h
		case "type":
			if kind = sc.text(); kind != "symlink" {
				sc.fail("unknown type " + strconv.Quote(clip(kind)))
			}
			e.Type = Symlink
		case "target":
			target = true
			e.Target = sc.quoted("target")
		case "owner":
			ok := false
			if e.Owner, ok = ParseOwner(sc.text()); !ok {
				sc.fail("owner is not two numbers")
			}
		default:
			sc.skip(1)
		}
	})
	switch {
	case !mode:
		sc.fail("entry without mode")
	case sum != size:
		sc.fail("entry with one of size and sha256")
	case target != (e.Type == Symlink):
		sc.fail("target and type disagree")
	case !sum && e.Type == Symlink:
		sc.fail("symlink without sha256")
	case e.Type == Symlink && e.Mode != symlinkMode:
		sc.fail("mode of a symlink is not 777")
	case !sum:
		e.Type = Dir
	}
	if e.Owner.Known && !e.Special() {
		sc.fail("an owner is only for set-user-ID and set-group-ID files")
	}
	return e
}
