package tree

import (
	"errors"
)

// Reader reads trees. The zero Skip makes everything damaged an error.
type Reader struct {
	From Source
	// Skip is asked about a damaged object: true passes over all that it would have said.
	Skip func(*DamagedError) bool
}

// cursor goes through the names of one directory. It stands on an object that was not
// opened yet, or on a name, or at the end.
type cursor struct {
	r       *Reader
	path    func() Path // of the directory, for errors
	objects []opened    // those that it is in, the top first
	at      position
	ref     ref  // onObject
	node    Node // onName
	last    string
	err     error
}

type position uint8

const (
	atEnd position = iota
	onObject
	onName
)

// ref is an object that was not opened; what is known of it is in the one above.
type ref struct {
	hash  Hash
	level int // unknownLevel: that of a directory, which says so itself
	last  string
}

const unknownLevel = -1

// opened is an object that a cursor is in.
type opened struct {
	object
	as ref
}

// open stands the cursor on the directory's object; the zero Hash is an empty directory.
func (r *Reader) open(h Hash, path func() Path) cursor {
	c := cursor{r: r, path: path}
	if !h.IsZero() {
		c.at, c.ref = onObject, ref{hash: h, level: unknownLevel}
	}
	return c
}

// damaged ends the cursor unless what is damaged is passed over.
func (c *cursor) damaged(h Hash, err error) {
	var told *DamagedError
	if !errors.As(err, &told) {
		told = &DamagedError{Path: c.path(), Hash: h, Err: err}
	}
	if c.r.Skip == nil || !c.r.Skip(told) {
		c.err, c.at = told, atEnd
	}
}

// expand opens the object that the cursor stands on.
func (c *cursor) expand() {
	at := c.ref
	data, err := c.r.From.Get(at.hash)
	if err == nil {
		o := openObject(data)
		if err = o.err; err == nil && at.level != unknownLevel && o.level != at.level {
			err = errCut
		}
		if err == nil {
			c.objects = append(c.objects, opened{o, at})
		}
	}
	if err != nil {
		if c.damaged(at.hash, err); c.err != nil {
			return
		}
	}
	c.advance()
}

// advance goes on behind what the cursor stands on.
func (c *cursor) advance() {
	c.at = atEnd
	if c.err != nil {
		return
	}
	for len(c.objects) > 0 {
		o := &c.objects[len(c.objects)-1]
		switch {
		case !o.more():
			c.leave()
		case o.level > 0:
			last, h := o.child()
			c.ref, c.at = ref{h, o.level - 1, last}, onObject
		default:
			c.node = o.node()
			if o.err == nil && c.last != "" && c.node.Name <= c.last {
				o.fail(errOrder)
			}
			c.last, c.at = c.node.Name, onName
		}
		if c.err != nil || c.at != atEnd && o.err == nil {
			return
		}
		c.at = atEnd
	}
}

// leave ends an object, whole or at its fault.
func (c *cursor) leave() {
	top := len(c.objects) - 1
	o := c.objects[top]
	c.objects = c.objects[:top]
	if o.err == nil {
		o.err = c.misplaced(&o)
	}
	if o.err != nil {
		c.damaged(o.as.hash, o.err)
	}
}

// misplaced says what is wrong with the end of an object in those that it is part of.
func (c *cursor) misplaced(o *opened) error {
	if o.as.level == unknownLevel {
		if o.level > 0 && o.n < 2 {
			return errCut
		}
		return nil
	}
	if o.last != o.as.last {
		return errOrder
	}
	for i := range c.objects {
		if c.objects[i].more() && !o.cut {
			return errCut
		}
	}
	return nil
}

// skip passes over the object that the cursor stands on.
func (c *cursor) skip() {
	c.last = max(c.last, c.ref.last)
	c.advance()
}

// next stands the cursor on the next name that is at or behind the one it stands on now;
// false at the end.
func (c *cursor) name() bool {
	for c.at == onObject {
		c.expand()
	}
	return c.at == onName
}

// seek stands the cursor on a name, if the directory has it.
func (c *cursor) seek(name string) bool {
	for {
		switch {
		case c.at == onObject && c.ref.level != unknownLevel && c.ref.last < name:
			c.skip()
		case c.at == onObject:
			c.expand()
		case c.at == onName && c.node.Name < name:
			c.advance()
		default:
			return c.at == onName && c.node.Name == name
		}
	}
}

// entry is what a path's Entry is made of: without the name of a directory's object.
func (n *Node) entry() Entry {
	e := n.Entry
	if e.Type == Dir {
		e.SHA256 = Hash{}
	}
	return e
}

var errDeep = errors.New("a path that is too long")

// join appends a name to a directory's path.
func join(path []byte, name string) []byte {
	if len(path) > 0 {
		path = append(path, '/')
	}
	return append(path, name...)
}

func tooLong(path []byte) bool { return len(path) >= MaxPath }
