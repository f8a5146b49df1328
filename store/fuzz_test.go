package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPackReader reads arbitrary packs: whatever they hold, nothing panics,
// nothing is read that its hash does not match, memory is bounded, and a Writer
// can go on behind them. With mend, checksums are made to fit first, so that the
// fuzzer gets past them.
func FuzzPackReader(f *testing.F) {
	states := built(f, Options{BlockSize: 300}, [][]byte{prose(1, 200), noise(2, 90), {}}, [][]byte{prose(3, 400)})
	pack := states[1][firstPack]
	for _, mend := range []bool{false, true} {
		f.Add(pack, mend)
		f.Add(pack[:len(pack)-7], mend)
		f.Add(pack[:packStart], mend)
		f.Add([]byte{}, mend)
		for _, at := range []int{1, 40, 44, 48, 52, 64, 73, 106} {
			hurt := append([]byte(nil), pack...)
			hurt[at] ^= 0xff
			f.Add(hurt, mend)
		}
		f.Add(bomb(), mend)
		f.Add(lyingList(), mend)
	}
	f.Fuzz(func(t *testing.T, pack []byte, mend bool) {
		if mend {
			pack = mended(pack)
		}
		d := files{firstPack: pack}.lay(t)
		s, err := Open(d, Options{})
		require.NoError(t, err)
		defer s.Close()
		for o, err := range s.Objects() {
			if err != nil {
				require.ErrorAs(t, err, new(*VersionError))
				return
			}
			readHostile(t, s, o)
		}
		_, err = s.Check(t.Context())
		require.NoError(t, err)
		w, err := s.Writer(t.Context())
		require.NoError(t, err)
		h, err := w.PutBytes([]byte("behind it"))
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		require.NoError(t, w.Close())
		require.NoError(t, s.Verify(h))
	})
}

func readHostile(t *testing.T, s *Store, o Object) {
	r, n, err := s.Open(o.Hash)
	if err == nil {
		var b []byte
		b, err = io.ReadAll(io.LimitReader(r, 32<<20))
		r.Close()
		if err == nil && len(b) < 32<<20 {
			require.EqualValues(t, n, len(b))
			require.Equal(t, o.Hash, sum(b))
		}
	}
	if err != nil {
		require.True(t, errors.As(err, new(*DamagedError)) || errors.As(err, new(*MissingError)), "%v", err)
	}
}

// mended gives each thing that looks like a block fitting checksums.
func mended(pack []byte) []byte {
	pack = append([]byte(nil), pack...)
	for off := packStart; off+blockFixed <= len(pack); {
		b := pack[off:]
		copy(b, blockMagic)
		header, stored := uint64(binary.LittleEndian.Uint32(b[8:])), uint64(binary.LittleEndian.Uint32(b[16:]))
		if header < blockFixed || header+stored > uint64(len(b)) {
			break
		}
		binary.LittleEndian.PutUint32(b[28:], crc32.Checksum(b[header:header+stored], castagnoli))
		binary.LittleEndian.PutUint32(b[36:], headerSum(b[:header], int64(off)))
		off += int(header + stored)
	}
	return pack
}

// onePack is a pack of one sealed block.
func onePack(raw uint32, payload []byte, method uint32, members ...member) []byte {
	head := newPackHeader()
	block := make([]byte, blockFixed)
	for i := range members {
		block = appendMember(block, &members[i])
	}
	sealHeader(block, packStart, blockHead{raw: raw, stored: uint32(len(payload)), count: uint32(len(members)),
		payloadSum: crc32.Checksum(payload, castagnoli), method: method})
	return append(append(head[:], block...), payload...)
}

// bomb is a block whose payload decompresses to far more than its header says.
func bomb() []byte {
	c := newCoder(0)
	payload := c.enc.EncodeAll(make([]byte, 64<<20), nil)
	return onePack(1000, payload, methodZstd, member{hash: Hash{1}, length: 1000, size: 1000})
}

// lyingList is a list that names itself as its chunk and a size beyond all disks.
func lyingList() []byte {
	list := appendPiece(nil, piece{Hash{1}, 1 << 20})
	return onePack(uint32(len(list)), list, methodRaw, member{hash: Hash{1}, list: true, length: uint32(len(list)), size: 1 << 20})
}

func TestHostileBlocks(t *testing.T) {
	huge := onePack(10, []byte("0123456789"), methodRaw, member{hash: Hash{1}, length: 10, size: 10})
	at := huge[packStart:]
	for name, pack := range map[string][]byte{
		"bomb":            bomb(),
		"list of itself":  lyingList(),
		"wrong hash":      huge,
		"entries beyond":  onePack(10, []byte("0123456789"), methodRaw, member{hash: Hash{1}, length: 11, size: 11}),
		"entries fewer":   onePack(10, []byte("0123456789"), methodRaw, member{hash: Hash{1}, length: 9, size: 9}),
		"no zstd":         onePack(10, []byte("0123456789"), methodZstd, member{hash: Hash{1}, length: 10, size: 10}),
		"unknown method":  onePack(10, []byte("0123456789"), 7, member{hash: Hash{1}, length: 10, size: 10}),
		"ragged list":     onePack(10, []byte("0123456789"), methodRaw, member{hash: Hash{1}, list: true, length: 10, size: 5}),
		"raw of 4 GiB":    patched(huge, at, 12, 0xffffffff),
		"stored of 4 GiB": patched(huge, at, 16, 0xffffffff),
		"header of 4 GiB": patched(huge, at, 8, 0xffffffff),
		"4 Gi entries":    patched(huge, at, 20, 0xffffffff),
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, files{firstPack: pack}.lay(t), Options{})
			require.Error(t, s.Verify(Hash{1}))
			_, _, err := s.Open(Hash{1})
			if err != nil {
				require.True(t, errors.As(err, new(*DamagedError)) || errors.As(err, new(*MissingError)), "%v", err)
			}
		})
	}
}

// patched changes a number of the block's header and makes its checksum fit.
func patched(pack, block []byte, at int, v uint32) []byte {
	out := append([]byte(nil), pack...)
	b := out[len(pack)-len(block):]
	binary.LittleEndian.PutUint32(b[at:], v)
	header := len(b) - 10
	binary.LittleEndian.PutUint32(b[36:], headerSum(b[:header], packStart))
	return out
}

// FuzzIndex reads arbitrary index files over sound packs: what is stored is
// found, or at least answered with an error that names it; nothing panics.
func FuzzIndex(f *testing.F) {
	objects := manyObjects(1, 200)
	state := built(f, Options{FoldAt: 50}, objects[:150], objects[150:])[1]
	f.Add(state[baseName], state[logName])
	f.Add(state[baseName][:100], state[logName][:40])
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, base, log []byte) {
		d := state.with(baseName, append([]byte{}, base...)).with(logName, append([]byte{}, log...)).lay(t)
		s, err := Open(d, Options{})
		if err != nil {
			require.ErrorAs(t, err, new(*VersionError))
			return
		}
		defer s.Close()
		for _, b := range objects[:20] {
			if s.Verify(sum(b)) == nil {
				require.Equal(t, b, content(t, s, sum(b)))
			}
		}
		_, err = s.Rebuild(t.Context())
		require.NoError(t, err)
		for _, b := range objects {
			require.Equal(t, b, content(t, s, sum(b)))
		}
	})
}
