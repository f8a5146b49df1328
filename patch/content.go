package patch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"decree/tree"
	"errors"
	"fmt"
	"io"
)

// errChanged says that a content is not the one its entry describes.
var errChanged = errors.New("the content does not match its entry")

// load reads a content whole into buf's memory and checks its size and hash. It stops
// early at a NUL byte when the content is too large to be written as a binary, since then
// no one will look at it.
func (w *Writer) load(ctx context.Context, buf []byte, c Content, e *tree.Entry) (data []byte, nul bool, err error) {
	data = buf[:0]
	if int64(cap(data)) < e.Size {
		data = make([]byte, 0, e.Size)
	}
	err = w.eachChunk(ctx, c, func(chunk []byte) error {
		nul = nul || bytes.IndexByte(chunk, 0) >= 0
		if nul && e.Size > w.lim.InlineBinary {
			return errEnough
		}
		if int64(len(data)+len(chunk)) > e.Size {
			return fmt.Errorf("%w: longer than %d bytes", errChanged, e.Size)
		}
		data = append(data, chunk...)
		return nil
	})
	if err != nil {
		if errors.Is(err, errEnough) {
			return data, true, nil
		}
		return data, false, err
	}
	return data, nul, checkContent(int64(len(data)), tree.Sum(data), e)
}

// checkContent returns an error unless size and sum are e's.
func checkContent(size int64, sum tree.Hash, e *tree.Entry) error {
	if size != e.Size {
		return fmt.Errorf("%w: %d bytes instead of %d", errChanged, size, e.Size)
	}
	if sum != e.SHA256 {
		return fmt.Errorf("%w: sha256 %s instead of %s", errChanged, sum, e.SHA256)
	}
	return nil
}

// errEnough ends eachChunk without being an error of the content.
var errEnough = errors.New("enough read")

// eachChunk calls f with the bytes of c, some at a time.
func (w *Writer) eachChunk(ctx context.Context, c Content, f func(chunk []byte) error) error {
	switch data, held := c.(Bytes); {
	case c == nil:
		return errors.New("no content given")
	case held && len(data) == 0:
		return nil
	case held:
		return f(data)
	}
	r, err := c.Open()
	if err != nil {
		return err
	}
	err = w.readChunks(ctx, r, f)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}

func (w *Writer) readChunks(ctx context.Context, r io.Reader, f func(chunk []byte) error) error {
	if w.chunk == nil {
		w.chunk = make([]byte, 64<<10)
	}
	for {
		n, err := r.Read(w.chunk)
		if n > 0 {
			if err := f(w.chunk[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// survey is what a first reading of a content tells about its section.
type survey struct {
	size  int64
	lines int64 // a last one without '\n' included
	cut   bool  // the last line has no '\n'
	nul   bool  // there is a NUL byte; the rest then means nothing
}

func (w *Writer) survey(ctx context.Context, c Content) (survey, error) {
	var v survey
	err := w.eachChunk(ctx, c, func(chunk []byte) error {
		if bytes.IndexByte(chunk, 0) >= 0 {
			v.nul = true
			return errEnough
		}
		v.size += int64(len(chunk))
		v.lines += int64(bytes.Count(chunk, []byte{'\n'}))
		v.cut = chunk[len(chunk)-1] != '\n'
		return nil
	})
	if v.cut {
		v.lines++
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return v, err
}

// oneSided writes a section with one side: a created or deleted file. The content is read
// twice, first for what the lines before it must say, then to be written.
func (w *Writer) oneSided(ctx context.Context, s *Section, c Content) error {
	e := s.New
	if e == nil {
		e = s.Old
	}
	if e.Size > w.lim.MaxText && e.Type != tree.Symlink {
		return w.stored(s)
	}
	// Small contents are held, so that the store has to unpack them once only.
	if e.Size <= min(w.lim.InlineBinary, 1<<20) {
		data, _, err := w.load(ctx, w.new, c, e)
		if err != nil {
			return err
		}
		w.new, c = data, Bytes(data)
	}
	v, err := w.survey(ctx, c)
	if err != nil {
		return err
	}
	switch {
	case v.nul && e.Size > w.lim.InlineBinary:
		return w.stored(s)
	case v.nul:
		return w.wholeBinary(ctx, s, c, e)
	case v.size != e.Size:
		return fmt.Errorf("%w: %d bytes instead of %d", errChanged, v.size, e.Size)
	}
	return w.wholeText(ctx, s, c, e, v)
}

func (w *Writer) wholeBinary(ctx context.Context, s *Section, c Content, e *tree.Entry) error {
	data, _, err := w.load(ctx, nil, c, e)
	if err != nil {
		return err
	}
	if s.New == nil {
		return w.binary(s, data, nil)
	}
	return w.binary(s, nil, data)
}

func (w *Writer) wholeText(ctx context.Context, s *Section, c Content, e *tree.Entry, v survey) error {
	if e.Size == 0 {
		w.head(s)
		return w.out.err()
	}
	sign, h := byte('+'), Hunk{NewStart: 1, NewLines: int(v.lines)}
	added := &w.stat.AddedLines
	if s.New == nil {
		sign, h = '-', Hunk{OldStart: 1, OldLines: int(v.lines)}
		added = &w.stat.RemovedLines
	}
	size := w.headSize(s) + int64(len(h.Header())+1) + v.lines + e.Size
	if v.cut {
		size += int64(len("\n" + noNewline + "\n"))
	}
	if size > w.lim.InlineText && e.Type != tree.Symlink {
		return w.stored(s)
	}
	w.head(s)
	w.out.text(h.Header() + "\n")
	*added += v.lines
	return w.signed(ctx, c, e, sign, v.lines)
}

// signed writes the lines of a content behind sign and checks that it is the one that was
// surveyed.
func (w *Writer) signed(ctx context.Context, c Content, e *tree.Entry, sign byte, lines int64) error {
	sum := sha256.New()
	var size int64
	atStart := true
	err := w.eachChunk(ctx, c, func(chunk []byte) error {
		sum.Write(chunk)
		size += int64(len(chunk))
		for len(chunk) > 0 {
			if atStart {
				w.out.byte(sign)
				lines--
			}
			line, rest := cutLine(chunk)
			w.out.bytes(line)
			atStart = line[len(line)-1] == '\n'
			chunk = rest
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !atStart {
		w.out.cut()
	}
	if err := checkContent(size, tree.Hash(sum.Sum(nil)), e); err != nil {
		return err
	}
	if lines != 0 {
		return fmt.Errorf("%w: it changed between two readings", errChanged)
	}
	return w.out.err()
}
