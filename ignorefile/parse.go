package ignorefile

import "strings"

// special are the bytes that make a pattern more than a plain string.
const special = `*?[\`

// parser fills a File, line by line from the last to the first.
type parser struct {
	file *File
	// seen holds the globs, so that a repeated one is stored once.
	seen     table
	setIndex map[byteSet]token
}

// line takes up the line text[begin:end], its line feed not included.
func (p *parser) line(number, begin, end int) {
	text := p.file.text
	if begin == end || text[begin] == '#' {
		return
	}
	if text[end-1] == '\r' {
		end--
	}
	r := Rule{file: p.file, lineNumber: uint32(number), start: uint32(begin), end: uint32(end)}
	body := text[begin:end]
	if i := strings.IndexByte(body, 0); i >= 0 {
		body = body[:i]
	}
	body = trimSpaces(body)
	at := begin // where body stands in text
	if strings.HasPrefix(body, "!") {
		r.negated = true
		body, at = body[1:], at+1
	}
	if strings.HasSuffix(body, "/") {
		r.dirOnly = true
		body = body[:len(body)-1]
	}
	p.pattern(r, body, at)
}

// trimSpaces drops trailing spaces that no backslash escapes.
func trimSpaces(s string) string {
	keep := 0 // the length up to the last byte that is no trailing space
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			continue
		case '\\':
			// A backslash at the very end leaves the line as it is: the
			// rule is malformed, with its spaces or without.
			i++
		}
		keep = min(i+1, len(s))
	}
	return s[:keep]
}

// pattern takes up r, whose pattern without ! and the slash at the end is body,
// standing at offset at in the text.
func (p *parser) pattern(r Rule, body string, at int) {
	whole, wholeAt := body, at
	cut := func(n int) { body, at = body[n:], at+n }

	floating := strings.IndexByte(body, '/') < 0
	if strings.HasPrefix(body, "/") {
		cut(1)
	}
	anyDirs := false
	for !floating {
		n := dirsPrefix(body)
		if n == 0 {
			break
		}
		cut(n)
		anyDirs = true
	}
	if anyDirs && strings.IndexByte(body, '/') < 0 {
		// "**/x" is "x".
		floating, anyDirs = true, false
	}

	wild := strings.IndexAny(body, special)
	switch {
	case body == "":
		return // matches nothing
	case wild < 0 && floating:
		p.store(&p.file.names, r, body, at)
	case wild < 0 && !anyDirs:
		if !emptyComponent(body) {
			p.store(&p.file.paths, r, body, at)
		}
	case floating && wild == 0 && isSuffix(body):
		p.store(&p.file.suffixes, r, body[1:], at+1)
	default:
		p.glob(r, body, floating, anyDirs, whole, wholeAt)
	}
}

// dirsPrefix returns the length of a "**/" in front of body, 0 without one.
func dirsPrefix(body string) int {
	stars := len(body) - len(strings.TrimLeft(body, "*"))
	if stars >= 2 && stars < len(body) && body[stars] == '/' {
		return stars + 1
	}
	return 0
}

// isSuffix says that body, which begins with a special byte, is a star and a
// plain string short enough for the table of suffixes.
func isSuffix(body string) bool {
	n := len(body) - 1
	return body[0] == '*' && n > 0 && n < maxSuffix && !strings.ContainsAny(body[1:], special)
}

// emptyComponent says that a plain path has an empty component, as no real path has.
func emptyComponent(path string) bool {
	return path[0] == '/' || path[len(path)-1] == '/' || strings.Contains(path, "//")
}

// store adds r to t under key, which stands at offset at in the text, unless a
// later rule decides about all it could match.
func (p *parser) store(t *table, r Rule, key string, at int) (number uint32, added bool) {
	r.keyStart, r.keyEnd = uint32(at), uint32(at+len(key))
	number = uint32(len(p.file.rules))
	if !t.add(p.file, key, number, r.dirOnly) {
		return 0, false
	}
	p.file.rules = append(p.file.rules, r)
	return number, true
}

// glob takes up a rule that fits no table. whole is its text for the comparison
// with other globs, slash in front and all.
func (p *parser) glob(r Rule, body string, floating, anyDirs bool, whole string, wholeAt int) {
	f := p.file
	c := compiler{parser: p, prog: f.prog, floating: floating}
	begin := len(f.prog)
	if !c.compile(body, anyDirs) {
		f.prog = c.prog[:begin]
		return
	}
	number, added := p.store(&p.seen, r, whole, wholeAt)
	if !added {
		f.prog = c.prog[:begin]
		return
	}
	f.prog = c.prog
	g := newGlob(number, r.dirOnly, begin, c.prog)
	if floating {
		f.baseGlobs = append(f.baseGlobs, g)
	} else {
		f.pathGlobs = append(f.pathGlobs, g)
	}
}
