package tree

import (
	"fmt"
	"slices"
	"strings"
)

// Apply makes the tree that changes turn root into, and returns its id: new objects go to
// sink, along the touched paths alone. A zero root is an empty tree. What the changes
// say of the state before is not looked at. A directory that nothing says anything of but
// that a path is put into has mode 755. Two changes of a path, or a path below what is no
// directory, are an error.
func Apply(r Reader, sink Sink, root Hash, changes []Change) (Hash, error) {
	for _, c := range changes {
		if err := c.Path.Check(); err != nil {
			return Hash{}, err
		}
	}
	if root.IsZero() {
		var err error
		if root, err = sink.Put(Empty()); err != nil {
			return root, err
		}
	}
	if len(changes) == 0 {
		return root, nil
	}
	changes = slices.Clone(changes)
	slices.SortFunc(changes, func(a, b Change) int { return treeOrder(a.Path, b.Path) })
	p := applier{r: &r, sink: sink}
	return p.directory(root, changes, 0)
}

// treeOrder orders paths so that what is in a directory comes right behind it.
func treeOrder(a, b Path) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		}
		return int(a[i]) - int(b[i])
	}
	return len(a) - len(b)
}

type applier struct {
	r    *Reader
	sink Sink
}

// group is what the changes say of one name: of itself, and of paths below it.
type group struct {
	name   string
	direct *Change
	below  []Change
}

// cutGroup takes the changes of the first name from those that begin behind from.
func cutGroup(changes []Change, from int) (g group, rest []Change, err error) {
	g.name, _, _ = strings.Cut(string(changes[0].Path[from:]), "/")
	end := from + len(g.name)
	n := 0
	for n < len(changes) && len(changes[n].Path) >= end && string(changes[n].Path[from:end]) == g.name &&
		(len(changes[n].Path) == end || changes[n].Path[end] == '/') {
		n++
	}
	mine := changes[:n]
	if len(mine[0].Path) == end {
		g.direct, mine = &mine[0], mine[1:]
	}
	if len(mine) > 0 && len(mine[0].Path) == end {
		return g, nil, fmt.Errorf("%s: %w", Quote(mine[0].Path), ErrOrder)
	}
	g.below = mine
	return g, changes[n:], nil
}

// directory applies changes below one directory; their paths go on there at from. The
// depth of its calls is that of the deepest path, which [Path.Check] bounds.
func (p *applier) directory(old Hash, changes []Change, from int) (Hash, error) {
	dir := changes[0].Path[:max(from-1, 0)]
	c := p.r.open(old, func() Path { return dir })
	w := NewWriter(p.sink)
	for len(changes) > 0 {
		g, rest, err := cutGroup(changes, from)
		if err != nil {
			return Hash{}, err
		}
		changes = rest
		for c.name() && c.node.Name < g.name {
			if err := w.Add(&c.node); err != nil {
				return Hash{}, err
			}
			c.advance()
		}
		if c.err != nil {
			return Hash{}, c.err
		}
		var was *Node
		if c.at == onName && c.node.Name == g.name {
			n := c.node
			was = &n
			c.advance()
		}
		now, err := p.apply(&g, was, from)
		if err == nil && now != nil {
			err = w.Add(now)
		}
		if err != nil {
			return Hash{}, err
		}
	}
	for c.name() {
		if err := w.Add(&c.node); err != nil {
			return Hash{}, err
		}
		c.advance()
	}
	if c.err != nil {
		return Hash{}, c.err
	}
	return w.Finish()
}

// apply returns what a name becomes, nil for nothing.
func (p *applier) apply(g *group, was *Node, from int) (*Node, error) {
	puts := slices.IndexFunc(g.below, func(c Change) bool { return c.New != nil })
	var now *Node
	switch {
	case g.direct != nil && g.direct.New != nil:
		now = &Node{g.name, *g.direct.New}
	case g.direct == nil && was != nil:
		n := *was
		now = &n
	case g.direct == nil && puts >= 0:
		now = &Node{g.name, Entry{Type: Dir, Mode: defaultMode(Dir)}}
	}
	if now == nil || now.Type != Dir {
		if puts >= 0 {
			return nil, fmt.Errorf("%s: below what is no directory: %w", Quote(g.below[puts].Path), ErrOrder)
		}
		return now, nil
	}
	below := Hash{}
	if was != nil && was.Type == Dir {
		below = was.SHA256
	}
	var err error
	switch {
	case len(g.below) > 0:
		below, err = p.directory(below, g.below, from+len(g.name)+1)
	case below.IsZero():
		below, err = p.sink.Put(Empty())
	}
	now.SHA256 = below
	return now, err
}
