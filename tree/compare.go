package tree

import "errors"

// errStop ends a walk whose caller has enough.
var errStop = errors.New("stopped")

// pair is a directory that differs: a zero Hash stands for one that is not there.
type pair struct {
	path Path
	a, b Hash
}

// Compare returns what leads from the tree a to the tree b, in byte order of the raw
// paths; nil if they are the same. It reads the objects that differ and no others, and
// its memory grows with the number of changes. A zero Hash is an empty tree.
func (r Reader) Compare(a, b Hash) ([]Change, error) {
	c := comparer{todo: []pair{{"", a, b}}}
	for len(c.todo) > 0 {
		last := len(c.todo) - 1
		p := c.todo[last]
		c.todo = c.todo[:last]
		if err := c.directory(&r, p); err != nil {
			return nil, err
		}
	}
	return Merge(c.changes)
}

type comparer struct {
	todo    []pair
	changes []Change
}

func (c *comparer) directory(r *Reader, p pair) error {
	if p.a == p.b {
		return nil
	}
	where := func() Path { return p.path }
	x, y := r.open(p.a, where), r.open(p.b, where)
	for {
		meet(&x, &y)
		if err := errors.Join(x.err, y.err); err != nil {
			return err
		}
		var err error
		switch {
		case x.at == atEnd && y.at == atEnd:
			return nil
		case y.at == atEnd || x.at == onName && x.node.Name < y.node.Name:
			err = c.differ(p.path, &x.node, nil)
			x.advance()
		case x.at == atEnd || y.node.Name < x.node.Name:
			err = c.differ(p.path, nil, &y.node)
			y.advance()
		default:
			err = c.differ(p.path, &x.node, &y.node)
			x.advance()
			y.advance()
		}
		if err != nil {
			return err
		}
	}
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

func (c *comparer) differ(dir Path, x, y *Node) error {
	ch := Change{}
	below := pair{}
	name := ""
	if x != nil {
		e := x.entry()
		ch.Old, name = &e, x.Name
		if e.Type == Dir {
			below.a = x.SHA256
		}
	}
	if y != nil {
		e := y.entry()
		ch.New, name = &e, y.Name
		if e.Type == Dir {
			below.b = y.SHA256
		}
	}
	same := x != nil && y != nil && ch.Old.Same(*ch.New)
	if same && below.a == below.b {
		return nil
	}
	path := join([]byte(dir), name)
	if tooLong(path) {
		return &DamagedError{Path: dir, Err: errDeep}
	}
	ch.Path = Path(path)
	if !same {
		c.changes = append(c.changes, ch)
	}
	if below.a != below.b {
		below.path = ch.Path
		c.todo = append(c.todo, below)
	}
	return nil
}
