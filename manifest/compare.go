package manifest

import (
	"fmt"
	"iter"
	"slices"

	"decree/tree"
)

// Compare returns what leads from old to new, in byte order of the raw paths, files and
// directories merged; nil if they are the same state. Its memory grows with the number of
// changes, not with the trees. An error is that of a sequence, or wraps [tree.ErrOrder].
func Compare(old, new tree.Seq) ([]tree.Change, error) {
	var changes []tree.Change
	next, stop := iter.Pull2(new)
	defer stop()
	c := comparer{next: next, emit: func(ch tree.Change) { changes = append(changes, ch) }}
	c.advance()
	for it, err := range old {
		if err != nil {
			return nil, err
		}
		if c.err == nil {
			c.err = c.oldOrder.next(it)
		}
		if c.err == nil {
			c.old(it)
		}
		if c.err != nil {
			return nil, c.err
		}
	}
	for c.more && c.err == nil {
		c.created()
	}
	if c.err != nil {
		return nil, c.err
	}
	return Merge(changes)
}

// comparer merges two sequences; item is the next of the new one while more holds.
type comparer struct {
	next     func() (tree.Item, error, bool)
	item     tree.Item
	more     bool
	err      error
	oldOrder sections
	newOrder sections
	emit     func(tree.Change)
}

func (c *comparer) advance() {
	var err error
	c.item, err, c.more = c.next()
	if c.more && err == nil {
		err = c.newOrder.next(c.item)
	}
	if err != nil {
		c.err, c.more = err, false
	}
}

func (c *comparer) created() {
	e := c.item.Entry
	c.emit(tree.Change{Path: c.item.Path, New: &e})
	c.advance()
}

func (c *comparer) old(it tree.Item) {
	for c.more && order(c.item, it) < 0 {
		c.created()
	}
	if !c.more || order(c.item, it) > 0 {
		was := it.Entry
		c.emit(tree.Change{Path: it.Path, Old: &was})
		return
	}
	if !it.Entry.Same(c.item.Entry) {
		was, is := it.Entry, c.item.Entry
		c.emit(tree.Change{Path: it.Path, Old: &was, New: &is})
	}
	c.advance()
}

// order compares two items in manifest order.
func order(a, b tree.Item) int {
	if ad, bd := a.Entry.Type == tree.Dir, b.Entry.Type == tree.Dir; ad != bd {
		if bd {
			return -1
		}
		return 1
	}
	return a.Path.Compare(b.Path)
}

// sections checks that items come in manifest order.
type sections struct {
	prev tree.Item
	any  bool
}

func (s *sections) next(it tree.Item) error {
	if s.any && order(s.prev, it) >= 0 {
		return fmt.Errorf("%s: %w", tree.Quote(it.Path), tree.ErrOrder)
	}
	s.prev, s.any = it, true
	return nil
}

// Merge sorts changes by path, in place, and makes one of the two that a path has which
// changed between file and directory. Two changes that contradict each other are an
// error wrapping [tree.ErrOrder].
func Merge(changes []tree.Change) ([]tree.Change, error) {
	slices.SortStableFunc(changes, func(a, b tree.Change) int { return a.Path.Compare(b.Path) })
	out := changes[:0]
	for _, ch := range changes {
		if n := len(out); n > 0 && out[n-1].Path == ch.Path {
			last := &out[n-1]
			if last.Old != nil && ch.Old != nil || last.New != nil && ch.New != nil {
				return nil, fmt.Errorf("%s: both file and directory: %w", tree.Quote(ch.Path), tree.ErrOrder)
			}
			if ch.Old != nil {
				last.Old = ch.Old
			}
			if ch.New != nil {
				last.New = ch.New
			}
			continue
		}
		out = append(out, ch)
	}
	return out, nil
}
