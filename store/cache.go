package store

import (
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// decoded is a block's content in memory, shared by readers and the cache. The
// last one to let go gives the buffer back.
type decoded struct {
	at      place // pos is 0
	members []member
	raw     []byte
	refs    atomic.Int32
}

// ordinary is what a block of several objects takes at most, where a store has blocks of the usual size.
const ordinary = 512 << 10

// rawPools have *[]byte up to the ordinary size, and larger ones: of a large content the buffer
// must not come to a small block, which is kept in the cache.
var rawPools [2]sync.Pool

func rawPool(size int) *sync.Pool {
	if size > ordinary {
		return &rawPools[1]
	}
	return &rawPools[0]
}

// rawBuffer returns n bytes from a pool or new.
func rawBuffer(n int) []byte {
	if p, _ := rawPool(n).Get().(*[]byte); p != nil && cap(*p) >= n {
		return (*p)[:n]
	}
	return make([]byte, n, max(n, ordinary/2)) // small blocks, of which twelve are kept, need no more
}

func freeRaw(b []byte) {
	if cap(b) > 0 {
		rawPool(cap(b)).Put(&b)
	}
}

func (d *decoded) release() {
	if d.refs.Add(-1) == 0 {
		freeRaw(d.raw)
		d.raw = nil
	}
}

// blockCache holds the last few blocks of several objects, since what is asked
// for together was mostly stored together. A capture fills several blocks at a time, and who reads
// on several processors has as many of each: with four a restore of L decompressed 3.3 GB for 1.4 GB of contents,
// with twelve 2.4 GB. Safe for concurrent use.
type blockCache struct {
	mu     sync.Mutex
	last   [12]*decoded
	next   int
	coming map[place]chan struct{} // blocks that are being read; closed when that is over
}

// get returns the block at a place with a reference for the caller. Where it is nil, the caller reads
// the block and then calls done: who asks for it meanwhile waits, once, since neighbours are asked for
// at the same time, and each would decompress it.
func (c *blockCache) get(at place) (d *decoded, done func()) {
	at.pos = 0
	c.mu.Lock()
	defer c.mu.Unlock()
	if d = c.find(at); d != nil {
		return d, nil
	}
	if other := c.coming[at]; other != nil {
		c.mu.Unlock()
		<-other
		c.mu.Lock()
		if d = c.find(at); d != nil {
			return d, nil
		}
	}
	if c.coming[at] != nil { // it failed, or is not kept: nobody waits twice
		return nil, func() {}
	}
	over := make(chan struct{})
	if c.coming == nil {
		c.coming = map[place]chan struct{}{}
	}
	c.coming[at] = over
	return nil, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.coming, at)
		close(over)
	}
}

// find is get, of what is kept. mu is held.
func (c *blockCache) find(at place) *decoded {
	for _, d := range c.last {
		if d != nil && d.at.pack == at.pack && d.at.off == at.off {
			d.refs.Add(1)
			return d
		}
	}
	return nil
}

func (c *blockCache) put(d *decoded) {
	d.refs.Add(1)
	c.mu.Lock()
	old := c.last[c.next]
	c.last[c.next] = d
	c.next = (c.next + 1) % len(c.last)
	c.mu.Unlock()
	if old != nil {
		old.release()
	}
}

// forget drops all blocks: packs may be others now.
func (c *blockCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, d := range c.last {
		if d != nil {
			d.release()
			c.last[i] = nil
		}
	}
}

// decoder is shared: DecodeAll is safe for concurrent use. Its limits hold what
// a hostile frame can make it allocate.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecoderMaxWindow(maxRaw), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // constant options
	}
	return d
})

// expand decompresses a payload into raw, which has the length that the header states.
func expand(raw, payload []byte, method uint32) error {
	if method == methodRaw {
		if len(payload) != len(raw) {
			return errRawSize
		}
		copy(raw, payload)
		return nil
	}
	out, err := decoder().DecodeAll(payload, raw[:0:len(raw)])
	if err != nil || len(out) != len(raw) || len(out) > 0 && &out[0] != &raw[0] {
		return errRawSize
	}
	return nil
}
