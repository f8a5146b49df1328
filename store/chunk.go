package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
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
type segments [3]segment

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

// cutting is a large content in work: one goroutine reads, hashes the whole and
// cuts, others hash, compress and store the chunks. Memory is the segments'.
type cutting struct {
	w    *Writer
	segs *segments
	jobs chan job

	mu   sync.Mutex
	list []byte
	err  error
}

// errTooLarge refuses a content whose list would not fit into a block.
var errTooLarge = errors.New("too large for the store")

// putChunked stores a content above maxWhole, of which prefix was read, as
// chunks and a list, in memory that belongs to l.
func (w *Writer) putChunked(in *input, prefix []byte, l *whole) (Hash, int64, error) {
	if l.segs == nil {
		l.segs = new(segments)
	}
	c := &cutting{w: w, segs: l.segs, jobs: make(chan job, len(l.segs))}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4) {
		workers.Go(c.work)
	}
	h, size, err := c.read(in, prefix)
	close(c.jobs)
	workers.Wait()
	if err == nil {
		err = c.err
	}
	if err != nil {
		return h, size, err
	}
	m := member{hash: h, list: true, length: uint32(len(c.list)), size: size}
	return h, size, w.putMember(m, c.list)
}

// read cuts the content into jobs and returns its hash and size.
func (c *cutting) read(in *input, prefix []byte) (h Hash, size int64, err error) {
	home := make(chan *segment, len(c.segs))
	for i := range c.segs {
		c.segs[i].home = home
		home <- &c.segs[i]
	}
	sum := sha256.New()
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
				return h, size, err
			}
			n += m
		}
		sum.Write(seg.buf[kept:n])
		size += int64(n - kept)
		last := in.ended && len(prefix) == 0
		if rest, err = c.cut(seg, seg.buf[:n], last); err != nil || last {
			return Hash(sum.Sum(nil)), size, err
		}
		if err := c.w.usable(); err != nil {
			return h, size, err
		}
	}
}

// cut hands out the chunks of data and returns what more bytes may belong to.
func (c *cutting) cut(seg *segment, data []byte, last bool) ([]byte, error) {
	for len(data) > 0 {
		n := cutChunk(data)
		if n == len(data) && n < maxChunk && !last {
			break
		}
		c.mu.Lock()
		line, err := len(c.list), c.err
		c.list = appendPiece(c.list, piece{length: uint32(n)})
		c.mu.Unlock()
		if err == nil && line+pieceLen > maxRaw {
			err = fmt.Errorf("%w: above %d chunks", errTooLarge, maxRaw/pieceLen)
		}
		if err != nil {
			return nil, err
		}
		seg.refs.Add(1)
		c.jobs <- job{seg, data[:n], line}
		data = data[n:]
	}
	return data, nil
}

// work stores chunks until there are no more; after an error it only takes them.
func (c *cutting) work() {
	for j := range c.jobs {
		h := Hash(sha256.Sum256(j.data))
		err := c.w.putOne(h, j.data)
		j.seg.release()
		c.mu.Lock()
		copy(c.list[j.line:], h[:])
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
	}
}
