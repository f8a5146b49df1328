package capture

import (
	"context"
	"io"
	"sync/atomic"

	"decree/disk"
)

// sparseFrom is the size from which a file is asked for its holes, and the length from
// which a hole is worth not being read.
const sparseFrom = 1 << 20

// content reads an open file of the tree from its beginning to its end. It gives holes
// as zeros without reading them, ends with the walk, and remembers the errors of
// reading, which the store's error may wrap or replace. It serves one goroutine.
type content struct {
	file   disk.File
	sparse bool         // its holes are asked for
	ended  *atomic.Bool // the walk's
	count  *atomic.Int64

	at, size int64
	until    int64 // up to here it is known what comes, data or a hole
	hole     bool
	err      error
}

// contentOf reads f. Only where the file system is known to be right about its holes is
// it asked for them.
func (k *worker) contentOf(f disk.File, in *disk.Info, h disk.Dir) *content {
	sparse := in.Size >= sparseFrom && k.device(in.Dev, h).Steady
	return &content{file: f, sparse: sparse, ended: &k.failed, count: &k.bytes, size: in.Size}
}

func (c *content) Read(p []byte) (n int, err error) {
	if c.ended.Load() {
		c.err = context.Canceled
		return 0, c.err
	}
	if !c.sparse || c.at >= c.size {
		n, err = c.file.Read(p) // also what a file has grown by
	} else {
		n, err = c.readExtent(p)
	}
	c.at += int64(n)
	c.count.Add(int64(n))
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

func (c *content) readExtent(p []byte) (int, error) {
	if c.at == c.until {
		until, hole, ok := disk.Extent(c.file, c.at, sparseFrom)
		if !ok {
			until, hole = c.size, false // it does not tell
		}
		c.until, c.hole = min(until, c.size), hole
		if _, err := c.file.Seek(c.at, io.SeekStart); err != nil {
			return 0, err
		}
	}
	p = p[:min(int64(len(p)), c.until-c.at)]
	if !c.hole {
		return c.file.Read(p)
	}
	clear(p)
	_, err := c.file.Seek(int64(len(p)), io.SeekCurrent)
	return len(p), err
}
