package tree

import (
	"errors"
	"unicode/utf8"
)

// Quote returns a path, or other text of any bytes, as manifest.json and "# decree:" lines
// hold it: C-quoted as git does it ("caf\351", the quotes included) if it is not valid
// UTF-8, holds a control character (00-1f, 7f) or begins with '"'; otherwise unchanged. The
// result is always valid UTF-8.
func Quote[T ~string](text T) string {
	s := string(text)
	if needsQuote(s) {
		return string(AppendQuoted(nil, s))
	}
	return s
}

func needsQuote(s string) bool {
	if s == "" {
		return false
	}
	if s[0] == '"' || !utf8.ValidString(s) {
		return true
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return true
		}
	}
	return false
}

var errQuote = errors.New("not quoted correctly")

// Unquote is the inverse of [Quote]. It accepts only what Quote would have written, so
// that a path has one spelling.
func Unquote(s string) (string, error) {
	if s == "" || s[0] != '"' {
		if needsQuote(s) {
			return "", errQuote
		}
		return s, nil
	}
	raw, ok := ParseQuoted(s)
	if !ok || Quote(raw) != s {
		return "", errQuote
	}
	return raw, nil
}

// cEscapes holds the letter of each control character that has one.
var cEscapes = [...]byte{'\a': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r'}

// AppendQuoted appends s between quotes with git's escapes: the letters of C for the
// controls that have one, \" and \\, three octal digits for other controls and all bytes
// from 7f up.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s)
	return append(dst, '"')
}

func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case int(c) < len(cEscapes) && cEscapes[c] != 0:
			dst = append(dst, '\\', cEscapes[c])
		case c < 0x20 || c >= 0x7f:
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// ParseQuoted undoes AppendQuoted; that the spelling is the canonical one is left to
// the caller, who compares.
func ParseQuoted(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	s = s[1 : len(s)-1]
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", false
		}
		if c, ok := unescape(s[i]); ok {
			out = append(out, c)
			continue
		}
		if i+2 >= len(s) || s[i] > '3' || !octal(s[i]) || !octal(s[i+1]) || !octal(s[i+2]) {
			return "", false
		}
		out = append(out, (s[i]-'0')<<6|(s[i+1]-'0')<<3|(s[i+2]-'0'))
		i += 2
	}
	return string(out), true
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

func unescape(letter byte) (byte, bool) {
	if letter == '"' || letter == '\\' {
		return letter, true
	}
	for c, l := range cEscapes {
		if l == letter && l != 0 {
			return byte(c), true
		}
	}
	return 0, false
}

// AppendJSONString appends s as a JSON string. It escapes what JSON requires ('"', '\',
// 00-1f) and nothing else: no HTML and no U+2028 escaping, so that one text has one
// spelling. s must be valid UTF-8, which [Quote] sees to.
func AppendJSONString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b', '\t', '\n', '\f', '\r':
			dst = append(dst, '\\', cEscapes[c])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// Text is a text of any bytes, in JSON as [Quote] writes it, since JSON has valid UTF-8 alone. The key of a map is
// written by encoding/json as it is: a map of them needs a MarshalJSON of its own.
type Text string

// MarshalText is the text in JSON.
func (t Text) MarshalText() ([]byte, error) { return []byte(Quote(t)), nil }

// UnmarshalText reads what MarshalText writes. What is not quoted correctly is taken as it is, as an earlier decree
// has written names.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(Unquoted(string(text)))
	return nil
}

// Unquoted is Unquote, but that what is not quoted correctly is taken as it is.
func Unquoted(text string) string {
	if raw, err := Unquote(text); err == nil {
		return raw
	}
	return text
}
