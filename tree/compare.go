package tree

import (
	"errors"
	"iter"
)

// errStop ends a walk whose caller has enough.
var errStop = errors.New("stopped")

// pair is a directory that differs: a zero Hash stands for one that is not there.
type pair struct {
	name string
	a, b Hash
}

// pairLevel is a directory that differs, on the way down.
type pairLevel struct {
	x, y cursor
	path int // length of its path
	// Directories that differ, whose names came and into which nothing has gone yet; see level.
	waiting []pair
}

// Compare returns what leads from the tree a to the tree b, in byte order of the raw
// paths; nil if they are the same. Its memory grows with the number of changes.
func (r Reader) Compare(a, b Hash) (changes []Change, err error) {
	for ch, err := range r.Changes(a, b) {
		if err != nil {
			return nil, err
		}
		changes = append(changes, ch)
	}
	return changes, nil
}

// Changes is what leads from the tree a to the tree b, one after the other in byte order of
// the raw paths. An error ends it. It reads the objects that differ and no others, and its
// memory grows with the depth alone. A zero Hash is an empty tree.
func (r Reader) Changes(a, b Hash) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		c := comparer{r: &r, yield: yield}
		if err := c.run(pair{"", a, b}); err != nil && err != errStop {
			yield(Change{}, err)
		}
	}
}

type comparer struct {
	r      *Reader
	yield  func(Change, error) bool
	path   []byte
	levels []pairLevel
}

func (c *comparer) enter(p pair) {
	n := len(c.path)
	where := func() Path { return Path(c.path[:n]) }
	c.levels = append(c.levels, pairLevel{x: c.r.open(p.a, where), y: c.r.open(p.b, where), path: n})
}

func (c *comparer) run(root pair) error {
	if root.a == root.b {
		return nil
	}
	c.enter(root)
	for len(c.levels) > 0 {
		l := &c.levels[len(c.levels)-1]
		c.path = c.path[:l.path]
		meet(&l.x, &l.y)
		if err := errors.Join(l.x.err, l.y.err); err != nil {
			return err
		}
		name, more := l.next()
		if p, ok := l.due(name, more); ok {
			c.path = join(c.path, p.name)
			c.enter(p)
			continue
		}
		if !more {
			c.levels = c.levels[:len(c.levels)-1]
			continue
		}
		if err := c.differ(l, name); err != nil {
			return err
		}
	}
	return nil
}

// next is the first name that a cursor stands on.
func (l *pairLevel) next() (name string, more bool) {
	switch {
	case l.x.at == atEnd && l.y.at == atEnd:
		return "", false
	case l.y.at == atEnd || l.x.at == onName && l.x.node.Name < l.y.node.Name:
		return l.x.node.Name, true
	}
	return l.y.node.Name, true
}

// due takes the directory that is to be entered before the next name.
func (l *pairLevel) due(next string, more bool) (p pair, ok bool) {
	top := len(l.waiting) - 1
	if top < 0 || more && behind(l.waiting[top].name, next) {
		return p, false
	}
	p = l.waiting[top]
	l.waiting = l.waiting[:top]
	return p, true
}

// meet passes over objects that both have, until each cursor stands on a name or at its end.
func meet(x, y *cursor) {
	for {
		switch {
		case x.at == onObject && y.at == onObject && x.ref.hash == y.ref.hash:
			x.skip()
			y.skip()
		case x.at == onObject && (y.at != onObject || x.ref.level >= y.ref.level || x.ref.level == unknownLevel):
			both := y.at == onObject && x.ref.level == y.ref.level
			x.expand()
			if both {
				y.expand()
			}
		case y.at == onObject:
			y.expand()
		default:
			return
		}
	}
}

// differ yields what the level's two trees have at name, if it is not the same, and passes it.
func (c *comparer) differ(l *pairLevel, name string) error {
	ch, below := Change{}, pair{name: name}
	if l.x.at == onName && l.x.node.Name == name {
		ch.Old, below.a = side(&l.x.node)
		l.x.advance()
	}
	if l.y.at == onName && l.y.node.Name == name {
		ch.New, below.b = side(&l.y.node)
		l.y.advance()
	}
	same := ch.Old != nil && ch.New != nil && ch.Old.Same(*ch.New)
	if same && below.a == below.b {
		return nil
	}
	dir := len(c.path)
	c.path = join(c.path, name)
	if tooLong(c.path) {
		return &DamagedError{Path: Path(c.path[:dir]), Err: errDeep}
	}
	ch.Path = Path(c.path)
	if !same && !c.yield(ch, nil) {
		return errStop
	}
	if below.a != below.b {
		l.waiting = append(l.waiting, below)
	}
	return nil
}

// side is what a tree has at a name, and of a directory its object.
func side(n *Node) (*Entry, Hash) {
	e := n.entry()
	if e.Type != Dir {
		return &e, Hash{}
	}
	return &e, n.SHA256
}
