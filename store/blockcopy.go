package store

import (
	"errors"
	"hash/crc32"

	"decree/disk"
)

// errKeep says that a block is not as its header promised.
var errKeep = errors.New("damaged")

// blockCopy copies the wanted objects of blocks: a block of which all are wanted as it is, of others what is
// wanted, gathered in blocks of their own.
type blockCopy struct {
	size   int // of a gathered block's objects, in bytes
	wanted func(m *member, at place) bool
	whole  func(block []byte, head blockHead, members []member) error
	mixed  func(raw []byte, members []member) error

	keep    []bool
	buf     []byte
	raw     []byte // gathered objects
	members []member
}

// block copies what is wanted of a block; errKeep where it is damaged.
func (c *blockCopy) block(f disk.File, seq uint32, b *found) error {
	c.keep = c.keep[:0]
	n := 0
	for i := range b.members {
		is := c.wanted(&b.members[i], place{seq, uint32(b.off), uint16(i)})
		if c.keep = append(c.keep, is); is {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	c.buf = grown(c.buf, int(b.head.length()))
	if _, err := f.ReadAt(c.buf, b.off); unreadable(err) {
		return errKeep
	} else if err != nil {
		return err
	}
	payload := c.buf[b.head.header:]
	if crc32.Checksum(payload, castagnoli) != b.head.payloadSum {
		return errKeep
	}
	if n == len(b.members) {
		return c.whole(c.buf, b.head, b.members)
	}
	raw := rawBuffer(int(b.head.raw))
	defer freeRaw(raw)
	if expand(raw, payload, b.head.method) != nil {
		return errKeep
	}
	for i, m := range b.members {
		data := raw[:m.length]
		raw = raw[m.length:]
		if !c.keep[i] {
			continue
		}
		if len(c.raw) > 0 && len(c.raw)+len(data) > c.size || len(c.members) == maxEntries {
			if err := c.spill(); err != nil {
				return err
			}
		}
		c.raw, c.members = append(c.raw, data...), append(c.members, m)
	}
	return nil
}

// spill writes the gathered objects.
func (c *blockCopy) spill() error {
	if len(c.members) == 0 {
		return nil
	}
	err := c.mixed(c.raw, c.members)
	c.raw, c.members = c.raw[:0], c.members[:0]
	return err
}
