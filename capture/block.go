package capture

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"

	"decree/disk"
	"decree/tree"
)

// kind is what a record of a block stands for.
type kind uint8

const (
	kNone       kind = iota // vanished while the directory was read
	kFile                   //
	kLink                   //
	kDir                    // has a block of its own
	kIgnored                // left out: anything but a directory
	kIgnoredDir             // left out with all below
	kSpecial                // socket, pipe, device
	kExcluded               // a directory left out by device and inode; looked at each time
	kindEnd
)

// isDir says whether k is some directory: it sorts as if its name ended with a slash.
func (k kind) isDir() bool { return k == kDir || k == kIgnoredDir || k == kExcluded }

// tracked says whether k stands in the manifest.
func (k kind) tracked() bool { return k == kFile || k == kLink || k == kDir }

// fits says whether an entry that is listed as d can be what a record of kind k stands for.
func (k kind) fits(d disk.Kind) bool {
	switch k {
	case kFile:
		return d == disk.Regular
	case kLink:
		return d == disk.Symlink
	case kDir, kIgnoredDir, kExcluded:
		return d == disk.Directory
	case kSpecial:
		return d == disk.Special
	case kIgnored:
		return d != disk.Directory && d != disk.Unknown
	}
	return false
}

// A block is all that the cache knows of one directory, little-endian:
//
//	header   headerSize bytes
//	records  recordSize bytes each, one a name, whatever it stands for, in the byte order
//	         of the names, those of directories taken with a slash at their end: so that
//	         going down the tree gives the files in the byte order of their paths
//	hashes   32 bytes a record: of a directory the name of its object (see package tree)
//	heap     names, each ended by a zero byte; targets of symlinks
//
// Its checksum stands in its own header and in the record or slot that refers to it, so
// that the whole tree of blocks hangs on the checksum of the slot.
type block []byte

const (
	blockMagic = 0x31626364 // "dcb1"
	headerSize = 104
	recordSize = 64
	hashSize   = 32
)

// Header fields.
const (
	hMagic  = 0
	hSum    = 4  // crc32c of all behind it
	hLen    = 8  // of the block
	hCount  = 12 // of records
	hRules  = 16 // fingerprint of the rules in force
	hFlags  = 24
	hMtime  = 32 // the directory itself, as it was listed
	hCtime  = 40
	hDev    = 48
	hIno    = 56
	hFiles  = 64 // of all below: regular files and symlinks,
	hDirs   = 72 // directories,
	hBytes  = 80 // sizes,
	hLive   = 88 // lengths of blocks, this one's too
	hMisc   = 96 // unused, zero
	flagOld = 1  // the listing is trusted: the directory's times are old enough
	flagGit = 2  // a .gitignore is a rule file here
	flagDec = 4  // the same for .decreeignore
)

// Record fields.
const (
	rName  = 0  // uint32, offset in the block
	rLen   = 4  // uint16
	rKind  = 6  // uint8
	rFlags = 7  // uint8
	rMode  = 8  // uint32
	rAux   = 12 // uint32: of a symlink the offset of its target, of a directory its block's checksum,
	// of a file that is owned its user
	rSize   = 16 // int64; of a directory the offset of its block, 0 if it has none
	rMtime  = 24
	rCtime  = 32
	rIno    = 40
	rDev    = 48
	rPerm   = 56 // uint32: which record the directory's listing has at this place
	rGroup  = 60 // uint32: the group of such a file
	trusted = 1  // flag: size, times, inode, device and mode vouch for the hash
	owned   = 2  // flag: rAux and rGroup are its owner, although it has neither set-user-ID nor set-group-ID
	asked   = 4  // flag: it was looked at whose the rights of its group are
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	// errDamaged says that the cache is not what was written.
	errDamaged = errors.New("stat cache is damaged")
	le         = binary.LittleEndian
)

// ref is where a block lies, and the checksum that it must have. The zero ref is none.
type ref struct {
	off int64
	sum uint32
}

func (b block) count() int         { return int(le.Uint32(b[hCount:])) }
func (b block) rec(i int) []byte   { return b[headerSize+i*recordSize:][:recordSize] }
func (b block) kind(i int) kind    { return kind(b[headerSize+i*recordSize+rKind]) }
func (b block) mode(i int) uint32  { return le.Uint32(b.rec(i)[rMode:]) }
func (b block) size(i int) int64   { return int64(le.Uint64(b.rec(i)[rSize:])) }
func (b block) perm(i int) int     { return int(le.Uint32(b.rec(i)[rPerm:])) }
func (b block) trusted(i int) bool { return b.rec(i)[rFlags]&trusted != 0 }
func (b block) sum() uint32        { return le.Uint32(b[hSum:]) }
func (b block) flags() uint32      { return le.Uint32(b[hFlags:]) }
func (b block) rules() uint64      { return le.Uint64(b[hRules:]) }

func (b block) name(i int) []byte {
	r := b.rec(i)
	return b[le.Uint32(r[rName:]):][:le.Uint16(r[rLen:])]
}

func (b block) hash(i int) []byte {
	return b[headerSize+b.count()*recordSize+i*hashSize:][:hashSize]
}

func (b block) child(i int) ref {
	r := b.rec(i)
	return ref{int64(le.Uint64(r[rSize:])), le.Uint32(r[rAux:])}
}

func (b block) target(i int) []byte {
	r := b.rec(i)
	off := le.Uint32(r[rAux:])
	return b[off : int64(off)+int64(le.Uint64(r[rSize:]))]
}

// entry returns the manifest's facts of a tracked record.
func (b block) entry(i int) tree.Entry {
	switch b.kind(i) {
	case kDir:
		e := tree.Entry{Type: tree.Dir, Mode: b.mode(i)}
		if r := b.rec(i); r[rFlags]&owned != 0 {
			e.Owner = tree.Owner{UID: le.Uint32(r[rIno:]), GID: le.Uint32(r[rGroup:]), Known: true}
		}
		return e
	case kLink:
		e := tree.Entry{Type: tree.Symlink, Mode: 0o777, Size: b.size(i), Target: string(b.target(i))}
		copy(e.SHA256[:], b.hash(i))
		return e
	}
	e := tree.Entry{Mode: b.mode(i), Size: b.size(i)}
	copy(e.SHA256[:], b.hash(i))
	if e.Special() || b.rec(i)[rFlags]&owned != 0 {
		e.Owner = b.owner(i)
	}
	return e
}

func (b block) owner(i int) tree.Owner {
	r := b.rec(i)
	return tree.Owner{UID: le.Uint32(r[rAux:]), GID: le.Uint32(r[rGroup:]), Known: true}
}

// sums are totals of a directory and all below it.
type sums struct{ files, dirs, bytes, live int64 }

func (s *sums) add(o sums) {
	s.files += o.files
	s.dirs += o.dirs
	s.bytes += o.bytes
	s.live += o.live
}

func (b block) sums() sums {
	return sums{int64(le.Uint64(b[hFiles:])), int64(le.Uint64(b[hDirs:])), int64(le.Uint64(b[hBytes:])), int64(le.Uint64(b[hLive:]))}
}

// own returns the sums of the block's own records.
func (b block) own() sums {
	s := sums{live: int64(len(b))}
	for i := range b.count() {
		switch b.kind(i) {
		case kFile, kLink:
			s.files++
			s.bytes += b.size(i)
		case kDir:
			s.dirs++
		}
	}
	return s
}

// seal fills in what covers the whole block, and its checksum.
func (b block) seal(s sums) {
	le.PutUint32(b[hMagic:], blockMagic)
	le.PutUint32(b[hLen:], uint32(len(b)))
	le.PutUint64(b[hFiles:], uint64(s.files))
	le.PutUint64(b[hDirs:], uint64(s.dirs))
	le.PutUint64(b[hBytes:], uint64(s.bytes))
	le.PutUint64(b[hLive:], uint64(s.live))
	le.PutUint32(b[hSum:], crc32.Checksum(b[hLen:], castagnoli))
}

// openBlock returns the block at the start of data, which lies at off in the cache.
func openBlock(data []byte, r ref) (block, error) {
	if len(data) < headerSize || le.Uint32(data[hMagic:]) != blockMagic {
		return nil, errDamaged
	}
	n := int64(le.Uint32(data[hLen:]))
	if n < headerSize || n > int64(len(data)) {
		return nil, errDamaged
	}
	b := block(data[:n:n])
	if b.sum() != r.sum || crc32.Checksum(b[hLen:], castagnoli) != r.sum || !b.sound(r.off) {
		return nil, errDamaged
	}
	return b, nil
}

// sound checks that no record points out of the block, or to a block that does not lie
// before this one: whatever the bytes, reading them ends.
func (b block) sound(off int64) bool {
	n := int64(b.count())
	heap := headerSize + n*(recordSize+hashSize)
	if heap > int64(len(b)) {
		return false
	}
	for i := range int(n) {
		r := b.rec(i)
		name, length := int64(le.Uint32(r[rName:])), int64(le.Uint16(r[rLen:]))
		end := name + length
		if name < heap || length == 0 || end >= int64(len(b)) || b[end] != 0 || kind(r[rKind]) >= kindEnd || int64(b.perm(i)) >= n {
			return false
		}
		switch kind(r[rKind]) {
		case kDir:
			if c := int64(le.Uint64(r[rSize:])); c < 0 || c >= off {
				return false
			}
		case kLink:
			from, size := int64(le.Uint32(r[rAux:])), int64(le.Uint64(r[rSize:]))
			if from == 0 && size == 0 {
				continue // a listing reads no target
			}
			if from < heap || size < 0 || size > int64(len(b))-from {
				return false
			}
		}
	}
	return true
}

// newBlock returns a block for count names of total length names, zero bytes not counted.
func newBlock(count, names int) block {
	size := headerSize + count*(recordSize+hashSize+1) + names
	b := make(block, headerSize+count*(recordSize+hashSize), size+size/16)
	le.PutUint32(b[hCount:], uint32(count))
	return b
}

// setName appends the name of record i to the heap.
func (b *block) setName(i int, name string, k kind) {
	r := b.rec(i)
	le.PutUint32(r[rName:], uint32(len(*b)))
	le.PutUint16(r[rLen:], uint16(len(name)))
	r[rKind] = byte(k)
	*b = append(append(*b, name...), 0)
}

// setFacts fills record i with what stat says. A symlink's target is set apart.
func (b block) setFacts(i int, k kind, in *disk.Info, old bool) {
	r := b.rec(i)
	r[rKind] = byte(k)
	r[rFlags] = 0
	if old {
		r[rFlags] = trusted
	}
	mode := in.Mode
	if k == kLink {
		mode = 0o777
	}
	le.PutUint32(r[rMode:], mode)
	le.PutUint64(r[rSize:], uint64(in.Size))
	le.PutUint64(r[rMtime:], uint64(in.Mtime))
	le.PutUint64(r[rCtime:], uint64(in.Ctime))
	le.PutUint64(r[rIno:], in.Ino)
	le.PutUint64(r[rDev:], in.Dev)
	if k == kFile {
		b.setOwner(i, tree.Owner{UID: in.UID, GID: in.GID, Known: in.Mode&tree.SpecialBits != 0})
	}
}

// setOwner records whose file record i is, where that is known.
func (b block) setOwner(i int, owner tree.Owner) {
	r := b.rec(i)
	if !owner.Known {
		owner = tree.Owner{}
	}
	le.PutUint32(r[rAux:], owner.UID)
	le.PutUint32(r[rGroup:], owner.GID)
	r[rFlags] = r[rFlags]&trusted | asked
	if owner.Known {
		r[rFlags] |= owned
	}
}

// setKind makes record i one without facts.
func (b block) setKind(i int, k kind) {
	r := b.rec(i)
	clear(r[rKind:rPerm])
	clear(r[rGroup:])
	r[rKind] = byte(k)
	clear(b.hash(i))
}

func (b block) setDir(i int, mode uint32, owner tree.Owner, c ref, object Hash) {
	b.setKind(i, kDir)
	copy(b.hash(i), object[:])
	r := b.rec(i)
	r[rFlags] = asked
	if owner.Known {
		r[rFlags] |= owned
		le.PutUint32(r[rIno:], owner.UID)
		le.PutUint32(r[rGroup:], owner.GID)
	}
	le.PutUint32(r[rMode:], mode)
	le.PutUint32(r[rAux:], c.sum)
	le.PutUint64(r[rSize:], uint64(c.off))
}

// holds says whether the offsets of targets, which come behind all else, fit 32 bits.
func (b block) holds(targets map[int]string) bool {
	size := int64(len(b))
	for _, t := range targets {
		size += int64(len(t))
	}
	return size <= math.MaxUint32
}

// setTarget appends the target of record i, a symlink.
func (b *block) setTarget(i int, target string) {
	r := b.rec(i)
	le.PutUint32(r[rAux:], uint32(len(*b)))
	le.PutUint64(r[rSize:], uint64(len(target)))
	*b = append(*b, target...)
}

// known says whether the facts of record i are those of in, and vouch for its hash.
func (b block) known(i int, k kind, in *disk.Info) bool {
	r := b.rec(i)
	return r[rFlags]&trusted != 0 && kind(r[rKind]) == k && b.sameFacts(i, k, in) &&
		(k != kFile || in.Mode&disk.GroupBits&^(in.Mode<<3) == 0 || r[rFlags]&asked != 0) // caches of earlier versions did not ask
}

func (b block) sameFacts(i int, k kind, in *disk.Info) bool {
	r := b.rec(i)
	return int64(le.Uint64(r[rSize:])) == in.Size &&
		int64(le.Uint64(r[rMtime:])) == in.Mtime && int64(le.Uint64(r[rCtime:])) == in.Ctime &&
		le.Uint64(r[rIno:]) == in.Ino && le.Uint64(r[rDev:]) == in.Dev &&
		(k == kLink || le.Uint32(r[rMode:]) == in.Mode &&
			(in.Mode&tree.SpecialBits == 0 || le.Uint32(r[rAux:]) == in.UID && (le.Uint32(r[rGroup:]) == in.GID || le.Uint32(r[rGroup:]) == disk.NoGroup)))
}

// setListing records the directory itself.
func (b block) setListing(in *disk.Info, rules uint64, flags uint32) {
	le.PutUint64(b[hRules:], rules)
	le.PutUint32(b[hFlags:], flags)
	le.PutUint64(b[hMtime:], uint64(in.Mtime))
	le.PutUint64(b[hCtime:], uint64(in.Ctime))
	le.PutUint64(b[hDev:], in.Dev)
	le.PutUint64(b[hIno:], in.Ino)
}

func (b block) sameListing(in *disk.Info) bool {
	return int64(le.Uint64(b[hMtime:])) == in.Mtime && int64(le.Uint64(b[hCtime:])) == in.Ctime &&
		le.Uint64(b[hDev:]) == in.Dev && le.Uint64(b[hIno:]) == in.Ino
}

// compareNames orders names as blocks do.
func compareNames[A, B string | []byte](a A, aDir bool, b B, bDir bool) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return next(a, n, aDir) - next(b, n, bDir)
}

// next returns the byte at n of a name and its slash, -1 behind them.
func next[T string | []byte](name T, n int, dir bool) int {
	if n < len(name) {
		return int(name[n])
	}
	if dir {
		return '/'
	}
	return -1
}
