package patch

import (
	"bytes"
	"context"
)

// Kept says of each line of b which line of a it is, -1 for one that a lacks; both
// count from 0. Lines are split at '\n' only, and pair up in order, as in the
// hunks of a section. Its error is ctx's, or that there are too many lines.
func Kept(ctx context.Context, a, b []byte) ([]int, error) {
	c, err := compare(ctx, a, b)
	if err != nil {
		return nil, err
	}
	out := make([]int, Lines(b))
	at, shift := 0, 0
	for _, e := range c.edits {
		for ; at < c.skip+e.b0; at++ {
			out[at] = at + shift
		}
		for ; at < c.skip+e.b1; at++ {
			out[at] = -1
		}
		shift = e.a1 - e.b1
	}
	for ; at < len(out); at++ {
		out[at] = at + shift
	}
	return out, nil
}

// Lines counts the lines of data; a last one without '\n' is a line.
func Lines(data []byte) int {
	n := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}
