package worktree

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"decree/disk"
	"decree/tree"
)

// Bytes gives stored contents. *store.Store is one.
type Bytes interface {
	// Open returns the content and its size; the reader checks the hash at the end.
	Open(h tree.Hash) (io.ReadCloser, int64, error)
	Has(h tree.Hash) bool
	// Place orders contents by where they lie: they are read fastest in that order.
	Place(h tree.Hash) uint64
}

// Options of a Tree.
type Options struct {
	// Tmp is .decree/tmp; it may be nil for a Tree that is only looked at.
	Tmp disk.Dir
	// Store gives contents that a step has no source for, and the old bytes
	// when staging was lost. It may be nil.
	Store Bytes
	// Workers bounds what is read and moved at once; 0 means by the machine.
	// With 1 the steps on the disk are the same in every run.
	Workers int
	// Only is whom alone set-user-ID and set-group-ID may be given to, whoever the
	// records name; nil: whomever they name.
	Only *tree.Owner
}

// Tree is a user's tree. It is safe for concurrent reading; moves are one at a
// time, which the caller's lock provides.
type Tree struct {
	root disk.Dir
	opt  Options
	many int // tests: instead of manySteps
}

// Open returns the tree below root, which stays the caller's to close.
func Open(root disk.Dir, o Options) *Tree { return &Tree{root: root, opt: o} }

// Look returns the state of path now, nil where nothing is: also where a parent
// is missing or no directory. It hashes a regular file. The error is *LinkError
// where a parent is a symbolic link, *SpecialError for a pipe, socket or device.
func (t *Tree) Look(path tree.Path) (*tree.Entry, error) {
	h := newHandles(t.root)
	defer h.close()
	s := lookSpelled(h, nil, path)
	return s.Entry, s.Err
}

// Looked is one answer of LookAll.
type Looked struct {
	Entry *tree.Entry
	Err   error
	// Writing is the file at the path where somebody has it open for writing:
	// moved away, it takes their later writes along.
	Writing *FileID
}

// FileID names a file whatever its path.
type FileID struct{ Dev, Ino uint64 }

// LookAll looks at many paths at once; the i-th answer is the i-th path's. It
// is fastest with paths in order. Of paths that are the same but for their case each
// is there only as the directories list it.
func (t *Tree) LookAll(ctx context.Context, paths []tree.Path) ([]Looked, error) {
	h := newHandles(t.root)
	defer h.close()
	defer h.onlyLook()()
	out := make([]Looked, len(paths))
	sp := respelledOf(slices.Values(paths))
	err := each(ctx, t.workers(), len(paths), func(i int) error {
		out[i] = lookSpelled(h, sp, paths[i])
		return nil
	})
	return out, err
}

func lookSpelled(h *handles, sp respelled, path tree.Path) (out Looked) {
	missing, err := sp.missing(h, path)
	if err != nil || missing {
		return Looked{Err: err}
	}
	s, err := look(h, path, false)
	if err == nil && s.special {
		err = &SpecialError{Path: path}
	}
	out = Looked{Entry: s.entry, Err: err}
	if s.writing {
		out.Writing = &FileID{s.info.Dev, s.info.Ino}
	}
	return out
}

// Dirs looks into many directories of a tree, of which it keeps some open: the time for paths
// that are next to each other is in proportion to their number, however deep they are. It is
// safe for concurrent use.
type Dirs struct{ h *handles }

// Dirs is to be closed.
func (t *Tree) Dirs() Dirs { return Dirs{newHandles(t.root)} }

// Close closes what is open.
func (d Dirs) Close() { d.h.close() }

// Stat is lstat of path. The errors are those of Look, and fs.ErrNotExist.
func (d Dirs) Stat(path tree.Path) (info disk.Info, err error) {
	err = d.in(path.Parent(), func(dir disk.Dir) error {
		info, err = dir.Stat(path.Name())
		return err
	})
	return info, err
}

// List lists the directory at path.
func (d Dirs) List(path tree.Path) (list []disk.Entry, err error) {
	err = d.in(path, func(dir disk.Dir) error {
		list, err = dir.List()
		return err
	})
	return list, err
}

func (d Dirs) in(path tree.Path, do func(disk.Dir) error) error {
	dir, err := d.h.dir(path)
	if errors.Is(err, errNoDir) {
		return &fs.PathError{Op: "open", Path: string(path), Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	defer dir.release()
	return do(dir)
}

// Read opens the regular file at path.
func (t *Tree) Read(path tree.Path) (io.ReadCloser, error) {
	if err := path.Check(); err != nil {
		return nil, err
	}
	h := newHandles(t.root)
	defer h.close()
	d, err := h.dir(path.Parent())
	if errors.Is(err, errNoDir) {
		return nil, &fs.PathError{Op: "open", Path: string(path), Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	defer d.release()
	if err := guard(d, path); err != nil {
		return nil, err
	}
	return d.Open(path.Name())
}

// state is what is at a path or in a slot.
type state struct {
	entry   *tree.Entry // nil: nothing, or special
	info    disk.Info
	special bool
	writing bool // somebody has it open for writing
}

func (s state) absent() bool { return s.entry == nil && !s.special }

// is says whether s is what e says, nil meaning absent.
func (s state) is(e *tree.Entry) bool {
	if e == nil || s.entry == nil {
		return e == nil && s.absent()
	}
	return s.entry.Same(*e)
}

// look returns the state of path. unlock lets it read a file of our own whose
// mode forbids it, as a transaction does that is under way, which does not ask who else writes.
func look(h *handles, path tree.Path, unlock bool) (state, error) {
	if err := path.Check(); err != nil {
		return state{}, err
	}
	d, err := h.dir(path.Parent())
	if errors.Is(err, errNoDir) {
		return state{}, nil
	}
	if err != nil {
		if link, ok := errors.AsType[*LinkError](err); ok {
			err = &LinkError{Path: path, At: link.At}
		}
		return state{}, err
	}
	defer d.release()
	name := path.Name()
	if err := guard(d, path); err != nil {
		return state{}, err
	}
	return entryAt(d, name, unlock)
}

// entryAt returns the state of one name, hashing a regular file; one that
// changes meanwhile is read again, three times.
func entryAt(d disk.Dir, name string, unlock bool) (state, error) {
	for range 3 {
		s, steady, err := entryOnce(d, name, unlock)
		if err != nil || steady {
			return s, err
		}
	}
	return state{}, &fs.PathError{Op: "read", Path: d.Path() + "/" + name, Err: errBusy}
}

func entryOnce(d disk.Dir, name string, unlock bool) (s state, steady bool, err error) {
	st, err := d.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, true, nil
	}
	if err != nil {
		return state{}, false, err
	}
	switch st.Kind {
	case disk.Directory:
		e := &tree.Entry{Type: tree.Dir, Mode: st.Mode}
		err := noteOwner(e, d, name, st)
		return state{entry: e, info: st}, true, err
	case disk.Symlink:
		target, err := d.Readlink(name)
		if err != nil {
			return state{}, false, unlessGone(d, name, err)
		}
		return state{entry: linkEntry(target), info: st}, true, nil
	case disk.Regular:
		return hashAt(d, name, st, unlock)
	}
	return state{info: st, special: true}, true, nil
}

func linkEntry(target string) *tree.Entry {
	return &tree.Entry{
		Type: tree.Symlink, Mode: 0o777, Target: target,
		Size: int64(len(target)), SHA256: tree.Sum([]byte(target)),
	}
}

// unlessGone forgives an error about an entry that has become another since it
// was looked at, so that it is looked at again.
func unlessGone(d disk.Dir, name string, err error) error {
	st, serr := d.Stat(name)
	if errors.Is(serr, fs.ErrNotExist) || serr == nil && st.Kind != disk.Symlink {
		return nil
	}
	return err
}

func hashAt(d disk.Dir, name string, st disk.Info, unlock bool) (state, bool, error) {
	f, err := openRead(d, name, st, unlock)
	if err != nil {
		now, serr := d.Stat(name)
		if errors.Is(serr, fs.ErrNotExist) || serr == nil && !now.SameFile(st) {
			return state{}, false, nil
		}
		return state{}, false, err
	}
	defer f.Close()
	writing := !unlock && f.BeingWritten()
	before, err := f.Stat()
	if err != nil {
		return state{}, false, err
	}
	sum, n, err := copyHash(nil, f, before.Size)
	if err != nil {
		return state{}, false, err
	}
	after, err := f.Stat()
	if err != nil {
		return state{}, false, err
	}
	steady := before.SameFile(st) && n == after.Size && unwritten(before, after)
	before.Mode = st.Mode
	e := &tree.Entry{SHA256: sum, Size: n, Mode: st.Mode}
	if err := noteOwner(e, d, name, st); err != nil {
		return state{}, false, err
	}
	return state{entry: e, info: before, writing: writing}, steady, nil
}

// noteOwner notes whose the file or directory e is, which is name in d, where that is to be recorded.
func noteOwner(e *tree.Entry, d disk.Dir, name string, st disk.Info) error {
	gid, usual, err := disk.GroupOf(d, name, st)
	if e.Mode&tree.SpecialBits != 0 || !usual {
		e.Owner = tree.Owner{UID: st.UID, GID: gid, Known: true}
	}
	return err
}

// openRead opens a file for reading. If its mode forbids that and it is ours,
// the mode is changed for the moment of opening.
func openRead(d disk.Dir, name string, st disk.Info, unlock bool) (disk.File, error) {
	f, err := d.Open(name)
	if err == nil || !unlock || st.Mode&0o400 != 0 || !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	if cerr := d.Chmod(name, st, st.Mode|0o400); cerr != nil {
		return nil, err
	}
	f, err = d.Open(name)
	if cerr := d.Chmod(name, st, st.Mode); cerr != nil && err == nil {
		f.Close()
		return nil, cerr
	}
	return f, err
}

// unwritten says that nobody wrote the file between the two looks. ctime is
// not compared: renaming changes it, and so does a link that comes or goes.
func unwritten(a, b disk.Info) bool {
	return a.SameFile(b) && a.Size == b.Size && a.Mtime == b.Mtime
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}

// copyHash copies r to w, if there is one, and returns the hash and the number
// of bytes. It reads no more than one byte beyond limit: what grows is not read
// for ever.
func copyHash(w io.Writer, r io.Reader, limit int64) (tree.Hash, int64, error) {
	sum := sha256.New()
	n, err := copyBytes(w, r, limit, sum)
	if err != nil {
		return tree.Hash{}, n, err
	}
	return tree.Hash(sum.Sum(nil)), n, nil
}

// copyBytes does that, and gives sum what it has read.
func copyBytes(w io.Writer, r io.Reader, limit int64, sum io.Writer) (n int64, err error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for n <= limit {
		k, err := r.Read((*buf)[:min(int64(len(*buf)), limit+1-n)])
		_, _ = sum.Write((*buf)[:k])
		n += int64(k)
		if w != nil && k > 0 {
			if _, werr := w.Write((*buf)[:k]); werr != nil {
				return n, werr
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
