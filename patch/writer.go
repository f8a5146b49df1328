package patch

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"

	"decree/tree"
)

// Writer writes a diff. It checks each content against its entry's size and SHA-256, so
// that a diff that was written without an error is one that reverses.
//
// Created and deleted files are streamed. Of a modified file both sides are held in memory
// if they are small, otherwise compared in pieces: whatever their size, that takes some
// 150 MB beside what Limits.InlineText lets a section have. A Writer is for one goroutine.
type Writer struct {
	out   output
	lim   Limits
	stat  Stat
	order order
	began bool
	err   error // the first one, which all later calls return

	old, new []byte // contents, kept between files while small
	chunk    []byte // what is read at a time
	buf      []byte // the lines of a section up to its hunks
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer, lim Limits) *Writer {
	return &Writer{out: newOutput(w), lim: lim.withDefaults()}
}

// Write writes the sections of one change; a Change whose sides are the same is none.
// Changes come in byte order of their raw paths; a path below something
// that is no directory is refused too, since no reader would take it. Other errors are
// *[tree.PathError], those of the contents and of the underlying writer, and "path: reason"
// when a content does not match its entry. After an error the diff is of no use.
func (w *Writer) Write(ctx context.Context, c Change) error {
	if w.err == nil {
		w.err = w.write(ctx, c)
	}
	return w.err
}

// Close writes what is buffered. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.out.flush()
	}
	return w.err
}

// Stat returns the counts of what has been written so far.
func (w *Writer) Stat() Stat { return w.stat }

func (w *Writer) write(ctx context.Context, c Change) error {
	if err := c.Path.Check(); err != nil {
		return err
	}
	if c.Old != nil && c.New != nil && c.Old.Type != c.New.Type {
		gone, come := c, c
		gone.New, gone.NewContent = nil, nil
		come.Old, come.OldContent = nil, nil
		if err := w.section(ctx, gone); err != nil {
			return err
		}
		return w.section(ctx, come)
	}
	return w.section(ctx, c)
}

// section writes the one section of c, whose sides are of one kind.
func (w *Writer) section(ctx context.Context, c Change) error {
	s := &Section{Path: c.Path, Op: opOf(c.Old, c.New), Old: c.Old, New: c.New, Shared: c.Shared}
	if s.Op == "" {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if reason := s.fault(); reason != "" {
		return fmt.Errorf("%s: %s", tree.Quote(c.Path), reason)
	}
	if reason := w.order.add(s); reason != "" {
		return fmt.Errorf("%s: %s", tree.Quote(c.Path), reason)
	}
	if !w.began {
		w.began = true
		w.out.text(VersionLine + "\n")
	}
	w.stat.count(s.Op)
	if err := w.body(ctx, s, c); err != nil {
		return fmt.Errorf("%s: %w", tree.Quote(c.Path), err)
	}
	return nil
}

func (w *Writer) body(ctx context.Context, s *Section, c Change) error {
	oldContent, newContent := c.content()
	switch s.Op {
	case OpCreate:
		return w.oneSided(ctx, s, newContent)
	case OpDelete:
		return w.oneSided(ctx, s, oldContent)
	case OpModify:
		return w.modified(ctx, s, oldContent, newContent)
	}
	w.head(s)
	return w.out.err()
}

// content returns the contents to read; a symlink's is its target, an empty file's empty.
func (c *Change) content() (oldC, newC Content) {
	return entryContent(c.Old, c.OldContent), entryContent(c.New, c.NewContent)
}

func entryContent(e *tree.Entry, c Content) Content {
	switch {
	case e == nil:
		return nil
	case e.Type == tree.Symlink:
		return Bytes(e.Target)
	case e.Size == 0:
		return Bytes(nil)
	}
	return c
}

// head writes the "# decree:" line and the header lines.
func (w *Writer) head(s *Section) {
	w.buf = s.appendHeader(s.appendFacts(w.buf[:0]))
	w.out.bytes(w.buf)
}

// headSize returns what head would write, in bytes.
func (w *Writer) headSize(s *Section) int64 {
	w.buf = s.appendHeader(s.appendFacts(w.buf[:0]))
	return int64(len(w.buf))
}

// stored writes s as a section whose contents are in the store only.
func (w *Writer) stored(s *Section) error {
	s.Binary, s.Stored = true, true
	w.head(s)
	return w.out.err()
}

// binary writes s with both contents as base64.
func (w *Writer) binary(s *Section, old, new []byte) error {
	s.Binary = true
	w.head(s)
	w.payload(oldPrefix, old)
	w.payload(newPrefix, new)
	return w.out.err()
}

func (w *Writer) payload(prefix string, data []byte) {
	var line [len(oldPrefix) + 76 + 1]byte
	for len(data) > 0 {
		n := min(len(data), base64Line)
		b := append(line[:0], prefix...)
		b = append(base64.StdEncoding.AppendEncode(b, data[:n]), '\n')
		w.out.bytes(b)
		data = data[n:]
	}
}

// modified writes a section with both sides.
func (w *Writer) modified(ctx context.Context, s *Section, oldC, newC Content) error {
	if max(s.Old.Size, s.New.Size) > w.lim.MaxText && s.kind() != tree.Symlink {
		return w.stored(s)
	}
	defer w.shrink()
	if s.Old.Size+s.New.Size > heldText && max(s.Old.Size, s.New.Size) > w.lim.InlineBinary && s.kind() != tree.Symlink {
		return w.large(ctx, s, Change{Old: s.Old, New: s.New, OldContent: oldC, NewContent: newC})
	}
	var oldNUL, newNUL bool
	var err error
	if w.old, oldNUL, err = w.load(ctx, w.old, oldC, s.Old); err != nil {
		return err
	}
	if oldNUL && max(s.Old.Size, s.New.Size) > w.lim.InlineBinary {
		return w.stored(s)
	}
	if w.new, newNUL, err = w.load(ctx, w.new, newC, s.New); err != nil {
		return err
	}
	if oldNUL || newNUL {
		if max(s.Old.Size, s.New.Size) > w.lim.InlineBinary {
			return w.stored(s)
		}
		return w.binary(s, w.old, w.new)
	}
	return w.text(ctx, s)
}

// text writes a section of hunks between w.old and w.new.
func (w *Writer) text(ctx context.Context, s *Section) error {
	h := &hunkWriter{most: w.lim.InlineText}
	if s.kind() == tree.Symlink {
		h.most = math.MaxInt64
	}
	err := h.piece(ctx, w.old, w.new)
	if errors.Is(err, errTooManyLines) {
		return w.large(ctx, s, Change{Old: s.Old, New: s.New, OldContent: Bytes(w.old), NewContent: Bytes(w.new)})
	}
	if err == nil {
		err = h.shut()
	}
	return w.hunks(s, h, err)
}

// hunks writes a section of hunks, or what stands for it where they are too many.
func (w *Writer) hunks(s *Section, h *hunkWriter, err error) error {
	// A link's target is on its "# decree:" line, so it needs no store whatever the limit.
	if s.kind() != tree.Symlink && (errors.Is(err, errTooLong) || err == nil && w.headSize(s)+h.done.size > w.lim.InlineText) {
		return w.stored(s)
	}
	if err != nil {
		return err
	}
	w.head(s)
	h.writeTo(w.out)
	w.stat.AddedLines += h.added
	w.stat.RemovedLines += h.removed
	return w.out.err()
}

// keepBuffer is the size up to which content buffers are kept for the next file.
const keepBuffer = 4 << 20

func (w *Writer) shrink() {
	if cap(w.old) > keepBuffer {
		w.old = nil
	}
	if cap(w.new) > keepBuffer {
		w.new = nil
	}
}
