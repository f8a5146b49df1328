package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"decree/backup/target"
	"decree/tree"
)

// sizeOf is how long a content of the target is.
func sizeOf(ctx context.Context, t target.Target, name string) (int64, error) {
	r, size, err := t.Open(ctx, name, 0, 0)
	if err != nil {
		return 0, err
	}
	r.Close()
	return size, nil
}

// readAll reads a content of the target that is small.
func readAll(ctx context.Context, t target.Target, name string, limit int64) ([]byte, error) {
	r, size, err := t.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > limit {
		return nil, &formatError{name, fmt.Sprintf("larger than %d bytes", limit)}
	}
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	if err == nil && int64(len(data)) != size {
		err = io.ErrUnexpectedEOF
	}
	return data, err
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
	err = copyChecked(ctx, w, r, want, size)
	if errors.Is(err, errSize) || errors.Is(err, errHash) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// copyChecked copies what a reader has to w and compares it with its hash and length: errSize, errHash.
func copyChecked(ctx context.Context, w io.Writer, r io.Reader, want tree.Hash, size int64) error {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(&ctxReader{ctx, r}, size+1))
	switch {
	case err != nil:
		return err
	case n != size:
		return errSize
	case tree.Hash(sum.Sum(nil)) != want:
		return errHash
	}
	return nil
}

// ctxReader is a reader that ends with its context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
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
	if err == io.ErrUnexpectedEOF { //nolint:errorlint // of ReadFull; one that wraps it is a line's that was cut
		err = io.EOF
	}
	return n, err
}

// ahead reads a content of size bytes, mostly from its beginning to its end, in pieces: of a remote target each range is a request.
// It belongs to one goroutine.
type ahead struct {
	from  *ranges
	size  int64
	at    int64
	piece []byte
}

const aheadSize = 1 << 20

func (a *ahead) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		next := off + int64(n)
		if next >= a.size {
			return n, io.EOF
		}
		if next < a.at || next >= a.at+int64(len(a.piece)) {
			a.at, a.piece = next, make([]byte, min(aheadSize, a.size-next))
			got, err := a.from.ReadAt(a.piece, next)
			if a.piece = a.piece[:got]; got == 0 {
				return n, err
			}
		}
		n += copy(b[n:], a.piece[next-a.at:])
	}
	return n, nil
}

// atMost writes no more than so many bytes: a content that is longer than somebody says is not read on.
type atMost struct {
	w    io.Writer
	left int64
}

func (a *atMost) Write(b []byte) (int, error) {
	if int64(len(b)) > a.left {
		return 0, errSize
	}
	a.left -= int64(len(b))
	return a.w.Write(b)
}
