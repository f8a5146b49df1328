package recorder

import (
	"cmp"
	"context"
	"errors"
	"io"
	"syscall"

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
	Needs *store.Numbers
	// Missing are those that the store has lost, or has damaged as far as that was seen, and Forgotten those that it was told to forget.
	Missing, Forgotten []tree.Hash
	// Unread are the records, and lines, of the log that cannot be read.
	Unread []history.Damage
}

// Close releases the store's handles.
func (s *Snapshot) Close() error { return s.Store.Close() }

// SnapshotOptions are a snapshot's.
type SnapshotOptions struct {
	// Exclude are directories that are no part of the tree, by device and inode.
	Exclude []disk.Info
	// Files is called under the lock, after the tree is captured. What it puts is stored like contents of the tree.
	Files func(put func(r io.Reader, size int64) (tree.Hash, int64, error)) error
	Yes   bool // a tree of any size
}

// Snapshot captures the tree into the store, but makes no record. The lock is free again when
// it returns.
func (r *Recorder) Snapshot(ctx context.Context, o SnapshotOptions) (*Snapshot, error) {
	x, err := r.enter(ctx, besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	s := &Snapshot{Needs: new(store.Numbers)}
	res, err := r.observe(ctx, x, captureOptions{phase: "recording", afterRun: true, unlimited: o.Yes, anyFile: o.Yes, apart: o.Exclude})
	if err != nil {
		return nil, &BeginError{err}
	}
	defer res.Close()
	r.noteCapture(res)
	s.Tree, s.TreeBytes = res.Tree, res.Bytes
	if o.Files != nil {
		err = o.Files(func(in io.Reader, size int64) (tree.Hash, int64, error) {
			h, n, err := x.w.PutAnew(in, size)
			if err == nil {
				s.Needs.Set(h, 1)
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
	if s.Unread, err = r.history.Unread(); err != nil {
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
	put := s.Needs
	s.Needs = s.Store.Numbers()
	for h := range put.All() {
		s.Needs.Set(h, 1)
	}
	var unread []tree.Hash
	err = ClosureOf(r.history, s.Tree, s.Needs, func(h tree.Hash, err error) {
		if errors.Is(err, syscall.EIO) || isLost(s.Store.Verify(h)) { // what it names is not known, although it may be read now
			unread = append(unread, h)
		}
	})
	if err != nil {
		return err
	}
	if err = s.sortOut(r); err != nil {
		return err
	}
	s.Lose(unread)
	return nil
}

// Lose notes that needed objects are damaged.
func (s *Snapshot) Lose(lost []tree.Hash) {
	for _, h := range lost {
		if s.Needs.Get(h) != 0 {
			s.Needs.Set(h, 0)
			s.Missing = append(s.Missing, h)
		}
	}
}

// Users says, of each of the objects in Missing that a record names, what it is and of which record: the first
// that is found.
func (s *Snapshot) Users(h *history.History) (map[tree.Hash]string, error) {
	missing, out := map[tree.Hash]bool{}, map[tree.Hash]string{}
	for _, m := range s.Missing {
		missing[m] = true
	}
	if len(missing) == 0 {
		return out, nil
	}
	return out, h.ReadableClosures(history.Once(), func(p *history.Part) error {
		if _, named := out[p.Object]; missing[p.Object] && !named {
			path := tree.Quote(string(p.Path))
			if p.Kind == history.Directory {
				path = "the directory " + cmp.Or(path, ".")
			}
			out[p.Object] = path + " of record " + p.Record
		}
		return nil
	})
}

// ClosureOf adds to needs all objects that the records of a history and the tree now consist of.
// An object that is missing or damaged is in it, and what it would have named is not: unread is told, and why.
func ClosureOf(h *history.History, now tree.Hash, needs *store.Numbers, unread func(tree.Hash, error)) error {
	once := history.Once()
	err := h.ReadableClosures(once, func(p *history.Part) error {
		if !p.Object.IsZero() {
			needs.Set(p.Object, 1)
		}
		if p.Err != nil && !isLost(p.Err) {
			return p.Err // what it would name is not known
		}
		if p.Err != nil && !p.Object.IsZero() {
			unread(p.Object, p.Err)
		}
		return nil
	})
	if err != nil || now.IsZero() {
		return err
	}
	reader := tree.Reader{From: h.Directories(), Skip: func(e *tree.DamagedError) bool {
		unread(e.Hash, e)
		return isLost(e)
	}}
	return reader.Walk(now, func(dir []byte, object tree.Hash) bool {
		needs.Set(object, 1)
		return once(dir, object)
	}, func(_ []byte, n *tree.Node) error {
		if n.Type == tree.Regular {
			needs.Set(n.SHA256, 1)
		}
		return nil
	})
}

// sortOut takes what the store does not have out of what is needed.
func (s *Snapshot) sortOut(r *Recorder) error {
	list, err := r.forgotten()
	if err != nil {
		return err
	}
	for h := range s.Needs.All() {
		if s.Store.Has(h) {
			continue
		}
		s.Needs.Set(h, 0)
		if _, ok := list.Contents[h]; ok {
			s.Forgotten = append(s.Forgotten, h)
		} else {
			s.Missing = append(s.Missing, h)
		}
	}
	return nil
}

// isLost says whether an error is that the store does not have an object, or not as it was, or that its disk cannot read it.
func isLost(err error) bool {
	return errors.Is(err, syscall.EIO) || store.IsLost(err) || errors.Is(err, history.ErrNotKept)
}
