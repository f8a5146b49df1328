package disk

import (
	"context"
	"io"
)

// Until is a reader that ends with its context: a signal ends the reading of what is long at
// the next block.
type Until struct {
	Context context.Context
	Reader  io.Reader
}

func (u Until) Read(b []byte) (int, error) {
	if u.Context.Err() != nil {
		return 0, context.Cause(u.Context)
	}
	return u.Reader.Read(b)
}
