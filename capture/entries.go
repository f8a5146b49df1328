package capture

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"unsafe"

	"decree/manifest"
	"decree/tree"
)

// level is a directory on the way down through the blocks.
type level struct {
	b    block
	i    int // the next record
	path int // length of the directory's path
	dirs []int32
	next int // the next of dirs
}

// each calls visit for each tracked record below the block at r, in the order of the
// blocks; path is that of the record, beginning with prefix, and valid during the call.
func (c *cache) each(r ref, prefix string, visit func(path []byte, b block, i int) error) error {
	return c.descend(r, prefix, func(path []byte, b block, i int) (bool, error) {
		if !b.kind(i).tracked() {
			return false, nil
		}
		return true, visit(path, b, i)
	})
}

// descend calls visit for each record below the block at r, in the order of the blocks,
// and goes into a directory if visit returns true. It needs no stack of its own for a
// deep tree.
func (c *cache) descend(r ref, prefix string, visit func(path []byte, b block, i int) (bool, error)) error {
	path := []byte(prefix)
	var levels []level
	enter := func(r ref) error {
		b, err := c.block(r)
		if err == nil && b != nil {
			levels = append(levels, level{b: b, path: len(path)})
		}
		return err
	}
	if err := enter(r); err != nil {
		return err
	}
	for len(levels) > 0 {
		l := &levels[len(levels)-1]
		if l.i == l.b.count() {
			levels = levels[:len(levels)-1]
			continue
		}
		i := l.i
		l.i++
		b := l.b
		path = appendName(path[:l.path], b.name(i))
		down, err := visit(path, b, i)
		if err != nil {
			return err
		}
		if down && b.kind(i) == kDir {
			if err := enter(b.child(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendName(path, name []byte) []byte {
	if len(path) > 0 {
		path = append(path, '/')
	}
	return append(path, name...)
}

// eachEntry calls visit for the tree at r in manifest order.
func (c *cache) eachEntry(r ref, visit func(path []byte, b block, i int) error) error {
	if err := c.eachFile(r, visit); err != nil {
		return err
	}
	return c.eachDir(r, visit)
}

// eachFile calls visit for all files and symlinks in byte order of their paths, which is
// the order of the blocks.
func (c *cache) eachFile(r ref, visit func(path []byte, b block, i int) error) error {
	return c.each(r, "", func(path []byte, b block, i int) error {
		if b.kind(i) == kDir {
			return nil
		}
		return visit(path, b, i)
	})
}

// eachDir calls visit for all directories in byte order of their paths. That is another
// order than the blocks': "a" comes before "a-b", and "a-b" before "a/c". So each level
// has its directories by plain name, and those that stand before one whose turn it is to
// be entered are called first.
func (c *cache) eachDir(r ref, visit func(path []byte, b block, i int) error) error {
	var path []byte
	var levels []level
	enter := func(r ref) error {
		b, err := c.block(r)
		if err != nil || b == nil {
			return err
		}
		levels = append(levels, level{b: b, path: len(path), dirs: dirsByName(b)})
		return nil
	}
	if err := enter(r); err != nil {
		return err
	}
	for len(levels) > 0 {
		l := &levels[len(levels)-1]
		for l.i < l.b.count() && l.b.kind(l.i) != kDir {
			l.i++
		}
		last := l.i == l.b.count()
		for l.next < len(l.dirs) && (last || compareNames(l.b.name(int(l.dirs[l.next])), false, l.b.name(l.i), true) < 0) {
			at := int(l.dirs[l.next])
			path = appendName(path[:l.path], l.b.name(at))
			if err := visit(path, l.b, at); err != nil {
				return err
			}
			l.next++
		}
		if last {
			levels = levels[:len(levels)-1]
			continue
		}
		path = appendName(path[:l.path], l.b.name(l.i))
		child := l.b.child(l.i)
		l.i++
		if err := enter(child); err != nil {
			return err
		}
	}
	return nil
}

// dirsByName returns the directories of b by plain name. They are nearly in that order.
func dirsByName(b block) []int32 {
	var dirs []int32
	for i := range b.count() {
		if b.kind(i) == kDir {
			dirs = append(dirs, int32(i))
		}
	}
	slices.SortFunc(dirs, func(x, y int32) int {
		return cmp.Or(compareNames(b.name(int(x)), false, b.name(int(y)), false), cmp.Compare(x, y))
	})
	return dirs
}

// errStop ends a pass when the reader of a sequence has enough.
var errStop = errors.New("stopped")

// entries returns the tree at r in manifest order.
func (c *cache) entries(r ref) tree.Seq {
	return func(yield func(tree.Item, error) bool) {
		err := c.eachEntry(r, func(path []byte, b block, i int) error {
			if !yield(tree.Item{Path: tree.Path(path), Entry: b.entry(i)}, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && err != errStop {
			yield(tree.Item{}, err)
		}
	}
}

// writeManifest encodes the tree at r.
func (c *cache) writeManifest(w io.Writer, r ref) error {
	e := manifest.NewEncoder(w, false)
	// The encoder keeps nothing of a path.
	err := c.eachEntry(r, func(path []byte, b block, i int) error {
		return e.Item(tree.Item{Path: tree.Path(unsafe.String(&path[0], len(path))), Entry: b.entry(i)})
	})
	if err != nil {
		return err
	}
	return e.Close()
}
