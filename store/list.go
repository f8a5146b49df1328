package store

import "encoding/binary"

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
