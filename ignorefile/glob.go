package ignorefile

import "strings"

// token is one step of a compiled pattern: below 256 that byte; from tokenSet up
// one byte of the File's set number token-tokenSet; or one of these.
type token uint32

const (
	tokenAny  token = 256 + iota // ?: a byte, not a slash
	tokenStar                    // *: bytes up to a slash
	tokenDirs                    // **/: no or more components, each with its slash
	tokenRest                    // /** at the end: everything that is left, not nothing
	tokenSet  token = 512
)

// compiler turns patterns into tokens.
type compiler struct {
	parser   *parser
	prog     []token
	floating bool // the pattern is for the last component: ** means *
	inside   bool // the current component has a token
}

// compile appends body's tokens to prog, after a tokenDirs if anyDirs. It reports
// false if nothing can ever match body.
func (c *compiler) compile(body string, anyDirs bool) bool {
	if anyDirs {
		c.prog = append(c.prog, tokenDirs)
	}
	for i := 0; i < len(body); {
		n, ok := c.step(body, i)
		if !ok {
			return false
		}
		i += n
	}
	return c.inside // else the pattern ends with a slash, and no path does
}

// step compiles the part of body at i and returns its length.
func (c *compiler) step(body string, i int) (n int, ok bool) {
	switch b := body[i]; b {
	case '\\':
		if i+1 == len(body) {
			return 0, false
		}
		return 2, c.literal(body[i+1])
	case '?':
		c.emit(tokenAny)
		return 1, true
	case '*':
		return c.stars(body, i), true
	case '[':
		set, n, ok := parseSet(body[i:])
		if ok {
			c.emit(c.parser.setToken(set))
		}
		return n, ok
	default:
		return 1, c.literal(b)
	}
}

func (c *compiler) emit(t token) {
	c.prog = append(c.prog, t)
	c.inside = true
}

// literal compiles one byte. It reports false for a slash that makes an empty
// component.
func (c *compiler) literal(b byte) bool {
	if b != '/' {
		c.emit(token(b))
		return true
	}
	if !c.inside {
		return false
	}
	c.prog = append(c.prog, '/')
	c.inside = false
	return true
}

// stars compiles the run of stars at i and, where it is a whole component, the
// slash behind it. It returns the length compiled.
func (c *compiler) stars(body string, i int) int {
	rest := strings.TrimLeft(body[i:], "*")
	n := len(body) - i - len(rest)
	component := !c.floating && n >= 2 && (i == 0 || body[i-1] == '/')
	switch {
	case component && rest == "":
		c.emit(tokenRest)
	case component && rest[0] == '/':
		c.dirs()
		return n + 1
	case component && strings.HasPrefix(rest, `\/`):
		// git lets an escaped slash end the component, but then there must
		// be at least one.
		c.emit(tokenStar)
		c.literal('/')
		c.dirs()
		return n + 2
	default:
		c.emit(tokenStar)
	}
	return n
}

func (c *compiler) dirs() {
	if l := len(c.prog); l == 0 || c.prog[l-1] != tokenDirs {
		c.prog = append(c.prog, tokenDirs)
	}
	c.inside = false
}

// glob is a compiled rule that fits no table.
type glob struct {
	rule        uint32
	begin, end  uint32 // its tokens in File.prog
	shortest    uint32 // no shorter string matches
	tail        uint32 // number of tokens at the end that match one byte each
	first, last token
	dirOnly     bool
}

// newGlob describes the tokens from begin on.
func newGlob(rule uint32, dirOnly bool, begin int, prog []token) glob {
	own := prog[begin:]
	g := glob{
		rule: rule, dirOnly: dirOnly,
		begin: uint32(begin), end: uint32(len(prog)),
		first: own[0], last: own[len(own)-1],
	}
	for _, t := range own {
		switch t {
		case tokenStar, tokenDirs:
			g.tail = 0
		case tokenRest:
			g.shortest++
			g.tail = 0
		default:
			g.shortest++
			g.tail++
		}
	}
	return g
}

// matchGlobs returns the first rule of globs that matches s, or best if that comes
// before it.
func (f *File) matchGlobs(globs []glob, s string, isDir bool, best uint32) uint32 {
	for i := range globs {
		g := &globs[i]
		if g.rule >= best {
			break
		}
		if len(s) < int(g.shortest) || g.dirOnly && !isDir ||
			g.first < 256 && byte(g.first) != s[0] ||
			g.last < 256 && byte(g.last) != s[len(s)-1] {
			continue
		}
		prog := f.prog[g.begin:g.end]
		if !f.matchTail(prog[len(prog)-int(g.tail):], s) {
			continue
		}
		if ok, _ := f.run(prog, s); ok {
			return g.rule
		}
	}
	return best
}

// matchTail says whether the end of s, at least as long as tail, matches tail,
// tokens of one byte each. It saves most runs of patterns like "*.py[cod]".
func (f *File) matchTail(tail []token, s string) bool {
	s = s[len(s)-len(tail):]
	for i, t := range tail {
		if !f.one(t, s[i]) {
			return false
		}
	}
	return true
}

// one says whether t, a token of one byte, matches b.
func (f *File) one(t token, b byte) bool {
	switch {
	case t < 256:
		return byte(t) == b
	case t == tokenAny:
		return b != '/'
	default:
		return f.sets[t-tokenSet].has(b)
	}
}

// run matches s with prog. It goes back only to the last star of the component
// and the last tokenDirs, where taking the earliest match is enough: each pair of
// a token and a position is tried once, which steps, the work done, shows.
func (f *File) run(prog []token, s string) (ok bool, steps int) {
	var p, i int
	starP, starI := -1, 0 // behind the star, and the end of what it matched so far
	dirsP, dirsI := -1, 0
	for {
		steps++
		if p == len(prog) {
			if i == len(s) {
				return true, steps
			}
		} else if t := prog[p]; t == tokenStar {
			p++
			starP, starI = p, i
			continue
		} else if t == tokenDirs {
			p++
			dirsP, dirsI = p, i
			starP = -1
			continue
		} else if i < len(s) {
			if t == tokenRest {
				return true, steps
			}
			if f.one(t, s[i]) {
				if s[i] == '/' {
					// However the component was matched, it was.
					starP = -1
				}
				p++
				i++
				continue
			}
		}
		switch {
		case starP >= 0 && starI < len(s) && s[starI] != '/':
			starI++
			p, i = starP, starI
		case dirsP >= 0:
			n := strings.IndexByte(s[dirsI:], '/')
			if n < 0 {
				return false, steps
			}
			dirsI += n + 1
			p, i = dirsP, dirsI
			starP = -1
		default:
			return false, steps
		}
	}
}
