package ignorefile

import "strings"

// reference is gitignore(5) a second time, for the fuzz target: the slow and
// obvious way, line by line, each rule matched by a table of all its positions. It
// returns the line that decides about path, 0 for none, and whether it excludes.
// Sets and spaces it reads with the package's own code, which git is asked about.
func reference(content, path string, isDir bool) (line int, ignored bool) {
	lines := strings.Split(strings.TrimPrefix(content, "\xef\xbb\xbf"), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		rule := strings.TrimSuffix(lines[i], "\r")
		if strings.HasPrefix(rule, "#") {
			continue
		}
		rule, _, _ = strings.Cut(rule, "\x00")
		rule, negated := strings.CutPrefix(trimSpaces(rule), "!")
		rule, dirOnly := strings.CutSuffix(rule, "/")
		if dirOnly && !isDir {
			continue
		}
		subject := path
		if !strings.Contains(rule, "/") {
			subject = path[strings.LastIndexByte(path, '/')+1:]
		}
		if elements, ok := readElements(strings.TrimPrefix(rule, "/")); ok && matchElements(elements, subject) {
			return i + 1, !negated
		}
	}
	return 0, false
}

// element is one part of a rule: a set of bytes, of which there must be one, or:
type element struct {
	set  byteSet
	star bool // any number of bytes but slashes
	dirs bool // any number of whole components with their slashes
	rest bool // one byte or more, slashes too
}

func readElements(rule string) (elements []element, ok bool) {
	one := func(b byte) { e := element{}; e.set.add(b); elements = append(elements, e) }
	for i := 0; i < len(rule); i++ {
		switch rule[i] {
		case '*':
			from := i
			for i+1 < len(rule) && rule[i+1] == '*' {
				i++
			}
			behind := rule[i+1:]
			component := i > from && (from == 0 || rule[from-1] == '/')
			switch {
			case component && behind == "":
				elements = append(elements, element{rest: true})
			case component && behind[0] == '/':
				elements = append(elements, element{dirs: true})
				i++
			case component && strings.HasPrefix(behind, `\/`):
				elements = append(elements, element{rest: true})
			default:
				elements = append(elements, element{star: true})
			}
		case '?':
			e := element{}
			e.set.addRange(0, '/'-1)
			e.set.addRange('/'+1, 255)
			elements = append(elements, e)
		case '[':
			set, n, ok := parseSet(rule[i:])
			if !ok {
				return nil, false
			}
			elements = append(elements, element{set: set})
			i += n - 1
		case '\\':
			if i++; i == len(rule) {
				return nil, false
			}
			one(rule[i])
		default:
			one(rule[i])
		}
	}
	return elements, true
}

// matchElements says whether s matches; no way to match is left out.
func matchElements(elements []element, s string) bool {
	// next[i]: s[i:] matches the elements behind the present one.
	next := make([]bool, len(s)+1)
	next[len(s)] = true
	for e := len(elements) - 1; e >= 0; e-- {
		this := make([]bool, len(s)+1)
		slash := false // behind some slash from i on, the rest matches
		for i := len(s); i >= 0; i-- {
			more := i < len(s)
			switch el := &elements[e]; {
			case el.star:
				this[i] = next[i] || more && s[i] != '/' && this[i+1]
			case el.rest:
				this[i] = more && (next[i+1] || this[i+1])
			case el.dirs:
				slash = slash || more && s[i] == '/' && next[i+1]
				this[i] = next[i] || slash
			default:
				this[i] = more && el.set.has(s[i]) && next[i+1]
			}
		}
		next = this
	}
	return next[0]
}
