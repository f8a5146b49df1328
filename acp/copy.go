package acp

import (
	"bytes"
	"io"
)

// MostLine is how much of a line is held at most for it to be read along, in bytes.
const MostLine = 16 << 20

// mostString is how much is held of a string in a line: a prompt may have pictures, a tool's
// result whole files, of which nothing is read.
const mostString = 64 << 10

// usualLine is how long a line may be for its memory to be kept for the next.
const usualLine = 1 << 20

// Copy copies from to to until from ends, every byte as it came and as soon as it came. heard is
// called with each line, without its line feed, before the last piece of it is written: what
// heard waits for has happened before the other side has a whole message. The line is heard's
// only during the call; of a long string in it there is the beginning, and cut is how many bytes are
// left out. What from ends with is no line without a line feed, and is only copied; so is a line
// of which there is more than most bytes all the same.
func Copy(to io.Writer, from io.Reader, most int, heard func(line []byte, cut int64)) error {
	var begun held // the line so far, of which earlier pieces are written
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		for piece := range bytes.Lines(buf[:n]) {
			text, whole := bytes.CutSuffix(piece, []byte{'\n'})
			begun.add(text, most)
			if whole {
				if !begun.long {
					heard(begun.text, begun.cut)
				}
				begun = begun.next()
			}
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// held is what is kept of a line of JSON: all but the rest of its long strings.
type held struct {
	text     []byte
	long     bool  // there is more of it than is to be held: nothing is
	cut      int64 // bytes of strings that are left out
	inString bool
	size     int  // of the string so far
	full     bool // what comes of it now is left out
	escape   int  // bytes that an escape in it still has; kindOfEscape: that is not known yet
}

const (
	kindOfEscape = -1
	hexOfEscape  = 4 // digits after \u
)

// add takes more of the line.
func (h *held) add(b []byte, most int) {
	for len(b) > 0 && !h.long {
		n := h.stretch(b)
		if h.long = len(h.text) > most; h.long {
			h.text = nil
		}
		b = b[n:]
	}
}

// stretch takes the next bytes that are of one kind, and returns how many they are. An escape is
// kept or left out as a whole.
func (h *held) stretch(b []byte) (n int) {
	switch {
	case !h.inString:
		if n = bytes.IndexByte(b, '"') + 1; n == 0 {
			n = len(b)
		} else {
			h.inString, h.size = true, 0
		}
		h.text = append(h.text, b[:n]...)
	case h.escape != 0:
		n = 1
		switch {
		case h.escape > 0:
			h.escape--
		case b[0] == 'u':
			h.escape = hexOfEscape
		default:
			h.escape = 0
		}
		h.keep(b[:n])
	case b[0] == '"':
		n, h.inString = 1, false
		h.text = append(h.text, b[0])
	case b[0] == '\\':
		n, h.escape = 1, kindOfEscape
		h.full = h.size >= mostString
		h.keep(b[:n])
	default:
		if n = bytes.IndexAny(b, `"\`); n < 0 {
			n = len(b)
		}
		if h.full = h.size >= mostString; !h.full {
			n = min(n, mostString-h.size)
		}
		h.keep(b[:n])
	}
	return n
}

// keep appends a part of a string, or leaves it out.
func (h *held) keep(b []byte) {
	h.size += len(b)
	if h.full {
		h.cut += int64(len(b))
		return
	}
	h.text = append(h.text, b...)
}

// next is for the next line, with the memory of this one where that is usual.
func (h *held) next() held {
	if cap(h.text) > usualLine {
		return held{}
	}
	return held{text: h.text[:0]}
}
