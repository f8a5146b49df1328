package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"decree/backup/target"
	"decree/store"
	"decree/tree"
)

// maxHeaders bounds what is read of a pack's headers, in bytes.
const maxHeaders = 256 << 20

func (p *Place) packName(h tree.Hash) string  { return p.At(packsDir, h.String()+".pack") }
func (p *Place) indexName(h tree.Hash) string { return p.At(packsDir, h.String()+".idx") }

// block is where the objects of a pack's block lie.
type block struct {
	pack        tree.Hash
	off, length int64
}

// contents are the objects of packs in a target.
type contents struct {
	p       *Place
	at      *store.Numbers // the number of an object's block, from 1 on
	blocks  []block
	lengths map[tree.Hash]int64 // of the packs, also of one that has another length than its own index is for
	have    map[string]int64    // the names that the target has among packs, and how long they are
	// unindexed are the packs whose index is missing, damaged, another pack's, or does not say which pack it is of, with their headers.
	unindexed map[tree.Hash][]byte
}

// packContents reads the headers of packs. One whose pack or headers are missing or damaged is passed to
// bad and its objects are not known, unless they are in another one too. What is known goes into at, which is empty.
func (p *Place) packContents(ctx context.Context, packs map[tree.Hash]int64, at *store.Numbers, bad func(tree.Hash, error)) (*contents, error) {
	c := &contents{p: p, at: at, lengths: map[tree.Hash]int64{}, have: map[string]int64{}, unindexed: map[tree.Hash][]byte{}}
	err := p.Target.List(ctx, p.At(packsDir)+"/", func(o target.Object) error {
		c.have[o.Name] = o.Size
		return nil
	})
	if err != nil {
		return nil, err
	}
	for pack, size := range packs {
		got, there := c.have[p.packName(pack)]
		if !there {
			bad(pack, fmt.Errorf("pack %s: %w", pack, fs.ErrNotExist))
			continue
		}
		if size > 0 && got != size {
			bad(pack, fmt.Errorf("pack %s: %w", pack, errSize))
			continue
		}
		err := c.add(ctx, pack, got, size > 0)
		switch {
		case err == nil:
			c.lengths[pack] = got
		case ctx.Err() != nil || errors.Is(err, target.ErrGone):
			return nil, err
		default:
			bad(pack, err)
		}
	}
	return c, nil
}

// add takes the objects of a pack from its index or, where that is missing, damaged or another pack's, from the pack
// itself. The pack is then read whole first, to compare its hash, unless its length is known to be right; an index
// that is for another length casts doubt on that.
func (c *contents) add(ctx context.Context, pack tree.Hash, size int64, known bool) error {
	index, err := readAll(ctx, c.p.Target, c.p.indexName(pack), maxHeaders)
	if err == nil {
		headers, ok := bytes.CutSuffix(index, pack[:])
		if !ok { // an earlier decree may have written it
			err = c.ofPack(ctx, pack, headers)
		}
		if err == nil {
			err = c.headers(pack, headers, size)
			if ok && errors.Is(err, errSize) {
				known, c.lengths[pack] = false, endOf(headers)
			}
		}
		if err == nil && !ok {
			c.unindexed[pack] = headers
		}
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, target.ErrGone) {
		return err
	}
	if !known {
		if err := verify(ctx, c.p.Target, c.p.packName(pack), pack, size); err != nil {
			return fmt.Errorf("pack %s: %w", pack, err)
		}
	}
	headers, err := store.Headers(ctx, &ranges{ctx: ctx, t: c.p.Target, name: c.p.packName(pack)}, size)
	if err == nil {
		err = c.headers(pack, headers, size)
	}
	if err == nil {
		c.unindexed[pack] = headers
	}
	return err
}

// ofPack compares the last header of an index that does not say which pack it is of with what the pack has in that
// place. Where the last block lies follows from all headers before it, so that another pack's index is found out.
func (c *contents) ofPack(ctx context.Context, pack tree.Hash, headers []byte) error {
	var last store.Packed
	if err := store.ReadHeaders(headers, func(o store.Packed) { last = o }); err != nil {
		return err
	}
	there := make([]byte, last.Header)
	_, err := (&ranges{ctx, c.p.Target, c.p.packName(pack)}).ReadAt(there, last.Block)
	if err == nil && (last.Header == 0 || !bytes.HasSuffix(headers, there)) {
		err = errOtherPack
	}
	return err
}

var errOtherPack = errors.New("the index of another pack")

// putIndex writes the index of a pack: the headers of its blocks and, since all indexes look alike, which pack it is of.
func (p *Place) putIndex(ctx context.Context, pack tree.Hash, headers []byte) error {
	return put(ctx, p.Target, p.indexName(pack), bytes.NewReader(slices.Concat(headers, pack[:])))
}

// reindex makes the indexes anew that were of no use.
func (c *contents) reindex(ctx context.Context) error {
	for pack, headers := range c.unindexed {
		if err := c.p.putIndex(ctx, pack, headers); err != nil {
			return fmt.Errorf("the index of pack %s cannot be made anew: %w", pack, err)
		}
	}
	c.unindexed = nil
	return nil
}

// headers takes the objects of a pack of size bytes by the headers of its blocks, all of them or none. Those of
// a pack of another length are another's: there is nothing behind the last block.
func (c *contents) headers(pack tree.Hash, headers []byte, size int64) error {
	end := endOf(headers)
	err := store.ReadHeaders(headers, func(store.Packed) {})
	if err == nil && end != size {
		err = fmt.Errorf("headers of blocks up to %d of %d: %w", end, size, errSize)
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", pack, err)
	}
	return store.ReadHeaders(headers, func(o store.Packed) {
		if b := (block{pack, o.Block, o.Length}); len(c.blocks) == 0 || c.blocks[len(c.blocks)-1] != b {
			c.blocks = append(c.blocks, b)
		}
		if c.at.Get(o.Hash) == 0 {
			c.at.Set(o.Hash, uint32(len(c.blocks)))
		}
	})
}

// endOf is where the last of the blocks ends that headers are of.
func endOf(headers []byte) (end int64) {
	_ = store.ReadHeaders(headers, func(o store.Packed) { end = o.Block + o.Length })
	return end
}

// pack is the pack that has an object; not ok: none has.
func (c *contents) pack(h tree.Hash) (pack tree.Hash, ok bool) {
	n := c.at.Get(h)
	if n == 0 {
		return pack, false
	}
	return c.blocks[n-1].pack, true
}

// object returns the bytes of one object that is not large.
func (c *contents) object(ctx context.Context, h tree.Hash) ([]byte, store.Packed, error) {
	n := c.at.Get(h)
	if n == 0 {
		return nil, store.Packed{}, &store.MissingError{Hash: h}
	}
	b := c.blocks[n-1]
	bytes := make([]byte, b.length)
	if _, err := (&ranges{ctx, c.p.Target, c.p.packName(b.pack)}).ReadAt(bytes, b.off); err != nil {
		return nil, store.Packed{}, fmt.Errorf("pack %s: %w", b.pack, err)
	}
	data, o, err := store.FromBlock(bytes, b.off, h)
	if err != nil {
		err = fmt.Errorf("pack %s: %w", b.pack, err)
	}
	return data, o, err
}

// Write writes a content to w, checked against its hash.
func (c *contents) Write(ctx context.Context, w io.Writer, h tree.Hash) error {
	data, o, err := c.object(ctx, h)
	if err != nil {
		return err
	}
	if !o.List {
		_, err = w.Write(data)
		return err
	}
	sum := sha256.New()
	err = store.Chunks(data, o.Size, func(chunk tree.Hash, length int64) error {
		part, _, err := c.object(ctx, chunk)
		if err == nil && (len(part) == 0 || length%int64(len(part)) != 0) {
			err = &store.DamagedError{Hash: h, Err: errSize}
		}
		for ; err == nil && length > 0; length -= int64(len(part)) {
			sum.Write(part)
			_, err = w.Write(part)
		}
		return err
	})
	if err == nil && tree.Hash(sum.Sum(nil)) != h {
		err = &store.DamagedError{Hash: h, Err: errHash}
	}
	return err
}

// writer has contents by their hashes: fromStore, or contents, which are those of packs in a target.
type writer interface {
	Write(ctx context.Context, w io.Writer, h tree.Hash) error
}

// fromStore has the contents of a store on this machine, as before anything of a new generation was sent.
type fromStore struct{ *store.Store }

func (s fromStore) Write(_ context.Context, w io.Writer, h tree.Hash) error {
	return copyContent(w, s.Store, h)
}

// copyContent writes a content of a store, compared with its hash, to w.
func copyContent(w io.Writer, s *store.Store, h tree.Hash) error {
	r, _, err := s.Open(h)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}

// objects are the directories' objects among contents, as a tree.Source.
type objects struct {
	ctx  context.Context
	from writer
}

func (o objects) Get(h tree.Hash) ([]byte, error) {
	var b bytes.Buffer
	err := o.from.Write(o.ctx, &atMost{&b, int64(tree.MaxObject)}, h)
	return b.Bytes(), err
}
