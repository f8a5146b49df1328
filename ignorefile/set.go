package ignorefile

import "strings"

// byteSet is a set of bytes, bit b%64 of word b/64 for byte b.
type byteSet [4]uint64

func (s *byteSet) has(b byte) bool { return s[b/64]>>(b%64)&1 != 0 }
func (s *byteSet) add(b byte)      { s[b/64] |= 1 << (b % 64) }

func (s *byteSet) addRange(from, to byte) {
	for b := int(from); b <= int(to); b++ {
		s.add(byte(b))
	}
}

// parseSet parses the [...] at the front of s and returns its length. It reports
// false if the set is malformed or empty. A slash is in no set.
func parseSet(s string) (set byteSet, n int, ok bool) {
	i := 1
	negated := i < len(s) && (s[i] == '!' || s[i] == '^')
	if negated {
		i++
	}
	// low is the byte that a following - makes a range of, -1 if none can. git
	// takes byte 0 for none, but no pattern holds it.
	low := -1
	for first := true; ; first = false {
		if i >= len(s) {
			return set, 0, false
		}
		switch b := s[i]; {
		case b == ']' && !first:
			if negated {
				for w := range set {
					set[w] = ^set[w]
				}
			}
			set['/'/64] &^= 1 << ('/' % 64)
			return set, i + 1, set != byteSet{}
		case b == '-' && low >= 0 && i+1 < len(s) && s[i+1] != ']':
			high, n := setByte(s[i+1:])
			if n == 0 {
				return set, 0, false
			}
			set.addRange(byte(low), high)
			low = -1
			i += 1 + n
		case b == '[' && strings.HasPrefix(s[i:], "[:"):
			n, ok := set.addClass(s[i:])
			if !ok {
				return set, 0, false
			}
			// A mere bracket begins no range either: a colon follows it.
			low = -1
			i += n
		default:
			b, n := setByte(s[i:])
			if n == 0 {
				return set, 0, false
			}
			set.add(b)
			low = int(b)
			i += n
		}
	}
}

// setByte returns the byte at the front of s, escaped or not, and its length, 0
// if a backslash ends s.
func setByte(s string) (b byte, n int) {
	if s[0] != '\\' {
		return s[0], 1
	}
	if len(s) == 1 {
		return 0, 0
	}
	return s[1], 2
}

// addClass adds the [:class:] at the front of s and returns its length; 1, after
// adding a mere bracket, if the next ] does not end a class. It reports false for
// a class that does not exist and when there is no ].
func (s *byteSet) addClass(text string) (n int, ok bool) {
	end := strings.IndexByte(text[2:], ']')
	if end < 0 {
		return 0, false
	}
	name, isClass := strings.CutSuffix(text[2:2+end], ":")
	if !isClass {
		s.add('[')
		return 1, true
	}
	ranges, ok := classes[name]
	for i := 0; i+1 < len(ranges); i += 2 {
		s.addRange(ranges[i], ranges[i+1])
	}
	return 2 + end + 1, ok
}

// classes are the POSIX classes as git has them, ASCII only, as pairs of first
// and last bytes. Unlike C's, space has neither vertical tab nor form feed.
var classes = map[string]string{
	"alnum":  "09AZaz",
	"alpha":  "AZaz",
	"blank":  "\t\t  ",
	"cntrl":  "\x00\x1f\x7f\x7f",
	"digit":  "09",
	"graph":  "!~",
	"lower":  "az",
	"print":  " ~",
	"punct":  "!/:@[`{~",
	"space":  "\t\n\r\r  ",
	"upper":  "AZ",
	"xdigit": "09AFaf",
}

// setToken returns the token of set; equal sets are stored once.
func (p *parser) setToken(set byteSet) token {
	t, ok := p.setIndex[set]
	if !ok {
		t = tokenSet + token(len(p.file.sets))
		if p.setIndex == nil {
			p.setIndex = map[byteSet]token{}
		}
		p.setIndex[set] = t
		p.file.sets = append(p.file.sets, set)
	}
	return t
}
