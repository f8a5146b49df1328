package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Chunks are cut where a rolling hash of the last 64 bytes is small: at first
// rarely, from the normal size on more often (FastCDC's normalisation), so that
// most are near it. The sizes are no part of the format: other ones only cost
// the chunks that were stored before.
const (
	minChunk    = 512 << 10
	normalChunk = 1 << 20
	maxChunk    = 2 << 20
	rareCut     = 1 << (64 - 22) // one byte in 4 Mi, below the normal size
	oftenCut    = 1 << (64 - 18) // one in 256 Ki
)

// gear gives each byte value its share in the rolling hash: the output of
// splitmix64, so that the same content is cut at the same places for ever.
var gear = func() (g [256]uint64) {
	x := uint64(0x6465637265650001)
	for i := range g {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		g[i] = z ^ z>>31
	}
	return g
}()

// cutChunk returns the length of the first chunk of data: all of it, if no cut
// is found, or maxChunk. More data moves no cut that was found.
func cutChunk(data []byte) int {
	if len(data) <= minChunk {
		return len(data)
	}
	data = data[:min(len(data), maxChunk)]
	fp := uint64(0)
	normal := min(normalChunk, len(data))
	for i, c := range data[minChunk:normal] {
		if fp = fp<<1 + gear[c]; fp < rareCut {
			return minChunk + i + 1
		}
	}
	for i, c := range data[normal:] {
		if fp = fp<<1 + gear[c]; fp < oftenCut {
			return normal + i + 1
		}
	}
	return len(data)
}

// segment is a stretch of a large content that chunks point into.
type segment struct {
	buf  []byte
	refs atomic.Int32
	home chan *segment
}

// segments is the memory of a cutting.
type segments [4]segment

const segmentLen = 4 << 20

func (g *segment) release() {
	if g.refs.Add(-1) == 0 {
		g.home <- g
	}
}

// job is a chunk on its way to a worker.
type job struct {
	seg  *segment
	data []byte
	line int // of the list
}

// cutting is a large content in work: one goroutine reads and cuts, one hashes the
// whole, others hash, compress and store the chunks. Memory is the segments'.
type cutting struct {
	w    *Writer
	anew bool // as input's
	segs *segments
	jobs chan job
	read chan job // what was read, in order, for the hash of the whole

	// The reader's own: the chunk that was cut last, which its segment is kept for,
	// and the lines of the list whose chunk is that of the line before them.
	last  job
	again []int

	mu   sync.Mutex
	list []byte
	err  error
}

// errTooLarge refuses a content whose list would not fit into a block.
var errTooLarge = errors.New("too large for the store")

// putChunked stores a content above maxWhole, of which prefix was read, as
// chunks and a list, in memory that belongs to l.
func (w *Writer) putChunked(in *input, prefix []byte, l *largeBuffer) (Hash, int64, error) {
	if l.segs == nil {
		l.segs = new(segments)
	}
	c := &cutting{w: w, anew: in.anew, segs: l.segs, jobs: make(chan job, len(l.segs)), read: make(chan job, len(l.segs))}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4) {
		workers.Go(c.work)
	}
	var h Hash
	workers.Go(func() { h = c.hash() })
	size, err := c.cutAll(in, prefix)
	close(c.jobs)
	close(c.read)
	workers.Wait()
	if err == nil {
		err = c.err
	}
	if err != nil {
		return h, size, err
	}
	c.nameAgain()
	m := member{hash: h, list: true, length: uint32(len(c.list)), size: size}
	return h, size, w.putMember(m, c.list, in.anew)
}

// nameAgain gives the lines whose chunk is that of the line before them its hash; their lengths are their own.
func (c *cutting) nameAgain() {
	for _, line := range c.again {
		copy(c.list[line:line+hashLen], c.list[line-pieceLen:])
	}
}

// hash returns the hash of all that was read.
func (c *cutting) hash() Hash {
	sum := sha256.New()
	for j := range c.read {
		sum.Write(j.data)
		j.seg.release()
	}
	return Hash(sum.Sum(nil))
}

// cutAll reads the content, cuts it into jobs and returns its size.
func (c *cutting) cutAll(in *input, prefix []byte) (size int64, err error) {
	home := make(chan *segment, len(c.segs))
	for i := range c.segs {
		c.segs[i].home = home
		home <- &c.segs[i]
	}
	var rest []byte
	var seg *segment
	for {
		next := <-home
		if next.buf == nil {
			next.buf = make([]byte, segmentLen)
		}
		next.refs.Store(1)
		n := copy(next.buf, rest)
		if seg != nil {
			seg.release()
		}
		seg = next
		kept := n
		m := copy(seg.buf[n:], prefix)
		prefix, n = prefix[m:], n+m
		if len(prefix) == 0 {
			if m, err = in.fill(seg.buf[n:]); err != nil {
				return size, err
			}
			n += m
		}
		seg.refs.Add(1)
		c.read <- job{seg: seg, data: seg.buf[kept:n]}
		size += int64(n - kept)
		ended := in.ended && len(prefix) == 0
		if rest, err = c.cut(seg, seg.buf[:n], ended); err != nil || ended {
			return size, err
		}
		if err := c.w.usable(); err != nil {
			return size, err
		}
	}
}

// cut hands out the chunks of data and returns what more bytes may belong to.
func (c *cutting) cut(seg *segment, data []byte, ended bool) ([]byte, error) {
	for len(data) > 0 {
		// What begins with the chunk before is cut where that was cut: zeros, mostly,
		// whose chunks need not be looked for nor hashed one by one.
		n := len(c.last.data)
		same := n > 0 && bytes.HasPrefix(data, c.last.data)
		if !same {
			n = cutChunk(data)
		}
		if n == len(data) && n < maxChunk && !ended {
			break
		}
		line, err := c.enter(uint32(n), same)
		if err != nil {
			return nil, err
		}
		switch {
		case !same:
			seg.refs.Add(1)
			c.jobs <- job{seg, data[:n], line}
		case line != c.last.line:
			c.again = append(c.again, line)
		}
		c.remember(job{seg, data[:n], line})
		data = data[n:]
	}
	return data, nil
}

// enter adds n bytes to the list and returns their line: a new one, or, for the chunk of
// the last line once more, that one, as long as its length has room.
func (c *cutting) enter(n uint32, same bool) (line int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if same {
		line = len(c.list) - pieceLen
		if p := pieceAt(c.list, line/pieceLen); p.length <= math.MaxUint32-n {
			binary.LittleEndian.PutUint32(c.list[line+hashLen:], p.length+n)
			return line, nil
		}
	}
	line = len(c.list)
	c.list = appendPiece(c.list, piece{length: n})
	if len(c.list) > maxRaw {
		return 0, fmt.Errorf("%w: above %d chunks", errTooLarge, maxRaw/pieceLen)
	}
	return line, nil
}

// remember makes j the chunk that was cut last.
func (c *cutting) remember(j job) {
	if j.seg != c.last.seg {
		j.seg.refs.Add(1)
		if c.last.seg != nil {
			c.last.seg.release()
		}
	}
	c.last = j
}

// work stores chunks until there are no more; after an error it only takes them.
func (c *cutting) work() {
	for j := range c.jobs {
		h := Hash(sha256.Sum256(j.data))
		err := c.w.putOne(h, j.data, c.anew)
		j.seg.release()
		c.mu.Lock()
		copy(c.list[j.line:], h[:])
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
	}
}
