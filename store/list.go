package store

import (
	"bytes"
	"encoding/binary"
	"math"
)

// piece is a line of a list: a chunk of a large content. A length that is a multiple of
// the chunk's says that it comes several times in a row.
type piece struct {
	hash   Hash
	length uint32
}

const pieceLen = hashLen + 4

func appendPiece(dst []byte, p piece) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, p.hash[:]...), p.length)
}

func pieceAt(list []byte, i int) (p piece) {
	b := list[i*pieceLen:]
	copy(p.hash[:], b)
	p.length = binary.LittleEndian.Uint32(b[hashLen:])
	return p
}

// checkList refuses a list whose pieces do not add up to size.
func checkList(list []byte, size int64) error {
	if len(list)%pieceLen != 0 {
		return errList
	}
	total := int64(0)
	for i := range len(list) / pieceLen {
		n := pieceAt(list, i).length
		if n == 0 {
			return errList
		}
		total += int64(n)
	}
	if total != size {
		return errList
	}
	return nil
}

// soundList is a list whose pieces add up to size. Until November 2026 a repetition of 4 GiB or more was written with the length of its
// first line in all of its lines: where a list has one such, the length of its last line is what the others leave of size.
func soundList(list []byte, size int64) ([]byte, error) {
	err := checkList(list, size)
	if err == nil || len(list)%pieceLen != 0 {
		return list, err
	}
	total, last, repetitions := int64(0), 0, 0
	for i := range len(list) / pieceLen {
		p := pieceAt(list, i)
		total += int64(p.length)
		if i == 0 || p != pieceAt(list, i-1) {
			continue
		}
		if last != i-1 || i == 1 {
			repetitions++
		}
		last = i
	}
	length := int64(0)
	if repetitions == 1 {
		length = int64(pieceAt(list, last).length) - (total - size)
	}
	if length <= 0 || length > math.MaxUint32 {
		return list, err
	}
	list = bytes.Clone(list)
	binary.LittleEndian.PutUint32(list[last*pieceLen+hashLen:], uint32(length))
	return list, checkList(list, size)
}
