package manifest

import (
	"errors"
	"fmt"
	"strings"

	"decree/tree"
)

// Version is the version of manifest.json that this package writes.
const Version = 1

// Of returns the sequence of items, which must be in manifest order.
func Of(items ...tree.Item) tree.Seq {
	return func(yield func(tree.Item, error) bool) {
		for _, it := range items {
			if !yield(it, nil) {
				return
			}
		}
	}
}

// Collect returns all items of s, or its error.
func Collect(s tree.Seq) ([]tree.Item, error) {
	var items []tree.Item
	for it, err := range s {
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

// ordered holds the rules that successive paths of one section obey.
type ordered struct {
	prev   []byte
	any    bool
	files  bool  // no path may lie below another
	nested []int // lengths at which prev, cut, is a path of the section
}

var errBelowFile = errors.New("path below a file")

// next takes the next path and returns the length that it shares with the one before.
func (o *ordered) next(path tree.Path) (shared int, err error) {
	if !o.any {
		o.any = true
		o.prev = append(o.prev[:0], path...)
		return 0, nil
	}
	shared = common(o.prev, path)
	if shared == len(path) || shared < len(o.prev) && path[shared] < o.prev[shared] {
		return 0, tree.ErrOrder
	}
	if o.files {
		if err := o.below(path, shared); err != nil {
			return 0, err
		}
	}
	o.prev = append(o.prev[:shared], path[shared:]...)
	return shared, nil
}

// nextChecked is next for a path that is not known to be one of a tree; its errors name
// the path. Only what the path does not share with the one before need be checked.
func (o *ordered) nextChecked(path tree.Path) (shared int, err error) {
	if path == "" || path[0] == '/' || !plainFrom(path, o.prev) {
		if err := path.Check(); err != nil {
			return 0, err
		}
	}
	if shared, err = o.next(path); err != nil {
		return 0, fmt.Errorf("%s: %w", tree.Quote(path), err)
	}
	return shared, nil
}

// plainFrom says that path is certainly one of a tree, given that prev is one or empty:
// its components behind the directory that both have are not empty, do not begin with a
// dot, and hold no NUL.
func plainFrom(path tree.Path, prev []byte) bool {
	if len(path) >= tree.MaxPath {
		return false
	}
	at := strings.LastIndexByte(string(path[:common(prev, path)]), '/') + 1
	for start := at; ; at++ {
		if at == start && (at == len(path) || path[at] == '.') {
			return false
		}
		if at == len(path) {
			return true
		}
		switch path[at] {
		case 0:
			return false
		case '/':
			if at == start {
				return false
			}
			start = at + 1
		}
	}
}

// below refuses a path below an earlier one. All paths between "a" and "a/b" begin with
// "a", so the candidates are the earlier paths that the previous one begins with.
func (o *ordered) below(path tree.Path, shared int) error {
	for len(o.nested) > 0 && o.nested[len(o.nested)-1] > shared {
		o.nested = o.nested[:len(o.nested)-1]
	}
	if shared == len(o.prev) {
		o.nested = append(o.nested, shared)
	}
	if n := len(o.nested); n > 0 && o.nested[n-1] == shared && path[shared] == '/' {
		return errBelowFile
	}
	return nil
}

// reset starts a new section.
func (o *ordered) reset(files bool) {
	o.prev, o.nested, o.any, o.files = o.prev[:0], o.nested[:0], false, files
}

// common returns the length of the longest common prefix.
func common(a []byte, b tree.Path) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && tree.Path(a[i:i+8]) == b[i:i+8] {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
