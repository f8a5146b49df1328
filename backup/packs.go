package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"decree/backup/target"
	"decree/store"
	"decree/tree"
)

// maxHeaders bounds what is read of a pack's headers, in bytes.
const maxHeaders = 256 << 20

func (p *Place) packName(h tree.Hash) string  { return p.At(packsDir, h.String()+".pack") }
func (p *Place) indexName(h tree.Hash) string { return p.At(packsDir, h.String()+".idx") }

// where says which pack has an object, and where in it.
type where struct {
	pack tree.Hash
	store.Packed
}

// contents are the objects of packs in a target.
type contents struct {
	p       *Place
	at      map[tree.Hash]where
	lengths map[tree.Hash]int64 // of the packs
}

// packContents reads the headers of packs. One whose pack or headers are missing or damaged is passed to
// bad and its objects are not known, unless they are in another one too.
func (p *Place) packContents(ctx context.Context, packs map[tree.Hash]int64, bad func(tree.Hash, error)) (*contents, error) {
	c := &contents{p, map[tree.Hash]where{}, map[tree.Hash]int64{}}
	have := map[string]int64{}
	err := p.Target.List(ctx, p.At(packsDir)+"/", func(o target.Object) error {
		have[o.Name] = o.Size
		return nil
	})
	if err != nil {
		return nil, err
	}
	for pack, size := range packs {
		if got, ok := have[p.packName(pack)]; !ok || size > 0 && got != size {
			bad(pack, fmt.Errorf("pack %s: %w", pack, missingOr(ok)))
			continue
		}
		c.lengths[pack] = have[p.packName(pack)]
		if err := c.add(ctx, pack, c.lengths[pack]); err != nil {
			if ctx.Err() != nil || errors.Is(err, target.ErrGone) {
				return nil, err
			}
			bad(pack, err)
		}
	}
	return c, nil
}

var errSize = errors.New("not as long as it was")

func missingOr(there bool) error {
	if there {
		return errSize
	}
	return fs.ErrNotExist
}

func (c *contents) add(ctx context.Context, pack tree.Hash, size int64) error {
	headers, err := readAll(ctx, c.p.Target, c.p.indexName(pack), maxHeaders)
	if err == nil {
		err = c.headers(pack, headers)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, target.ErrGone) {
		return err
	}
	// The headers are in the pack itself too.
	if headers, err = store.Headers(ctx, &ranges{ctx: ctx, t: c.p.Target, name: c.p.packName(pack)}, size); err == nil {
		err = c.headers(pack, headers)
	}
	return err
}

func (c *contents) headers(pack tree.Hash, headers []byte) error {
	var list []where
	err := store.ReadHeaders(headers, func(o store.Packed) { list = append(list, where{pack, o}) })
	if err != nil {
		return fmt.Errorf("pack %s: %w", pack, err)
	}
	for _, w := range list {
		if _, ok := c.at[w.Hash]; !ok {
			c.at[w.Hash] = w
		}
	}
	return nil
}

// ranges reads a content of a target at offsets.
type ranges struct {
	ctx  context.Context
	t    target.Target
	name string
}

func (r *ranges) ReadAt(b []byte, off int64) (int, error) {
	in, _, err := r.t.Open(r.ctx, r.name, off, int64(len(b)))
	if err != nil {
		return 0, err
	}
	defer in.Close()
	n, err := io.ReadFull(in, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// object returns the bytes of one object that is not large.
func (c *contents) object(ctx context.Context, h tree.Hash) ([]byte, store.Packed, error) {
	w, ok := c.at[h]
	if !ok {
		return nil, w.Packed, &store.MissingError{Hash: h}
	}
	block := make([]byte, w.Length)
	if _, err := (&ranges{ctx, c.p.Target, c.p.packName(w.pack)}).ReadAt(block, w.Block); err != nil {
		return nil, w.Packed, fmt.Errorf("pack %s: %w", w.pack, err)
	}
	data, err := store.FromBlock(block, w.Packed)
	if err != nil {
		err = fmt.Errorf("pack %s: %w", w.pack, err)
	}
	return data, w.Packed, err
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

var errHash = errors.New("not the content of that hash")

// upload sends packs.
type upload struct {
	ctx   context.Context
	p     *Place
	said  func(bytes int64)
	to    target.Upload
	sum   hash.Hash
	n     int64
	packs map[tree.Hash]int64 // that were sent
}

// Write sends on and counts.
func (u *upload) Write(b []byte) (int, error) {
	n, err := u.to.Write(b)
	u.sum.Write(b[:n])
	u.n += int64(n)
	u.said(int64(n))
	return n, err
}

func (u *upload) begin() (io.Writer, error) {
	if err := u.ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	u.sum, u.n = sha256.New(), 0
	u.to, err = u.p.Target.Create(u.ctx, u.p.At(packsDir, "new"))
	return u, err
}

// end gives a pack its name and reads it back; then its headers follow.
func (u *upload) end(headers []byte) error {
	sum := tree.Hash(u.sum.Sum(nil))
	name := u.p.packName(sum)
	if err := u.commit(name); err != nil {
		return err
	}
	if err := verify(u.ctx, u.p.Target, name, sum, u.n); err != nil {
		_ = u.p.Target.Delete(u.ctx, name)
		return damaged(err, "%s: what was written there is read back otherwise", u.p.Target)
	}
	if err := put(u.ctx, u.p.Target, u.p.indexName(sum), bytes.NewReader(headers)); err != nil {
		return err
	}
	u.packs[sum] = u.n
	return nil
}

func (u *upload) commit(name string) error {
	err := u.to.Commit(u.ctx, name)
	u.to = nil
	if errors.Is(err, fs.ErrExist) {
		err = nil // by its name it is what it must be, which is looked at next
	}
	return err
}

func (u *upload) abort() {
	if u.to != nil {
		_ = u.to.Abort()
	}
}

// put writes a new content; one that is there is replaced.
func put(ctx context.Context, t target.Target, name string, r io.Reader) error {
	u, err := t.Create(ctx, name)
	if err != nil {
		return err
	}
	defer u.Abort() //nolint:errcheck // after Commit it does nothing
	if _, err := io.Copy(u, r); err != nil {
		return err
	}
	err = u.Commit(ctx, name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := t.Delete(ctx, name); err != nil {
		return err
	}
	s, ok := r.(io.Seeker)
	if !ok {
		return err
	}
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return put(ctx, t, name, r)
}

// verify reads a content and compares it with its hash and length.
func verify(ctx context.Context, t target.Target, name string, want tree.Hash, size int64) error {
	return copyVerified(ctx, t, io.Discard, name, want, size)
}

// copyVerified copies a content to w and compares it with its hash and length.
func copyVerified(ctx context.Context, t target.Target, w io.Writer, name string, want tree.Hash, size int64) error {
	r, got, err := t.Open(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	if got != size {
		return fmt.Errorf("%s: %w: %d bytes, not %d", name, errSize, got, size)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(&until{ctx, r}, size+1))
	switch {
	case err != nil:
		return err
	case n != size:
		return fmt.Errorf("%s: %w", name, errSize)
	case tree.Hash(sum.Sum(nil)) != want:
		return fmt.Errorf("%s: %w", name, errHash)
	}
	return nil
}

// until is a reader that ends with its context.
type until struct {
	ctx context.Context
	r   io.Reader
}

func (u *until) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}
