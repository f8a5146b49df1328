package layer

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own
	"crypto/sha256"
	"encoding/binary"

	"decree/disk"
	"decree/tree"
)

// StagesOther says whether the index in has, a .git, stages other things than the one in had, which is nil where there is no .git: git also
// writes its index when it only reads, with new times of files. Of one that cannot be understood nothing is said.
func StagesOther(has, had disk.Dir) bool {
	is, known := staged(readIndex(has))
	if !known {
		return false
	}
	text := readIndex(had)
	was, known := staged(text)
	if text == nil {
		was, known = tree.Sum(nil), true
	}
	return known && is != was
}

// stages says whether the run has staged something in the layer's .git, which is called name in root. Where the root's index is not from
// before the run, somebody else may have.
func (w *walk) stages(git, root disk.Dir, name string) bool {
	if root == nil {
		return StagesOther(git, nil)
	}
	had, err := root.OpenDir(name)
	if err != nil {
		return StagesOther(git, nil)
	}
	defer had.Close()
	in, err := look(had, "index")
	return err == nil && (in == nil || w.base.old(had, "index", in)) && StagesOther(git, had)
}

// mostOfIndex is the size of an index of some million files.
const mostOfIndex = 256 << 20

// readIndex is nil where there is none, or none that can be read.
func readIndex(git disk.Dir) []byte {
	if git == nil {
		return nil
	}
	text, err := readFile(git, "index", mostOfIndex)
	if err != nil {
		return nil
	}
	return text
}

// staged is a hash of what an index stages: of the mode, the object, the flags and the path of each entry. The length of the objects' names
// is the repository's.
func staged(index []byte) (sum tree.Hash, known bool) {
	for _, size := range []int{sha1.Size, sha256.Size} {
		if sum, known = stagedBy(index, size); known {
			break
		}
	}
	return sum, known
}

// stagedBy is staged for objects' names of so many bytes. It reads the versions 2 to 4 of gitformat-index(5), but no split index, whose
// larger part lies in another file.
func stagedBy(index []byte, size int) (sum tree.Hash, known bool) {
	const head, stat, extended = 12, 40, 0x4000
	if len(index) < head || !bytes.HasPrefix(index, []byte("DIRC")) {
		return sum, false
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	var path []byte
	all, rest := sha256.New(), index[head:]
	for range count {
		n := stat + size + 2
		if len(rest) < n+2 {
			return sum, false
		}
		flags, more := binary.BigEndian.Uint16(rest[n-2:]), []byte{0, 0}
		if version > 2 && flags&extended != 0 {
			more, n = rest[n:n+2], n+2
		}
		keep := 0
		if version == 4 {
			cut, length := indexVarint(rest[n:])
			keep, n = len(path)-cut, n+length
		}
		name, _, ended := bytes.Cut(rest[min(n, len(rest)):], []byte{0})
		if keep < 0 || keep > len(path) || !ended {
			return sum, false
		}
		path = append(path[:keep], name...)
		all.Write(rest[24:28]) // the mode
		all.Write(rest[stat : stat+size])
		all.Write(binary.BigEndian.AppendUint16(bytes.Clone(more), flags&^extended))
		all.Write(path)
		all.Write([]byte{0})
		if n += len(name) + 1; version < 4 {
			n = (n + 7) &^ 7
		}
		rest = rest[min(n, len(rest)):]
	}
	for len(rest) > size+8 {
		if bytes.HasPrefix(rest, []byte("link")) {
			return sum, false
		}
		rest = rest[min(8+int(binary.BigEndian.Uint32(rest[4:])), len(rest)):]
	}
	if count == 0 {
		return tree.Sum(nil), len(rest) == size
	}
	all.Sum(sum[:0])
	return sum, len(rest) == size
}

// indexVarint is a number as in version 4, and how many bytes it takes.
func indexVarint(b []byte) (value, length int) {
	for i, c := range b[:min(len(b), 4)] {
		if i > 0 {
			value = (value + 1) << 7
		}
		value, length = value+int(c&0x7f), i+1
		if c&0x80 == 0 {
			break
		}
	}
	return value, length
}
