package store

import (
	"bytes"
	"encoding/binary"

	"decree/tree"
)

// Hash is the SHA-256 of a content.
type Hash = tree.Hash

const (
	hashLen  = 32
	entryLen = 48
	listMark = 1 << 47 // in an entry's six bytes of size
	maxSize  = listMark - 1
)

// place is where an object's bytes are.
type place struct {
	pack uint32
	off  uint32 // of the block
	pos  uint16 // of the object in the block
}

// Mark is where a Writer began to append: what is put later lies behind it, wherever a
// Compact moves it. The zero Mark is none.
type Mark struct {
	Pack   uint32 `json:"pack"`
	Offset uint32 `json:"offset"`
}

// Before says whether m is the earlier one.
func (m Mark) Before(o Mark) bool {
	return m.Pack < o.Pack || m.Pack == o.Pack && m.Offset < o.Offset
}

// covers says whether what lies at a place was put since m.
func (m Mark) covers(at place) bool {
	return m != Mark{} && !(Mark{at.pack, at.off}).Before(m)
}

// entry is one line of the index.
type entry struct {
	hash Hash
	place
	list bool
	size int64 // of the content; for a list that of the whole file
}

func appendEntry(dst []byte, e *entry) []byte {
	dst = append(dst, e.hash[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, e.pack)
	dst = binary.LittleEndian.AppendUint32(dst, e.off)
	dst = binary.LittleEndian.AppendUint16(dst, e.pos)
	v := uint64(e.size)
	if e.list {
		v |= listMark
	}
	return append(dst, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40))
}

// readEntry is the inverse of appendEntry; b holds at least entryLen bytes.
func readEntry(b []byte) (e entry) {
	_ = b[entryLen-1]
	copy(e.hash[:], b)
	e.pack = binary.LittleEndian.Uint32(b[32:])
	e.off = binary.LittleEndian.Uint32(b[36:])
	e.pos = binary.LittleEndian.Uint16(b[40:])
	v := uint64(binary.LittleEndian.Uint32(b[42:])) | uint64(binary.LittleEndian.Uint16(b[46:]))<<32
	e.list = v&listMark != 0
	e.size = int64(v & maxSize)
	return e
}

func compareHash(a, b *Hash) int { return bytes.Compare(a[:], b[:]) }
