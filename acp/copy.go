package acp

import (
	"bytes"
	"io"
)

// MostLine is the longest line that is to be read along, in bytes: a prompt may have pictures.
const MostLine = 128 << 20

// usualLine is how long a line may be for its memory to be kept for the next.
const usualLine = 1 << 20

// Copy copies from to to until from ends, every byte as it came and as soon as it came. heard is
// called with each line, without its line feed, before the last piece of it is written: what
// heard waits for has happened before the other side has a whole message. The line is heard's
// only during the call. What from ends with is no line without a line feed, and is only copied;
// so is a line of more than most bytes.
func Copy(to io.Writer, from io.Reader, most int, heard func(line []byte)) error {
	var begun []byte // the line so far, of which earlier pieces are written
	long := false
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		for piece := range bytes.Lines(buf[:n]) {
			text, whole := bytes.CutSuffix(piece, []byte{'\n'})
			if long = long || len(begun)+len(text) > most; !long {
				begun = append(begun, text...)
			}
			if whole {
				if !long {
					heard(begun)
				}
				if begun, long = begun[:0], false; cap(begun) > usualLine {
					begun = nil
				}
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
