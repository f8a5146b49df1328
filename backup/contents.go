package backup

import (
	"bytes"
	"context"
	"io"

	"decree/store"
	"decree/tree"
)

// writer has contents by their hashes: fromStore, or contents, which are those of packs in a target.
type writer interface {
	Write(ctx context.Context, w io.Writer, h tree.Hash) error
}

// fromStore has the contents of a store on this machine, as before anything of a new generation was sent.
type fromStore struct{ *store.Store }

func (s fromStore) Write(_ context.Context, w io.Writer, h tree.Hash) error {
	return copyContent(w, s.Store, h)
}

// copyContent writes a content of a store, compared with its hash, to w.
func copyContent(w io.Writer, s *store.Store, h tree.Hash) error {
	r, _, err := s.Open(h)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}

// objects are the directories' objects among contents, as a tree.Source.
type objects struct {
	ctx  context.Context
	from writer
}

func (o objects) Get(h tree.Hash) ([]byte, error) {
	var b bytes.Buffer
	err := o.from.Write(o.ctx, &atMost{&b, int64(tree.MaxObject)}, h)
	return b.Bytes(), err
}
