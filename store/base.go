package store

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"math/bits"
	"sync/atomic"

	"decree/disk"
)

const (
	baseName   = "index"
	baseTemp   = "index.tmp"
	baseMagic  = "decree index 1\n\x00"
	baseFamily = "decree index "
	baseHead   = 64
	rowLen     = 32
	maxBits    = 26
	perBucket  = 64 // entries of a bucket, about
	rowRetired = 1
)

// generation ties an index log to its base.
type generation [16]byte

// errIndex says that the index cannot be believed; the packs are asked then.
var errIndex = errors.New("index damaged")

// base is the mapped, sorted part of the index. It is safe for concurrent use.
type base struct {
	data    []byte // the whole file
	gen     generation
	count   int
	bits    int
	rows    []coverage
	starts  []byte // u32 each, one more than there are buckets
	sums    []byte // u32 each
	entries []byte
	checked []atomic.Uint64 // a bit for each bucket found sound
	release func() error
	unload  func(from, to int) // gives back the memory of bytes of the file
}

// unloaded is after how many bytes of a look over all entries the memory of these is given back.
const unloaded = 1 << 20

func appendRow(dst []byte, c coverage) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, c.pack)
	dst = append(dst, c.id[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.length))
	flags := uint32(0)
	if c.retired {
		flags = rowRetired
	}
	return binary.LittleEndian.AppendUint32(dst, flags)
}

func readRow(b []byte) (c coverage) {
	c.pack = binary.LittleEndian.Uint32(b)
	copy(c.id[:], b[4:])
	c.length = int64(binary.LittleEndian.Uint64(b[20:]) & math.MaxInt64)
	c.retired = binary.LittleEndian.Uint32(b[28:])&rowRetired != 0
	return c
}

// openBase maps the base in dir. It returns nil and no error when there is none
// or it is not one, or cannot be read: the packs are scanned then. Errors are the disk's.
func openBase(dir disk.Dir) (*base, error) {
	f, err := dir.Open(baseName)
	if absent(err) || unreadable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, release, err := f.Map()
	if unreadable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &base{data: data}
	if err := b.reading(func() (err error) { b, err = parseBase(data); return err }); err != nil {
		if errors.Is(err, errIndex) {
			err = nil
		}
		return nil, errors.Join(err, release())
	}
	b.release = release
	b.unload = func(from, to int) { f.Unload(data[from:to]) }
	return b, nil
}

// parseBase checks the header and the lengths; buckets are checked when used.
func parseBase(data []byte) (*base, error) {
	if len(data) < baseHead {
		return nil, errIndex
	}
	le := binary.LittleEndian
	if magic := string(data[:16]); magic != baseMagic {
		if v := newerVersion(magic, baseFamily); v != "" {
			return nil, &VersionError{File: baseName, Version: v}
		}
		return nil, errIndex
	}
	count, width, rows := le.Uint64(data[32:]), le.Uint32(data[40:]), le.Uint32(data[44:])
	if count > math.MaxUint32 || width > maxBits || rows > 1<<24 {
		return nil, errIndex
	}
	buckets := uint64(1) << width
	startsAt := baseHead + uint64(rows)*rowLen
	sumsAt := startsAt + 4*(buckets+1)
	entriesAt := sumsAt + 4*buckets
	if uint64(len(data)) != entriesAt+count*entryLen {
		return nil, errIndex
	}
	if baseSum(data[:startsAt]) != le.Uint32(data[60:]) {
		return nil, errIndex
	}
	b := &base{data: data, gen: generation(data[16:32]), count: int(count), bits: int(width),
		starts: data[startsAt:sumsAt], sums: data[sumsAt:entriesAt], entries: data[entriesAt:],
		checked: make([]atomic.Uint64, (buckets+63)/64)}
	for i := range int(rows) {
		b.rows = append(b.rows, readRow(data[baseHead+i*rowLen:]))
	}
	return b, nil
}

// baseSum covers the header, but for the sum itself, and the rows.
func baseSum(head []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, head[:60]), castagnoli, head[baseHead:])
}

func bucketOf(h *Hash, width int) uint32 {
	return uint32(uint64(binary.BigEndian.Uint32(h[:])) >> (32 - width))
}

// front is how much of the file is before the entries.
func (b *base) front() int { return baseHead + len(b.rows)*rowLen + len(b.starts) + len(b.sums) }

// reading does what looks at the bytes of the base; errIndex where they cannot be read.
func (b *base) reading(do func() error) (err error) {
	if disk.Reading(b.data, func() { err = do() }) != nil {
		return errIndex
	}
	return err
}

// bucket returns the entries of a bucket, or errIndex when they are not what was written. It is for reading.
func (b *base) bucket(k uint32) ([]byte, error) {
	le := binary.LittleEndian
	from, to := le.Uint32(b.starts[4*k:]), le.Uint32(b.starts[4*k+4:])
	if from > to || uint64(to) > uint64(b.count) {
		return nil, errIndex
	}
	lines := b.entries[uint64(from)*entryLen : uint64(to)*entryLen]
	word, bit := &b.checked[k/64], uint64(1)<<(k%64)
	if word.Load()&bit == 0 {
		if bucketSum(k, from, to, lines) != le.Uint32(b.sums[4*k:]) {
			return nil, errIndex
		}
		word.Or(bit)
	}
	return lines, nil
}

func bucketSum(k, from, to uint32, lines []byte) uint32 {
	var head [12]byte
	le := binary.LittleEndian
	le.PutUint32(head[:], k)
	le.PutUint32(head[4:], from)
	le.PutUint32(head[8:], to)
	return crc32.Update(crc32.Update(0, castagnoli, head[:]), castagnoli, lines)
}

// get looks h up. The error is errIndex when the place where it would be is damaged.
func (b *base) get(h *Hash) (e entry, ok bool, err error) {
	_, ok, err = b.look(h, &e)
	return e, ok, err
}

// place returns which of the entries is h's.
func (b *base) place(h *Hash) (int, bool, error) { return b.look(h, nil) }

// look is place; e, unless it is nil, becomes the entry.
func (b *base) look(h *Hash, e *entry) (i int, ok bool, err error) {
	if b == nil || b.count == 0 {
		return 0, false, nil
	}
	err = b.reading(func() error {
		k := bucketOf(h, b.bits)
		lines, err := b.bucket(k)
		if err != nil {
			return err
		}
		i, ok = find(lines, h, b.bits)
		if ok && e != nil {
			*e = readEntry(lines[i*entryLen:])
		}
		i += int(binary.LittleEndian.Uint32(b.starts[4*k:]))
		return nil
	})
	return i, ok && err == nil, err
}

// find looks for h in a bucket's lines. Hashes are spread evenly, so that the bits
// behind those that name the bucket say nearly where it is; a step or two by
// neighbours miss the processor's caches less than halving does.
func find(lines []byte, h *Hash, width int) (int, bool) {
	n := len(lines) / entryLen
	if n == 0 {
		return 0, false
	}
	key := binary.BigEndian.Uint64(h[:])
	head := func(i int) uint64 { return binary.BigEndian.Uint64(lines[i*entryLen:]) }
	guess, _ := bits.Mul64(key<<width, uint64(n))
	i := int(guess)
	for i > 0 && head(i-1) >= key {
		i--
	}
	for i < n && head(i) < key {
		i++
	}
	for ; i < n && head(i) == key; i++ {
		if *(*Hash)(lines[i*entryLen:]) == *h {
			return i, true
		}
	}
	return 0, false
}

// all yields the entries in order of their hashes; it stops with errIndex at a damaged bucket. What was looked at is not
// kept in memory: of a million objects it is 50 MB, which a process that stays would have from then on.
func (b *base) all() iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		if b == nil {
			return
		}
		at, kept := b.front(), 0 // what of the file was looked at, and from where on it is in memory
		var lines []byte
		for k := range uint32(1) << b.bits {
			err := b.reading(func() error {
				there, err := b.bucket(k)
				lines = append(lines[:0], there...)
				return err
			})
			if err != nil {
				yield(entry{}, err)
				return
			}
			if at += len(lines); b.unload != nil && at-kept > 2*unloaded {
				b.unload(kept, kept+unloaded)
				kept += unloaded
			}
			for i := 0; i < len(lines); i += entryLen {
				if !yield(readEntry(lines[i:]), nil) {
					return
				}
			}
		}
	}
}

// writeBase writes a base beside the present one and renames it over. entries
// come sorted, about as many as stated. It is not flushed: a lost page is found by its
// bucket's checksum, and then the packs are asked.
func writeBase(dir disk.Dir, rows []coverage, about int, entries iter.Seq2[entry, error]) error {
	return disk.Replace(dir, baseName, disk.Replacement{Perm: 0o600, Temp: baseTemp}, func(f disk.File) error {
		width := min(maxBits, bits.Len(uint(about/perBucket)))
		front := baseHead + len(rows)*rowLen + 8<<width + 4
		if _, err := f.Seek(int64(front), io.SeekStart); err != nil {
			return err
		}
		fan, err := writeEntries(f, width, entries)
		if err != nil {
			return err
		}
		head := append(appendBaseHead(make([]byte, 0, front), rows, width, fan), fan...)
		_, err = f.WriteAt(head, 0)
		return err
	})
}

// appendBaseHead appends the header and the rows; the number of entries is where the last bucket ends.
func appendBaseHead(head []byte, rows []coverage, width int, fan []byte) []byte {
	head = append(head, baseMagic...)
	var gen generation
	rand.Read(gen[:])
	head = append(head, gen[:]...)
	le := binary.LittleEndian
	head = le.AppendUint64(head, uint64(le.Uint32(fan[4<<width:])))
	head = le.AppendUint32(head, uint32(width))
	head = le.AppendUint32(head, uint32(len(rows)))
	head = append(head, make([]byte, 16)...)
	for _, r := range rows {
		head = appendRow(head, r)
	}
	le.PutUint32(head[60:], baseSum(head))
	return head
}

// writeEntries writes the sorted entries to w and returns the buckets' starts and sums.
func writeEntries(w io.Writer, width int, entries iter.Seq2[entry, error]) ([]byte, error) {
	out := bufio.NewWriterSize(w, 256<<10)
	buckets := uint32(1) << width
	le := binary.LittleEndian
	fan := make([]byte, 8*int(buckets)+4)
	sums := fan[4*(buckets+1):]
	k, from, n := uint32(0), uint32(0), uint32(0)
	var lines []byte
	shut := func(until uint32) { // closes the buckets below until
		for ; k < until; k++ {
			le.PutUint32(fan[4*k:], from)
			le.PutUint32(sums[4*k:], bucketSum(k, from, n, lines))
			from, lines = n, lines[:0]
		}
	}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		shut(bucketOf(&e.hash, width))
		at := len(lines)
		lines = appendEntry(lines, &e)
		n++
		if _, err := out.Write(lines[at:]); err != nil {
			return nil, err
		}
	}
	shut(buckets)
	le.PutUint32(fan[4*buckets:], n)
	return fan, out.Flush()
}

func removeIfThere(dir disk.Dir, name string) error {
	err := dir.Remove(name)
	return disk.UnlessMissing(err)
}
