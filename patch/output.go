package patch

import (
	"bufio"
	"io"
)

// output is where a Writer writes. The first error of the underlying writer stays and
// makes all later writes nothing, so only flush returns it, and err.
type output struct{ w *bufio.Writer }

func newOutput(w io.Writer) output { return output{bufio.NewWriterSize(w, 1<<16)} }

func (o output) text(s string)  { _, _ = o.w.WriteString(s) }
func (o output) bytes(b []byte) { _, _ = o.w.Write(b) }
func (o output) byte(c byte)    { _ = o.w.WriteByte(c) }
func (o output) flush() error   { return o.w.Flush() }

// err returns the first error so far, of what has left the buffer.
func (o output) err() error {
	_, err := o.w.Write(nil)
	return err
}

// cut ends a line that has no '\n'.
func (o output) cut() { o.text("\n" + noNewline + "\n") }
