package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"decree/backup/target"
	"decree/tree"
)

// upload sends packs. While one is sent the one before it is flushed and read back.
type upload struct {
	ctx   context.Context
	p     *Place
	have  map[string]int64 // what the target had among packs before
	said  func(bytes int64)
	to    target.Upload
	sum   hash.Hash
	n     int64
	packs map[tree.Hash]int64 // that were sent
	// ending is the one before, of which no name is there yet or which was not read back. Until it was waited for
	// packs is its own.
	ending errgroup.Group
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

// end has a pack finished beside the next one. Its error comes with that, or of ending.
func (u *upload) end(headers []byte) error {
	to, sum, n := u.to, tree.Hash(u.sum.Sum(nil)), u.n
	u.to = nil
	if err := u.ending.Wait(); err != nil {
		_ = to.Abort()
		return err
	}
	u.ending.Go(func() error {
		defer to.Abort() //nolint:errcheck // after Commit it does nothing
		return u.finish(to, sum, n, headers)
	})
	return nil
}

// finish gives a pack its name and reads it back; then its headers follow.
func (u *upload) finish(to target.Upload, sum tree.Hash, n int64, headers []byte) error {
	name := u.p.packName(sum)
	if err := u.clear(name, sum, n); err != nil {
		return err
	}
	if err := to.Commit(u.ctx, name); err != nil && !errors.Is(err, fs.ErrExist) { // by its name it is what it must be, which is looked at next
		return err
	}
	if err := verify(u.ctx, u.p.Target, name, sum, n); err != nil {
		if !isDamage(err) {
			return err // it may have been there before, and be another generation's
		}
		_ = u.p.Target.Delete(context.WithoutCancel(u.ctx), name)
		return readBack(u.p.Target, err)
	}
	if err := u.p.putIndex(u.ctx, sum, headers); err != nil {
		return err
	}
	u.packs[sum] = n
	return nil
}

// clear deletes what already has the pack's name and is not its bytes: a damaged pack that is sent again, or one that
// an encrypting writer left which died, and which nothing here can read.
func (u *upload) clear(name string, sum tree.Hash, n int64) error {
	if _, there := u.have[name]; !there {
		return nil
	}
	err := verify(u.ctx, u.p.Target, name, sum, n)
	switch {
	case err == nil:
		return nil
	case !isDamage(err) && !target.AboutKey(err): // of the line or the disk, say: another generation may need it
		return err
	}
	return u.p.Target.Delete(u.ctx, name)
}

// abort leaves nothing of a pack that was begun, and nobody at work.
func (u *upload) abort() {
	if u.to != nil {
		_ = u.to.Abort()
	}
	_ = u.ending.Wait()
}

// writeNew writes a new content, and returns its hash and length, also where fs.ErrExist says that its name is taken.
func writeNew(ctx context.Context, t target.Target, name string, write func(io.Writer) error) (sum tree.Hash, size int64, err error) {
	u, err := t.Create(ctx, name)
	if err != nil {
		return sum, 0, err
	}
	defer u.Abort() //nolint:errcheck // after Commit it does nothing
	h := sha256.New()
	n := &counter{w: io.MultiWriter(u, h)}
	if err := write(n); err != nil {
		return sum, 0, err
	}
	return tree.Hash(h.Sum(nil)), n.n, u.Commit(ctx, name)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// put writes a content; one that is there is replaced.
func put(ctx context.Context, t target.Target, name string, r io.ReadSeeker) error {
	for {
		_, _, err := writeNew(ctx, t, name, func(w io.Writer) error {
			_, err := io.Copy(w, r)
			return err
		})
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := t.Delete(ctx, name); err != nil {
			return err
		}
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}
