package recorder

import (
	"context"
	"errors"
	"io"

	"decree/disk"
	"decree/history"
	"decree/store"
	"decree/tree"
)

// Snapshot is all that is known of a project at one moment, for who copies it elsewhere. Its
// contents are readable until it is closed, whatever others do to the store meanwhile; what only the
// snapshot has put there is swept by a later gc.
type Snapshot struct {
	Store     *store.Store
	Tree      tree.Hash // the present state
	TreeBytes int64     // of its files
	Records   []*history.Record
	// Needs are all objects that the records and the present state consist of, without the chunks
	// of large ones, and what Files has put.
	Needs map[tree.Hash]struct{}
	// Missing are those that the store has lost, and Forgotten those that it was told to forget.
	Missing, Forgotten []tree.Hash
}

// Close releases the store's handles.
func (s *Snapshot) Close() error { return s.Store.Close() }

// SnapshotOptions are a snapshot's.
type SnapshotOptions struct {
	// Exclude are directories that are no part of the tree, by device and inode.
	Exclude []disk.Info
	// Before is called under the lock, before the tree is captured; Files after that. What it puts
	// is stored like contents of the tree.
	Before func() error
	Files  func(put func(r io.Reader, size int64) (tree.Hash, int64, error)) error
	Yes    bool // a tree of any size
}

// Snapshot captures the tree into the store, but makes no record. The lock is free again when
// it returns.
func (r *Recorder) Snapshot(ctx context.Context, o SnapshotOptions) (*Snapshot, error) {
	x, err := r.enter(ctx, besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	if o.Before != nil {
		if err := o.Before(); err != nil {
			return nil, &BeginError{err}
		}
	}
	s := &Snapshot{Needs: map[tree.Hash]struct{}{}}
	res, err := r.observe(ctx, x, look{phase: "recording", afterRun: true, unlimited: o.Yes, anyFile: o.Yes, apart: o.Exclude})
	if err != nil {
		return nil, &BeginError{err}
	}
	defer res.Close()
	r.tell(res)
	s.Tree, s.TreeBytes = res.Tree, res.Bytes
	if o.Files != nil {
		err = o.Files(func(in io.Reader, size int64) (tree.Hash, int64, error) {
			h, n, err := x.w.Put(in, size)
			if err == nil {
				s.Needs[h] = struct{}{}
			}
			return h, n, err
		})
	}
	if err == nil {
		err = r.keep(x, res)
	}
	if err == nil {
		err = s.gather(r)
	}
	if err != nil {
		return nil, &BeginError{err}
	}
	return s, nil
}

// gather finds out what the records need, and holds the store as it is.
func (s *Snapshot) gather(r *Recorder) (err error) {
	if s.Records, err = r.history.Logged(); err != nil {
		return err
	}
	if err = r.reopen(); err != nil {
		return err
	}
	if s.Store, err = store.OpenHeld(r.project.Store); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.Store.Close()
		}
	}()
	if err = ClosureOf(r.history, s.Store, s.Tree, s.Needs); err != nil {
		return err
	}
	return s.sortOut(r)
}

// ClosureOf adds to needs all objects that the records of a history and the tree now consist of.
// An object that is missing or damaged is in it, and what it would have named is not.
func ClosureOf(h *history.History, objects *store.Store, now tree.Hash, needs map[tree.Hash]struct{}) error {
	once := history.Once()
	err := h.Closures(func(string) bool { return true }, once, func(p *history.Part) error {
		if !p.Object.IsZero() {
			needs[p.Object] = struct{}{}
		}
		if p.Err != nil && !isLost(p.Err) {
			return p.Err // what it would name is not known
		}
		return nil
	})
	if err != nil || now.IsZero() {
		return err
	}
	reader := tree.Reader{From: h.Directories(), Skip: func(e *tree.DamagedError) bool { return isLost(e) }}
	return reader.Walk(now, func(dir []byte, object tree.Hash) bool {
		needs[object] = struct{}{}
		return once(dir, object)
	}, func(_ []byte, n *tree.Node) error {
		if n.Type == tree.Regular {
			needs[n.SHA256] = struct{}{}
		}
		return nil
	})
}

// sortOut takes what the store does not have out of what is needed.
func (s *Snapshot) sortOut(r *Recorder) error {
	list, err := store.ReadForgotten(r.project.Store)
	if err != nil {
		return err
	}
	for h := range s.Needs {
		if s.Store.Has(h) {
			continue
		}
		delete(s.Needs, h)
		if _, ok := list.Contents[h]; ok {
			s.Forgotten = append(s.Forgotten, h)
		} else {
			s.Missing = append(s.Missing, h)
		}
	}
	return nil
}

// isLost says whether an error is that the store does not have an object, or not as it was.
func isLost(err error) bool {
	return errors.As(err, new(*store.MissingError)) || errors.As(err, new(*store.DamagedError)) || errors.Is(err, history.ErrNotKept)
}
