package acp

import (
	"bytes"
	"io"
)

// MostLine is the longest line that is read along, in bytes. A longer one passes unread.
const MostLine = 1 << 20

// Copy copies from to to until from ends, every byte as it came and as soon as it came. heard is
// called with each line, without its line feed, before the last piece of it is written: what
// heard waits for has happened before the other side has a whole message. The line is heard's
// only during the call. What from ends with is no line without a line feed, and is only copied.
func Copy(to io.Writer, from io.Reader, heard func(line []byte)) error {
	var begun []byte // the line so far, of which earlier pieces are written
	long := false
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		for piece := range bytes.Lines(buf[:n]) {
			text, whole := bytes.CutSuffix(piece, []byte{'\n'})
			if long = long || len(begun)+len(text) > MostLine; !long {
				begun = append(begun, text...)
			}
			if whole {
				if !long {
					heard(begun)
				}
				begun, long = begun[:0], false
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
