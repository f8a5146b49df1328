package tree

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
)

// Node is one name in a directory. Of a directory SHA256 is its object's name, and all
// else but Mode is zero; otherwise the facts are those of a path.
type Node struct {
	Name string
	Entry
}

const magic = "dtree2\n"

// headLen is the length of what stands before the entries.
const headLen = len(magic) + 1

// The head byte of an entry.
const (
	headFile  = 1
	headLink  = 2
	headDir   = 3
	headKind  = 3
	headMode  = 4
	headOwner = 8
)

// What bounds a cut: see the package's doc.
const (
	minEntries = 8
	maxEntries = 512
	cutBits    = 3
)

const (
	maxTarget = 64 << 10
	maxLevel  = 12 // of objects with 16 entries: more than there are bytes on earth
)

// MaxObject is the length in bytes that no object reaches.
const MaxObject = maxEntries*(MaxPath+maxTarget+64) + headLen

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// digest is what a name says about cuts.
func digest(name string) uint32 {
	// The table's update takes bytes; for a short name the copy stays on the stack.
	var buf [256]byte
	return crc32.Checksum(append(buf[:0], name...), castagnoli) * 2654435761
}

// cutsBehind says whether an object of the level ends behind its n-th entry, which has
// this name.
func cutsBehind(level, n int, name string) bool {
	if n < minEntries {
		return false
	}
	return n == maxEntries || bits.RotateLeft32(digest(name), cutBits*(level%6)) < 1<<(32-cutBits)
}

func defaultMode(t Type) uint32 {
	if t == Dir {
		return 0o755
	}
	return 0o644
}

// appendNode appends an entry of level 0.
func appendNode(dst []byte, n *Node) []byte {
	head := byte(headFile)
	switch n.Type {
	case Symlink:
		head = headLink
	case Dir:
		head = headDir
	}
	mode := n.Mode & 0o7777
	if head != headLink && mode != defaultMode(n.Type) {
		head |= headMode
	}
	if n.MayOwn() && n.Owner.Known {
		head |= headOwner
	}
	dst = append(dst, head)
	dst = appendText(dst, n.Name)
	if head&headMode != 0 {
		dst = binary.AppendUvarint(dst, uint64(mode))
	}
	if head&headOwner != 0 {
		dst = binary.AppendUvarint(dst, uint64(n.Owner.UID))
		dst = binary.AppendUvarint(dst, uint64(n.Owner.GID))
	}
	switch n.Type {
	case Symlink:
		return appendText(dst, n.Target)
	case Dir:
		return append(dst, n.SHA256[:]...)
	}
	dst = binary.AppendUvarint(dst, uint64(n.Size))
	return append(dst, n.SHA256[:]...)
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// checkName says why name cannot be one in a tree, or "".
func checkName(name string) string {
	switch name {
	case "":
		return "an empty name"
	case ".", "..", ".git", ".decree":
		return "the name " + name
	}
	if len(name) >= MaxPath {
		return "a name that is too long"
	}
	for i := range len(name) {
		if name[i] == 0 || name[i] == '/' {
			return "a NUL or slash in a name"
		}
	}
	return ""
}

// object reads the entries of one object. The first fault ends it.
type object struct {
	level int
	rest  []byte
	n     int    // entries read
	last  string // the name of the last
	cut   bool   // behind it the object must end
	err   error
}

var (
	errFormat = errors.New("no directory object of this version")
	errShort  = errors.New("cut short")
	errNumber = errors.New("a number out of range")
	errKind   = errors.New("an unknown kind of entry")
	errMode   = errors.New("a mode that is not written so")
	errOrder  = errors.New("names out of order")
	errCut    = errors.New("not cut where it should be")
	errEmpty  = errors.New("an index of nothing")
)

func openObject(data []byte) object {
	if len(data) < headLen || string(data[:len(magic)]) != magic || data[len(magic)] > maxLevel {
		return object{err: errFormat}
	}
	o := object{level: int(data[len(magic)]), rest: data[headLen:]}
	if o.level > 0 && len(o.rest) == 0 {
		o.err = errEmpty
	}
	return o
}

func (o *object) more() bool { return o.err == nil && len(o.rest) > 0 }

func (o *object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

func (o *object) uvarint(most uint64) uint64 {
	n, used := binary.Uvarint(o.rest)
	if used <= 0 || n > most || used > 1 && o.rest[used-1] == 0 {
		o.fail(errNumber)
		o.rest = nil
		return 0
	}
	o.rest = o.rest[used:]
	return n
}

func (o *object) text(most uint64) string {
	n := o.uvarint(most)
	if uint64(len(o.rest)) < n {
		o.fail(errShort)
		return ""
	}
	s := string(o.rest[:n])
	o.rest = o.rest[n:]
	return s
}

func (o *object) hash() (h Hash) {
	if len(o.rest) < len(h) {
		o.fail(errShort)
		return h
	}
	copy(h[:], o.rest)
	o.rest = o.rest[len(h):]
	return h
}

// name takes the next entry's name.
func (o *object) name() string {
	if o.cut {
		o.fail(errCut)
	}
	name := o.text(MaxPath - 1)
	if o.err == nil && o.n > 0 && name <= o.last {
		o.fail(errOrder)
	}
	if reason := checkName(name); o.err == nil && reason != "" {
		o.fail(errors.New(reason))
	}
	o.n++
	o.last = name
	o.cut = cutsBehind(o.level, o.n, name)
	return name
}

// node takes the next entry of level 0.
func (o *object) node() (n Node) {
	head := o.rest[0]
	o.rest = o.rest[1:]
	kind := head & headKind
	if kind == 0 || head&^(headKind|headMode|headOwner) != 0 || kind == headLink && head != headLink {
		o.fail(errKind)
		return n
	}
	n.Name = o.name()
	if kind == headLink {
		n.Entry = Link(o.text(maxTarget))
		if n.Target == "" {
			o.fail(errNumber)
		}
		return n
	}
	if kind == headDir {
		n.Type = Dir
	}
	o.mode(&n, head)
	if kind == headFile {
		n.Size = int64(o.uvarint(1 << 62))
	}
	n.SHA256 = o.hash()
	return n
}

func (o *object) mode(n *Node, head byte) {
	n.Mode = defaultMode(n.Type)
	if head&headMode != 0 {
		mode := uint32(o.uvarint(0o7777))
		if mode == n.Mode {
			o.fail(errMode)
		}
		n.Mode = mode
	}
	if head&headOwner == 0 {
		return
	}
	n.Owner = Owner{UID: uint32(o.uvarint(1<<32 - 1)), GID: uint32(o.uvarint(1<<32 - 1)), Known: true}
	if !n.MayOwn() {
		o.fail(errMode)
	}
}

// child takes the next entry of a level above 0.
func (o *object) child() (last string, h Hash) {
	last = o.name()
	return last, o.hash()
}

// Link returns the entry of a symlink to target.
func Link(target string) Entry {
	return Entry{Type: Symlink, Mode: 0o777, Size: int64(len(target)), SHA256: Sum([]byte(target)), Target: target}
}
