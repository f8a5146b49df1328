package tree

import (
	"strings"
)

// level is a directory on the way down.
type level struct {
	cursor
	path int // length of its path
	// Directories whose names came and into which nothing has gone yet: "a" is passed
	// before "a-b", and what is in it comes behind that. Each begins with the one before.
	waiting []Node
}

// descent goes through a tree in byte order of paths.
type descent struct {
	r      *Reader
	path   []byte
	levels []level
}

func (d *descent) enter(h Hash) error {
	n := len(d.path)
	if tooLong(d.path) {
		err := &DamagedError{Path: Path(d.path), Hash: h, Err: errDeep}
		if d.r.Skip != nil && d.r.Skip(err) {
			return nil
		}
		return err
	}
	where := func() Path { return Path(d.path[:n]) }
	d.levels = append(d.levels, level{cursor: d.r.open(h, where), path: n})
	return nil
}

// due takes the directory that is to be entered before the level's next name.
func (l *level) due(more bool) (n Node, ok bool) {
	top := len(l.waiting) - 1
	if top < 0 {
		return n, false
	}
	n = l.waiting[top]
	if more && behind(n.Name, l.node.Name) {
		return n, false
	}
	l.waiting = l.waiting[:top]
	return n, true
}

// behind says whether what is in the directory dir comes behind a later name beside it:
// "a/x" behind "a-b".
func behind(dir, name string) bool {
	rest, inside := strings.CutPrefix(name, dir)
	return inside && rest[0] < '/'
}

// run calls visit for each name with its path, which is valid during the call; a
// directory's comes before those in it, in byte order of the raw paths among the
// directories and among the files, not of both.
func (d *descent) run(root Hash, visit func(path []byte, n *Node) bool) error {
	if err := d.enter(root); err != nil {
		return err
	}
	for len(d.levels) > 0 {
		l := &d.levels[len(d.levels)-1]
		more := l.name()
		if l.err != nil {
			return l.err
		}
		if n, ok := l.due(more); ok {
			d.path = join(d.path[:l.path], n.Name)
			if err := d.enter(n.SHA256); err != nil {
				return err
			}
			continue
		}
		if !more {
			d.levels = d.levels[:len(d.levels)-1]
			continue
		}
		d.path = join(d.path[:l.path], l.node.Name)
		if !visit(d.path, &l.node) {
			return errStop
		}
		if l.node.Type == Dir {
			l.waiting = append(l.waiting, l.node)
		}
		l.advance()
	}
	return nil
}

// Entries returns the tree in manifest order. It reads the objects twice, once for the
// files and once for the directories; its memory grows with the depth alone.
func (r Reader) Entries(root Hash) Seq {
	return func(yield func(Item, error) bool) {
		for _, dirs := range []bool{false, true} {
			d := descent{r: &r}
			err := d.run(root, func(path []byte, n *Node) bool {
				return (n.Type == Dir) != dirs || yield(Item{Path(path), n.entry()}, nil)
			})
			if err == errStop {
				return
			}
			if err != nil {
				yield(Item{}, err)
				return
			}
		}
	}
}

// Downward returns the tree with each directory before what is in it, and nothing else between the two. It reads the
// objects once; its memory grows with the depth alone.
func (r Reader) Downward(root Hash) Seq {
	return func(yield func(Item, error) bool) {
		err := r.Walk(root, func([]byte, Hash) bool { return true }, func(path []byte, n *Node) error {
			if !yield(Item{Path(path), n.entry()}, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && err != errStop { //nolint:errorlint // our own, as it is
			yield(Item{}, err)
		}
	}
}

// Find returns what the tree has at path, nil for nothing. Of a directory SHA256 is its
// object's name.
func (r Reader) Find(root Hash, path Path) (*Node, error) {
	at := Node{Entry: Entry{Type: Dir, SHA256: root}}
	passed := 0
	for name := range path.Components() {
		if at.Type != Dir {
			return nil, nil
		}
		where := path[:max(passed-1, 0)]
		c := r.open(at.SHA256, func() Path { return where })
		if !c.seek(name) {
			return nil, c.err
		}
		at = c.node
		passed += len(name) + 1
	}
	return &at, nil
}

// Walk visits the objects that the tree is made of. enter is called with each object's
// name before it is read; where it returns false the object and all below it is passed
// over, so that a caller who remembers the names visits each object once. visit is
// called for each name in the objects, in no certain order. dir and path are valid during
// the calls.
func (r Reader) Walk(root Hash, enter func(dir []byte, object Hash) bool, visit func(path []byte, n *Node) error) error {
	if !enter(nil, root) {
		return nil
	}
	var path []byte
	levels := []level{{cursor: r.open(root, func() Path { return "" })}}
	for len(levels) > 0 {
		l := &levels[len(levels)-1]
		for l.at == onObject {
			if l.ref.level != unknownLevel && !enter(path[:l.path], l.ref.hash) {
				l.skip()
			} else {
				l.expand()
			}
		}
		if l.err != nil {
			return l.err
		}
		if l.at == atEnd {
			levels = levels[:len(levels)-1]
			continue
		}
		path = join(path[:l.path], l.node.Name)
		if err := visit(path, &l.node); err != nil {
			return err
		}
		n := l.node
		l.advance()
		if n.Type != Dir || !enter(path, n.SHA256) {
			continue
		}
		at := len(path)
		if tooLong(path) {
			err := &DamagedError{Path: Path(path), Hash: n.SHA256, Err: errDeep}
			if r.Skip == nil || !r.Skip(err) {
				return err
			}
			continue
		}
		levels = append(levels, level{cursor: r.open(n.SHA256, func() Path { return Path(path[:at]) }), path: at})
	}
	return nil
}
