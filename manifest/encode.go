package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"decree/tree"
)

// flushSize is the length at which an Encoder hands its bytes on.
const flushSize = 64 << 10

// Encoder writes a manifest.json, version 1. It is not safe for concurrent use.
type Encoder struct {
	w    io.Writer
	buf  []byte
	err  error
	path ordered
	dirs bool // the dirs section has begun
	any  bool // the present section has an entry
}

// NewEncoder returns an Encoder to w; partial says that the manifest holds only some
// paths of the tree. What it writes is whole after Close.
func NewEncoder(w io.Writer, partial bool) *Encoder {
	e := &Encoder{w: w, buf: make([]byte, 0, flushSize+4096)}
	e.buf = append(e.buf, "{\n  \"version\": 1,\n"...)
	if partial {
		e.buf = append(e.buf, "  \"partial\": true,\n"...)
	}
	e.buf = append(e.buf, "  \"files\": {"...)
	e.path.reset(true)
	return e
}

// Encode writes s as one manifest.json to w.
func Encode(w io.Writer, s tree.Seq, partial bool) error {
	e := NewEncoder(w, partial)
	for it, err := range s {
		if err != nil {
			return err
		}
		if err := e.Item(it); err != nil {
			return err
		}
	}
	return e.Close()
}

// Item adds a path: all files and symlinks come first, then all directories, each in byte order of their paths.
// It returns an error wrapping [tree.ErrOrder] if they do not, otherwise only the writer's error, then and at each
// later call. The path is not kept.
func (e *Encoder) Item(it tree.Item) error {
	if it.Entry.Type == tree.Dir {
		return e.dir(it.Path, it.Entry)
	}
	return e.file(it.Path, it.Entry)
}

func (e *Encoder) file(path tree.Path, entry tree.Entry) error {
	if e.err != nil {
		return e.err
	}
	if e.dirs {
		return e.fail(path, tree.ErrOrder)
	}
	if !e.key(path) {
		return e.err
	}
	b := append(e.buf, `{"sha256": "`...)
	b = appendHex(b, &entry.SHA256)
	b = append(b, `", "size": `...)
	b = strconv.AppendInt(b, entry.Size, 10)
	b = append(b, `, "mode": "`...)
	if entry.Type == tree.Symlink {
		b = append(b, `777", "type": "symlink", "target": `...)
		b = tree.AppendJSONString(b, tree.Quote(entry.Target))
		b = append(b, '}')
	} else {
		b = appendMode(b, entry.Mode)
		if entry.MayOwn() && entry.Owner.Known {
			b = append(b, `", "owner": "`...)
			b = append(b, entry.Owner.String()...)
		}
		b = append(b, `"}`...)
	}
	e.buf = b
	return e.flush(flushSize)
}

// dir writes a directory's mode (07777), behind which stands its owner where that is recorded: "2775 0:50".
func (e *Encoder) dir(path tree.Path, entry tree.Entry) error {
	if e.err != nil {
		return e.err
	}
	e.beginDirs()
	if !e.key(path) {
		return e.err
	}
	e.buf = append(e.buf, '"')
	e.buf = appendMode(e.buf, entry.Mode)
	if entry.MayOwn() && entry.Owner.Known {
		e.buf = append(append(e.buf, ' '), entry.Owner.String()...)
	}
	e.buf = append(e.buf, '"')
	return e.flush(flushSize)
}

// Close ends the manifest and writes what is left. It does not close the writer.
func (e *Encoder) Close() error {
	if e.err != nil {
		return e.err
	}
	e.beginDirs()
	e.endSection()
	e.buf = append(e.buf, "\n}\n"...)
	if err := e.flush(0); err != nil {
		return err
	}
	e.err = errors.New("manifest: encoder is closed")
	return nil
}

func (e *Encoder) beginDirs() {
	if e.dirs {
		return
	}
	e.endSection()
	e.buf = append(e.buf, ",\n  \"dirs\": {"...)
	e.dirs, e.any = true, false
	e.path.reset(false)
}

func (e *Encoder) endSection() {
	if e.any {
		e.buf = append(e.buf, "\n  "...)
	}
	e.buf = append(e.buf, '}')
}

// key checks the order and appends what stands before an entry's facts.
func (e *Encoder) key(path tree.Path) bool {
	if _, err := e.path.next(path); err != nil {
		_ = e.fail(path, err) // it stays, and every later call returns it
		return false
	}
	if e.any {
		e.buf = append(e.buf, ',')
	}
	e.any = true
	e.buf = append(e.buf, "\n    "...)
	if plain(string(path)) {
		e.buf = append(e.buf, '"')
		e.buf = append(e.buf, path...)
		e.buf = append(e.buf, '"')
	} else {
		e.buf = tree.AppendJSONString(e.buf, tree.Quote(path))
	}
	e.buf = append(e.buf, ": "...)
	return true
}

// plain says that a path stands in JSON as it is: printable ASCII without '"' and '\'.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (e *Encoder) fail(path tree.Path, err error) error {
	e.err = fmt.Errorf("%s: %w", tree.Quote(path), err)
	return e.err
}

func (e *Encoder) flush(most int) error {
	if len(e.buf) <= most {
		return nil
	}
	_, e.err = e.w.Write(e.buf)
	e.buf = e.buf[:0]
	return e.err
}

// hexPairs holds the two digits of each byte: twice as fast as digit by digit.
var hexPairs = func() (t [256]uint16) {
	const digits = "0123456789abcdef"
	for i := range t {
		t[i] = uint16(digits[i>>4]) | uint16(digits[i&15])<<8
	}
	return t
}()

func appendHex(b []byte, h *tree.Hash) []byte {
	n := len(b)
	b = append(b, make([]byte, 2*len(h))...)
	out := b[n : n+2*len(h)]
	for i, c := range h {
		binary.LittleEndian.PutUint16(out[2*i:], hexPairs[c])
	}
	return b
}

func appendMode(b []byte, mode uint32) []byte {
	switch mode {
	case 0o644:
		return append(b, "644"...)
	case 0o755:
		return append(b, "755"...)
	}
	return append(b, tree.FormatMode(mode)...)
}
