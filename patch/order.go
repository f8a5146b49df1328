package patch

import (
	"strings"

	"decree/tree"
)

// order holds what the sections so far say about the tree, as far as it bears on the next
// one: their order, and what stands above a path. A diff in which a path lies below a file,
// or below something that the same diff removes, fits no tree.
//
// Paths come in byte order, so what was seen and can still lie above the next path is a
// byte prefix of it, and the chain of these is short.
type order struct {
	last  tree.Path
	began bool
	chain []seen
}

// seen is one path of the chain. The kinds are those before and after, -1 for "absent".
type seen struct {
	path     tree.Path
	old, new int
}

const absent = -1

func kindOf(e *tree.Entry) int {
	if e == nil {
		return absent
	}
	return int(e.Type)
}

// add takes the next section and returns what is wrong with its place, or "".
func (o *order) add(s *Section) string {
	if o.began && s.Path < o.last {
		return "not in byte order of the paths"
	}
	if o.began && s.Path == o.last {
		return o.second(s)
	}
	o.began, o.last = true, s.Path
	for n := len(o.chain); n > 0 && !strings.HasPrefix(string(s.Path), string(o.chain[n-1].path)); n-- {
		o.chain = o.chain[:n-1]
	}
	for _, up := range o.chain {
		if s.Path[len(up.path)] != '/' {
			continue
		}
		if s.Old != nil && up.old != int(tree.Dir) || s.New != nil && up.new != int(tree.Dir) {
			return "below " + tree.Clip(tree.Quote(up.path)) + ", which is not a directory in this diff"
		}
	}
	o.chain = append(o.chain, seen{s.Path, kindOf(s.Old), kindOf(s.New)})
	return ""
}

// second takes another section of the last path: the create or mkdir of a changed kind.
func (o *order) second(s *Section) string {
	top := &o.chain[len(o.chain)-1]
	if top.new != absent || top.old == absent || s.Old != nil {
		return "the path has a second section"
	}
	if top.old == kindOf(s.New) {
		return "a delete and a create of the same kind, instead of a modify"
	}
	top.new = kindOf(s.New)
	return ""
}
