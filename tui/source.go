package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"decree/history"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// source is where the diff of a row comes from.
type source struct {
	id, name string
	want     tree.Hash // what its bytes hash to; zero: it is not known
	none     string    // why there is no diff; "" where there is one
}

// sourceOf is the diff that a row is about: of a record what it changed, of a checkpoint and of an outside
// row what was changed before it.
func sourceOf(r *timeline.Row) source {
	rec := r.Record
	if rec == nil {
		return source{none: "This record cannot be read. 'decree doctor' says more, and 'decree doctor --repair' brings back what the store has."}
	}
	found, any := rec.Outside()
	switch {
	case r.Kind == timeline.Outside, view.IsCheckpoint(rec) && any:
		return source{id: rec.ID, name: history.OutsideFile, want: found.SHA256}
	case rec.Status == history.StatusOpen:
		return source{none: "It goes on: what it changes is known when it ends."}
	case view.IsCheckpoint(rec):
		return source{none: "A checkpoint: the files as they were. Press R to restore them."}
	case rec.DiffSHA256.IsZero() || rec.DiffSHA256 == tree.EmptySum:
		return source{none: "It changed nothing."}
	}
	return source{id: rec.ID, name: history.ChangesFile, want: rec.DiffSHA256}
}

// document opens a source's diff.
func (s source) document(h func() history.Reader) *document {
	return newDocument(func() (io.ReadCloser, error) {
		f, err := h().OpenFile(s.id, s.name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s of %s is missing; 'decree doctor --repair' brings it back from the store", s.name, s.id)
		}
		return f, err
	})
}

// heldDiff is the most of a plan's diff that is held; what is longer is made anew when it is scrolled.
const heldDiff = 8 << 20

// errHeld ends the writing of a diff that is too long to be held.
var errHeld = errors.New("too long to be held")

// planDocument is the diff of a plan. It is written when it is read.
func planDocument(ctx context.Context, write func(ctx context.Context, w io.Writer) error) *document {
	var held []byte
	tried, fits := false, false
	return newDocument(func() (io.ReadCloser, error) {
		if !tried {
			tried = true
			b := &bounded{}
			err := write(ctx, b)
			if err != nil && !errors.Is(err, errHeld) {
				return nil, err
			}
			if err == nil {
				held, fits = b.Bytes(), true
			}
		}
		if fits {
			return struct {
				io.ReadSeeker
				io.Closer
			}{bytes.NewReader(held), io.NopCloser(nil)}, nil
		}
		r, w := io.Pipe()
		go func() { w.CloseWithError(write(ctx, w)) }()
		return r, nil
	})
}

type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > heldDiff {
		return 0, errHeld
	}
	return b.Buffer.Write(p)
}
