package store

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// The limits that a header is held to before anything is allocated for it.
const (
	blockFixed = 40
	maxRaw     = 16 << 20 // raw bytes of a block
	maxWhole   = 8 << 20  // a content above this is cut into chunks
	maxEntries = 8192     // of a block
	maxHeader  = blockFixed + maxEntries*(hashLen+2*binary.MaxVarintLen64)
	maxStored  = maxRaw + maxRaw/128 + 1024
)

const blockMagic = "\xdcDBLOCK\n"

const (
	methodRaw  = 0
	methodZstd = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockHead is the fixed part of a block's header.
type blockHead struct {
	header, raw, stored, count, flushed uint32
	payloadSum, method, sum             uint32
}

func (h *blockHead) length() int64 { return int64(h.header) + int64(h.stored) }

// member is one object of a block.
type member struct {
	hash   Hash
	list   bool
	length uint32 // of its bytes in the raw block
	size   int64  // of the content: length, but for a list
}

// appendMember is an entry's form in a block's header.
func appendMember(dst []byte, m *member) []byte {
	dst = append(dst, m.hash[:]...)
	if !m.list {
		return binary.AppendUvarint(dst, uint64(m.length)<<1)
	}
	dst = binary.AppendUvarint(dst, uint64(m.length)<<1|1)
	return binary.AppendUvarint(dst, uint64(m.size))
}

// sealHeader fills the fixed part of header, whose entries are in place, for a
// block that will stand at off.
func sealHeader(header []byte, off int64, h blockHead) {
	copy(header, blockMagic)
	le := binary.LittleEndian
	le.PutUint32(header[8:], uint32(len(header)))
	le.PutUint32(header[12:], h.raw)
	le.PutUint32(header[16:], h.stored)
	le.PutUint32(header[20:], h.count)
	le.PutUint32(header[24:], h.flushed)
	le.PutUint32(header[28:], h.payloadSum)
	le.PutUint32(header[32:], h.method)
	le.PutUint32(header[36:], headerSum(header, off))
}

func headerSum(header []byte, off int64) uint32 {
	var at [4]byte
	binary.LittleEndian.PutUint32(at[:], uint32(off))
	sum := crc32.Update(0, castagnoli, at[:])
	sum = crc32.Update(sum, castagnoli, header[:36])
	return crc32.Update(sum, castagnoli, header[blockFixed:])
}

// readHead reads the fixed part and refuses lengths that no writer makes.
func readHead(b []byte) (h blockHead, err error) {
	if len(b) < blockFixed {
		return h, errShort
	}
	if string(b[:8]) != blockMagic {
		return h, errMagic
	}
	le := binary.LittleEndian
	h.header, h.raw, h.stored, h.count = le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[16:]), le.Uint32(b[20:])
	h.flushed, h.payloadSum, h.method, h.sum = le.Uint32(b[24:]), le.Uint32(b[28:]), le.Uint32(b[32:]), le.Uint32(b[36:])
	switch {
	case h.count > maxEntries, h.header > maxHeader, h.raw > maxRaw, h.stored > maxStored,
		h.header < blockFixed+h.count*(hashLen+1),
		h.method > methodZstd,
		h.method == methodRaw && h.raw != h.stored:
		return h, errBounds
	}
	return h, nil
}

// readMembers checks a whole header that stands at off and returns its entries,
// appended to dst. Their lengths add up to the raw length: each lies inside the block.
func readMembers(dst []member, header []byte, off int64, h *blockHead) ([]member, error) {
	if headerSum(header, off) != h.sum {
		return dst, errHeader
	}
	rest, total := header[blockFixed:], uint64(0)
	for range h.count {
		if len(rest) < hashLen {
			return dst, errBounds
		}
		m := member{hash: Hash(rest[:hashLen])}
		v, n := binary.Uvarint(rest[hashLen:])
		if n <= 0 || v>>1 > maxRaw {
			return dst, errBounds
		}
		rest = rest[hashLen+n:]
		m.list, m.length = v&1 != 0, uint32(v>>1)
		m.size = int64(m.length)
		if m.list {
			v, n = binary.Uvarint(rest)
			if n <= 0 || v > maxSize {
				return dst, errBounds
			}
			rest, m.size = rest[n:], int64(v)
		}
		total += uint64(m.length)
		dst = append(dst, m)
	}
	if len(rest) != 0 || total != uint64(h.raw) {
		return dst, errBounds
	}
	return dst, nil
}

// maxPack bounds a pack: offsets are 32 bits wide.
const maxPack = math.MaxUint32 - (maxStored + maxHeader)
