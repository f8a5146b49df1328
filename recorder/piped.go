package recorder

import "io"

// Piped is what write writes, while it is read. Who closes it has write end and waits for that: nothing that write
// reads from is read afterwards.
func Piped(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	p := &piped{PipeReader: r, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		w.CloseWithError(write(w))
	}()
	return p
}

type piped struct {
	*io.PipeReader
	ended chan struct{}
}

func (p *piped) Close() error {
	err := p.PipeReader.Close()
	<-p.ended
	return err
}
