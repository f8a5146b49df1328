package target

import (
	"context"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
)

// To read a part of an age file takes its beginning, for the key, and its last chunk, which proves how long
// it is. Both are kept for some of the files that are read like this, which are packs.
type head struct {
	size  int64
	start []byte
	last  []byte // from lastAt on
}

const keptHeads = 128

func (h *head) lastAt() int64 { return h.size - int64(len(h.last)) }

// forgetHead drops what is kept of a file that has another content now, or may have.
func (e *encrypted) forgetHead(sealed string) {
	e.filesMu.Lock()
	defer e.filesMu.Unlock()
	delete(e.heads, sealed)
}

// headOf reads the beginning and the end of a file, or all of a small one.
func (e *encrypted) headOf(ctx context.Context, sealed string) (*head, error) {
	e.filesMu.Lock()
	h := e.heads[sealed]
	e.filesMu.Unlock()
	if h != nil {
		return h, nil
	}
	h = &head{}
	var err error
	h.start, h.size, err = e.part(ctx, sealed, 0, headLength+chunkSize+chunkExtra)
	if err != nil {
		return nil, err
	}
	if int64(len(h.start)) == h.size {
		h.last = h.start
	} else {
		body := h.size - headLength
		length := body % (chunkSize + chunkExtra)
		if length == 0 {
			length = chunkSize + chunkExtra
		}
		var now int64
		if h.last, now, err = e.part(ctx, sealed, h.size-length, length); err != nil {
			return nil, err
		}
		if now != h.size || int64(len(h.last)) != length {
			return nil, io.ErrUnexpectedEOF
		}
		h.start = h.start[:headLength]
	}
	e.filesMu.Lock()
	defer e.filesMu.Unlock()
	if len(e.heads) >= keptHeads {
		clear(e.heads)
	}
	e.heads[sealed] = h
	return h, nil
}

func (e *encrypted) part(ctx context.Context, sealed string, offset, length int64) ([]byte, int64, error) {
	r, size, err := e.inner.Open(ctx, sealed, offset, length)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return data, size, err
}

func (e *encrypted) openRange(ctx context.Context, k *projectKey, sealed string, offset, length int64) (io.ReadCloser, int64, error) {
	h, err := e.headOf(ctx, sealed)
	if err != nil {
		return nil, 0, err
	}
	if len(h.start) < headLength {
		return nil, 0, fmt.Errorf("not a whole encrypted file: %w", io.ErrUnexpectedEOF)
	}
	identity, err := e.identityFor(k, h.start)
	if err != nil {
		return nil, 0, err
	}
	size := plainSize(h.size)
	if length < 0 || length > size-offset {
		length = max(0, size-offset)
	}
	w := &window{ctx: ctx, inner: e.inner, name: sealed, head: h, end: min(h.size, sealedEnd(offset+length))}
	plain, _, err := age.DecryptReaderAt(w, h.size, identity)
	if err != nil {
		return nil, 0, errors.Join(notOurs(err, w.err), w.Close())
	}
	return &limited{&decrypting{io.NewSectionReader(plain, offset, length), func() error { return w.err }}, w}, size, nil
}

// sealedEnd is where the chunk ends that has the last byte before end.
func sealedEnd(end int64) int64 {
	chunks := (end + chunkSize - 1) / chunkSize
	return headLength + chunks*(chunkSize+chunkExtra)
}

// window gives age the parts of a file that it asks for: the beginning and the last chunk, which are there,
// and the chunks between in their order, which are read as one stream. It belongs to one goroutine.
type window struct {
	ctx    context.Context
	inner  Target
	name   string
	head   *head
	end    int64 // how far the stream will be read
	stream io.ReadCloser
	at     int64 // of the stream
	err    error // of reading it
}

func (w *window) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		got, err := w.readAt(b[n:], off+int64(n))
		n += got
		if err != nil {
			if err != io.EOF { //nolint:errorlint // it is readAt's own
				w.err = err
			}
			return n, err
		}
	}
	return n, nil
}

func (w *window) readAt(b []byte, off int64) (int, error) {
	switch {
	case off >= w.head.size:
		return 0, io.EOF
	case off >= w.head.lastAt():
		return copy(b, w.head.last[off-w.head.lastAt():]), nil
	case off < int64(len(w.head.start)):
		return copy(b, w.head.start[off:]), nil
	}
	if w.stream == nil || w.at != off {
		if err := w.seek(off); err != nil {
			return 0, err
		}
	}
	n, err := io.ReadFull(w.stream, b[:min(int64(len(b)), w.head.lastAt()-off)])
	w.at += int64(n)
	return n, err
}

func (w *window) seek(off int64) error {
	if err := w.Close(); err != nil {
		return err
	}
	r, size, err := w.inner.Open(w.ctx, w.name, off, max(w.end-off, 1))
	if err != nil {
		return err
	}
	if size != w.head.size {
		r.Close()
		return io.ErrUnexpectedEOF
	}
	w.stream, w.at = r, off
	return nil
}

func (w *window) Close() error {
	if w.stream == nil {
		return nil
	}
	err := w.stream.Close()
	w.stream = nil
	return err
}
