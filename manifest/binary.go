package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"decree/tree"
)

// The binary form begins with these bytes; the digit is its version.
const treeMagic = "dtree1\n\x00"

// An entry begins with a byte: its kind in the low two bits, endSection for none; then
// whether its mode is the one before.
const (
	endSection = 0
	isRegular  = 1
	isSymlink  = 2
	isDir      = 3
	kindBits   = 3
	sameMode   = 4
)

// ownedMode is beside a mode's bits where the owner follows.
const ownedMode = 0o10000

// ErrBinary says that a tree in binary form is not as earlier versions wrote it.
var ErrBinary = errors.New("malformed tree")

// firstMode is the mode that the first entry of a section need not spell out.
func firstMode(files bool) uint32 {
	if files {
		return 0o644
	}
	return 0o755
}

// DecodeTree returns the entries of a tree in binary form. The sequence ends with an error
// wrapping [ErrBinary] at the first byte that is not as earlier versions wrote it.
func DecodeTree(data []byte) tree.Seq {
	return func(yield func(tree.Item, error) bool) { ReadTree(bytes.NewReader(data))(yield) }
}

// ReadTree is DecodeTree from a stream, to be read once, up to its end.
func ReadTree(r io.Reader) tree.Seq {
	return func(yield func(tree.Item, error) bool) {
		u := newUnpacker(r)
		for section := range 2 {
			u.reset(section == 0)
			for {
				path, e, head := u.item()
				if u.err != nil {
					yield(tree.Item{}, u.err)
					return
				}
				if head == endSection {
					break
				}
				if !yield(tree.Item{Path: path, Entry: e}, nil) {
					return
				}
			}
		}
		if u.end(); u.err != nil {
			yield(tree.Item{}, u.err)
		}
	}
}

// unpacker reads a binary form: the magic, the files, a zero byte, the directories, a zero
// byte. Each entry is:
//
//	head byte, uvarint length shared with the path before, uvarint length of the rest, the rest,
//	unless sameMode: uvarint mode, with ownedMode uvarint user, uvarint group;
//	regular: uvarint size, 32 bytes hash; symlink: uvarint length, target
//
// A symlink's hash and size follow from its target, its mode is always 0777.
type unpacker struct {
	r     *bufio.Reader
	path  ordered
	mode  uint32
	name  []byte
	hash  tree.Hash
	files bool // the section
	err   error
}

func newUnpacker(r io.Reader) *unpacker {
	u := &unpacker{r: bufio.NewReaderSize(r, flushSize)}
	got := make([]byte, len(treeMagic))
	if _, err := io.ReadFull(u.r, got); err != nil {
		u.read(err)
	} else if string(got) != treeMagic {
		u.fail("unknown format or version")
	}
	return u
}

func (u *unpacker) fail(reason string) {
	if u.err == nil {
		u.err = fmt.Errorf("%w: %s", ErrBinary, reason)
	}
}

// read takes the reader's error; that the input ends too early is ErrBinary.
func (u *unpacker) read(err error) {
	if u.err != nil {
		return
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		u.fail("cut short")
		return
	}
	u.err = err
}

func (u *unpacker) reset(files bool) {
	u.path.reset(files)
	u.mode = firstMode(files)
	u.files = files
}

func (u *unpacker) byte() byte {
	if u.err != nil {
		return 0
	}
	c, err := u.r.ReadByte()
	if err != nil {
		u.read(err)
	}
	return c
}

// uvarint refuses a number above most or with needless bytes.
func (u *unpacker) uvarint(most uint64) uint64 {
	var n uint64
	for shift := 0; shift < 63; shift += 7 {
		c := u.byte()
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if n > most || c == 0 && shift > 0 {
				break
			}
			return n
		}
	}
	u.fail("number out of range")
	return 0
}

func (u *unpacker) bytes(dst []byte) {
	if u.err != nil {
		return
	}
	if _, err := io.ReadFull(u.r, dst); err != nil {
		u.read(err)
	}
}

// item takes the next entry, or a section's end (head endSection).
func (u *unpacker) item() (path tree.Path, e tree.Entry, head byte) {
	head = u.byte()
	if u.err != nil || head == endSection {
		return "", e, head
	}
	if head&^(kindBits|sameMode) != 0 || head&kindBits == endSection || (head&kindBits == isDir) == u.files {
		u.fail("unknown kind")
		return "", e, head
	}
	path = u.key()
	if u.err != nil {
		return "", e, head
	}
	u.facts(head, &e)
	return path, e, head
}

func (u *unpacker) key() tree.Path {
	shared := u.uvarint(tree.MaxPath)
	rest := u.uvarint(tree.MaxPath)
	if u.err != nil {
		return ""
	}
	if shared > uint64(len(u.path.prev)) || shared+rest >= tree.MaxPath {
		u.fail("path too long")
		return ""
	}
	u.name = append(u.name[:0], u.path.prev[:shared]...)
	u.name = append(u.name, make([]byte, rest)...)
	u.bytes(u.name[shared:])
	if u.err != nil {
		return ""
	}
	path := tree.Path(u.name)
	n, err := u.path.nextChecked(path)
	if err != nil {
		u.err = fmt.Errorf("%w: %w", ErrBinary, err)
	} else if n != int(shared) {
		u.fail("a path does not share the right beginning with the one before it")
	}
	return path
}

func (u *unpacker) facts(head byte, e *tree.Entry) {
	if head&kindBits == isSymlink {
		u.target(head, e)
		return
	}
	if head&kindBits == isDir {
		e.Type = tree.Dir
	}
	e.Mode = u.mode
	if head&sameMode == 0 {
		u.spelledMode(e)
	}
	if e.Type == tree.Regular {
		e.Size = int64(u.uvarint(1 << 62))
		u.bytes(u.hash[:]) // not into e, which would then be allocated
		e.SHA256 = u.hash
	}
}

// spelledMode takes a mode that is not the one before, or one with an owner.
func (u *unpacker) spelledMode(e *tree.Entry) {
	mode := uint32(u.uvarint(0o7777 | ownedMode))
	e.Mode = mode &^ ownedMode
	if mode&ownedMode == 0 {
		if e.Mode == u.mode {
			u.fail("mode repeated")
		}
		u.mode = e.Mode
		return
	}
	e.Owner = tree.Owner{UID: uint32(u.uvarint(1<<32 - 1)), GID: uint32(u.uvarint(1<<32 - 1)), Known: true}
	if !e.MayOwn() {
		u.fail("an owner that is not recorded")
	}
}

// maxTarget bounds a symlink's target; systems allow 4,095 bytes.
const maxTarget = 64 << 10

func (u *unpacker) target(head byte, e *tree.Entry) {
	if head&sameMode != 0 {
		u.fail("unknown flag")
	}
	n := u.uvarint(maxTarget)
	if u.err != nil {
		return
	}
	target := make([]byte, n)
	u.bytes(target)
	*e = Link(string(target))
	if n == 0 {
		u.fail("empty symlink target")
	}
}

// Link returns the entry of a symlink to target.
func Link(target string) tree.Entry {
	return tree.Entry{Type: tree.Symlink, Mode: 0o777, Size: int64(len(target)), SHA256: tree.Sum([]byte(target)), Target: target}
}

// end checks that nothing is left.
func (u *unpacker) end() {
	if u.err != nil {
		return
	}
	if _, err := u.r.ReadByte(); err == nil {
		u.fail("bytes after the end")
	} else if err != io.EOF {
		u.err = err
	}
}
