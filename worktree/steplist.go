package worktree

import (
	"bytes"
	"encoding/binary"
	"io"
	"iter"
	"slices"

	"decree/tree"
)

// stepList is the steps of a transaction in byte order of their paths. There is one for
// each path that changes, and all are there at once: what a step goes from and to is kept as
// the journal has it, of a path only what it has not in common with the one before. A
// step is made of that whenever somebody looks at it. Looking is safe for concurrent use.
type stepList struct {
	blocks  []*block
	n       int
	last    tree.Path
	content []func() (io.ReadCloser, error) // by the steps' numbers; nil: none has one
}

// blockSteps is how many steps a block has. One block is read to come to one step.
const blockSteps = 16

// block is steps that are next to each other, each as
//
//	len of what its path shares with the one before, len and bytes of the rest, len of what follows, flags, from?, to?
type block struct {
	packed []byte
	facts  [blockSteps]facts
}

// add puts a step at the end.
func (l *stepList) add(s *Step) *facts {
	i, shared := l.n%blockSteps, 0
	if i == 0 {
		l.blocks = append(l.blocks, &block{packed: make([]byte, 0, 2048)})
	} else {
		shared = sharedPrefix(l.last, s.Path)
	}
	b := l.blocks[len(l.blocks)-1]
	b.packed = binary.AppendUvarint(b.packed, uint64(shared))
	b.packed = appendBytes(b.packed, string(s.Path[shared:]))
	b.packed = appendBytes(b.packed, string(appendStates(make([]byte, 0, 256), s, false)))
	if i == blockSteps-1 {
		b.packed = bytes.Clone(b.packed)
	}
	if s.Content != nil && l.content == nil {
		l.content = make([]func() (io.ReadCloser, error), l.n)
	}
	if l.content != nil {
		l.content = append(l.content, s.Content)
	}
	f := &b.facts[i]
	f.n, f.kind = int32(l.n), kindOf(s.From, s.To) // at most maxSteps
	l.n, l.last = l.n+1, s.Path
	return f
}

func sharedPrefix(a, b tree.Path) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// blockReader makes the steps of a block, one after the other.
type blockReader struct {
	list *stepList
	at   *block
	left journalReader
	n    int
	path []byte
	rest []byte // the flags and states of the last step
}

func (l *stepList) read(b int) blockReader {
	return blockReader{list: l, at: l.blocks[b], left: journalReader{data: l.blocks[b].packed}, n: b * blockSteps}
}

// next goes to the next step.
func (r *blockReader) next() {
	shared := r.left.number()
	r.path = append(r.path[:shared], r.left.bytes(r.left.number())...)
	r.rest = r.left.bytes(r.left.number())
	r.n++
}

// step is the one that next went to.
func (r *blockReader) step() *step {
	n := r.n - 1
	s := &step{facts: &r.at.facts[n%blockSteps]}
	s.Path = tree.Path(r.path)
	rest := journalReader{data: r.rest}
	rest.states(&s.Step)
	if r.list.content != nil {
		s.Content = r.list.content[n]
	}
	return s
}

// at is the step with the number n.
func (l *stepList) at(n int) *step {
	r := l.read(n / blockSteps)
	r.path = make([]byte, 0, 256)
	for range n%blockSteps + 1 {
		r.next()
	}
	return r.step()
}

// fact is what is known of the step with the number n.
func (l *stepList) fact(n int) *facts { return &l.blocks[n/blockSteps].facts[n%blockSteps] }

// all are the steps, parents before children.
func (l *stepList) all() iter.Seq[*step] {
	return func(yield func(*step) bool) {
		for b := range l.blocks {
			r := l.read(b)
			for range min(blockSteps, l.n-r.n) {
				if r.next(); !yield(r.step()) {
					return
				}
			}
		}
	}
}

// allFacts is what is known of each step.
func (l *stepList) allFacts() iter.Seq[*facts] {
	return func(yield func(*facts) bool) {
		for n := range l.n {
			if !yield(l.fact(n)) {
				return
			}
		}
	}
}

// picked are the numbers of the steps that pick wants.
func (l *stepList) picked(pick func(*facts) bool) []int32 {
	var out []int32
	for f := range l.allFacts() {
		if pick(f) {
			out = append(out, f.n)
		}
	}
	return out
}

// find returns the step at path, nil where there is none.
func (l *stepList) find(path tree.Path) *step {
	after, found := slices.BinarySearchFunc(l.blocks, path, func(b *block, p tree.Path) int {
		r := journalReader{data: b.packed}
		r.number() // a block's first path shares nothing
		return bytes.Compare(r.bytes(r.number()), []byte(p))
	})
	if found {
		return l.at(after * blockSteps)
	}
	if after == 0 {
		return nil
	}
	r := l.read(after - 1)
	for range min(blockSteps, l.n-r.n) {
		if r.next(); string(r.path) == string(path) {
			return r.step()
		}
	}
	return nil
}

// with is the list with more steps in it, which are in order and of other paths. What was
// known of the others is still known.
func (l *stepList) with(more []Step) *stepList {
	out := &stepList{}
	for s := range l.all() {
		for len(more) > 0 && more[0].Path < s.Path {
			out.add(&more[0])
			more = more[1:]
		}
		f := out.add(&s.Step)
		n := f.n
		*f = *s.facts
		f.n = n
	}
	for i := range more {
		out.add(&more[i])
	}
	return out
}
