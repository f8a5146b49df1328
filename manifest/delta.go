package manifest

import (
	"bytes"
	"fmt"

	"decree/patch"
)

// op is what a delta does to a path; it takes two bits of the head byte.
type op uint8

const (
	opAdd op = iota
	opReplace
	opDelete
)

// AppendDelta appends changes, which lead from one tree to another and come in the order
// of [Compare], in binary form: the magic, then what happens to files, a zero byte, what
// happens to directories, a zero byte. Entries are as in [AppendTree], with the operation
// in the head byte; a deletion has only its path and the kind that is deleted. The old facts
// are not stored: a delta leads forward only.
func AppendDelta(dst []byte, changes []Change) ([]byte, error) {
	dst = append(dst, deltaMagic...)
	p := packer{delta: true}
	for _, dirs := range []bool{false, true} {
		p.reset(!dirs)
		for i := range changes {
			ch := &changes[i]
			old, new := side(ch.Old, dirs), side(ch.New, dirs)
			if old == nil && new == nil {
				continue
			}
			what, shown := opAdd, new
			switch {
			case new == nil:
				what, shown = opDelete, old
			case old != nil:
				what = opReplace
			}
			var err error
			if dst, err = p.item(dst, headOf(shown)|byte(what)<<opShift, ch.Path, new); err != nil {
				return nil, err
			}
		}
		dst = append(dst, endSection)
	}
	return dst, nil
}

// side returns e if it belongs to the files, or directories, section.
func side(e *Entry, dirs bool) *Entry {
	if e == nil || (e.Type == Dir) != dirs {
		return nil
	}
	return e
}

// ApplyDelta returns base with delta applied. The sequence ends with an error wrapping
// [ErrBinary] if delta is malformed or does not fit base: it adds what is there, or
// replaces or deletes what is not. It can be read as often as base can.
func ApplyDelta(base Seq, delta []byte) Seq {
	return func(yield func(Item, error) bool) {
		a := applier{u: newUnpacker(bytes.NewReader(delta), deltaMagic), yield: yield}
		a.u.reset(true)
		a.advance()
		for it, err := range base {
			if err != nil {
				a.stop(err)
				return
			}
			if !a.take(it) {
				return
			}
		}
		for !a.done && a.u.err == nil {
			if !a.add() {
				return
			}
		}
		if a.u.err != nil {
			a.stop(a.u.err)
		}
	}
}

// applier merges a base with the next operation of a delta.
type applier struct {
	u     *unpacker
	yield func(Item, error) bool
	item  Item // of a deletion, only path and kind
	op    op
	done  bool // no operation is left
}

func (a *applier) stop(err error) { a.yield(Item{}, err) }

// advance reads the next operation, over a section's end.
func (a *applier) advance() {
	for a.u.err == nil && !a.done {
		path, e, head := a.u.item()
		if a.u.err != nil {
			return
		}
		if head != endSection {
			a.op = op(head & opBits >> opShift)
			if a.op > opDelete {
				a.u.fail("unknown operation")
			}
			if a.op == opDelete && head&kindBits == isDir {
				e.Type = Dir
			}
			a.item = Item{path, e}
			return
		}
		if !a.u.files {
			a.u.end()
			a.done = true
			return
		}
		a.u.reset(false)
	}
}

// take yields what the delta adds before it and what becomes of it.
func (a *applier) take(it Item) bool {
	for !a.done && a.u.err == nil && order(a.item, it) < 0 {
		if !a.add() {
			return false
		}
	}
	if a.u.err != nil {
		a.stop(a.u.err)
		return false
	}
	if a.done || order(a.item, it) > 0 {
		return a.yield(it, nil)
	}
	if a.op == opAdd {
		a.misfit("exists already")
		return false
	}
	now, deleted := a.item, a.op == opDelete
	if !deleted && !a.yield(now, nil) {
		return false
	}
	a.advance()
	return true
}

// add yields the delta's next path, which the base does not have.
func (a *applier) add() bool {
	if a.op != opAdd {
		a.misfit("does not exist")
		return false
	}
	if !a.yield(a.item, nil) {
		return false
	}
	a.advance()
	return true
}

func (a *applier) misfit(reason string) {
	a.stop(fmt.Errorf("%w: the delta does not fit: %s %s", ErrBinary, patch.Quote(a.item.Path), reason))
}
