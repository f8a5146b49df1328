package manifest

import (
	"encoding/binary"
	"fmt"
	"io"

	"decree/tree"
)

// The binary form of earlier stores is only read by now: what writes it is for the tests.

// packer appends paths and facts in binary form.
type packer struct {
	path ordered
	mode uint32
}

// reset starts a section.
func (p *packer) reset(files bool) {
	p.path.reset(files)
	p.mode = firstMode(files)
}

// item appends an entry: see unpacker.
func (p *packer) item(dst []byte, head byte, path tree.Path, e *tree.Entry) ([]byte, error) {
	shared, err := p.path.next(path)
	if err != nil {
		return dst, fmt.Errorf("%s: %w", tree.Quote(path), err)
	}
	owned := e.Special() && e.Owner.Known
	if e != nil && e.Type != tree.Symlink && e.Mode == p.mode && !owned {
		head |= sameMode
	}
	dst = append(dst, head)
	dst = binary.AppendUvarint(dst, uint64(shared))
	dst = binary.AppendUvarint(dst, uint64(len(path)-shared))
	dst = append(dst, path[shared:]...)
	if e == nil {
		return dst, nil
	}
	if e.Type == tree.Symlink {
		dst = binary.AppendUvarint(dst, uint64(len(e.Target)))
		return append(dst, e.Target...), nil
	}
	switch {
	case owned:
		dst = binary.AppendUvarint(dst, uint64(e.Mode|ownedMode))
		dst = binary.AppendUvarint(dst, uint64(e.Owner.UID))
		dst = binary.AppendUvarint(dst, uint64(e.Owner.GID))
	case head&sameMode == 0:
		dst = binary.AppendUvarint(dst, uint64(e.Mode))
		p.mode = e.Mode
	}
	if e.Type == tree.Regular {
		dst = binary.AppendUvarint(dst, uint64(e.Size))
		dst = append(dst, e.SHA256[:]...)
	}
	return dst, nil
}

func headOf(e *tree.Entry) byte {
	switch e.Type {
	case tree.Symlink:
		return isSymlink
	case tree.Dir:
		return isDir
	}
	return isRegular
}

// AppendTree appends s in binary form: the magic, the files, a zero byte, the
// directories, a zero byte. It returns s's error, or one wrapping [tree.ErrOrder].
func AppendTree(dst []byte, s tree.Seq) ([]byte, error) {
	w := appender{dst}
	err := WriteTree(&w, s)
	return w.buf, err
}

type appender struct{ buf []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.buf = append(a.buf, p...)
	return len(p), nil
}

// WriteTree is AppendTree to a stream.
func WriteTree(w io.Writer, s tree.Seq) error {
	buf := append(make([]byte, 0, flushSize+4096), treeMagic...)
	var p packer
	p.reset(true)
	dirs := false
	for it, err := range s {
		if err != nil {
			return err
		}
		if isDir := it.Entry.Type == tree.Dir; isDir != dirs {
			if dirs {
				return fmt.Errorf("%s: %w", tree.Quote(it.Path), tree.ErrOrder)
			}
			dirs = true
			buf = append(buf, endSection)
			p.reset(false)
		}
		if buf, err = p.item(buf, headOf(&it.Entry), it.Path, &it.Entry); err != nil {
			return err
		}
		if len(buf) > flushSize {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	if !dirs {
		buf = append(buf, endSection)
	}
	_, err := w.Write(append(buf, endSection))
	return err
}
