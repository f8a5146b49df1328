package layer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"syscall"

	"decree/disk"
	"decree/tree"
)

// Writer stores contents; *store.Writer is one.
type Writer interface {
	// PutFile reads f to its end, stores it, and returns the hash and the length read.
	PutFile(f io.Reader, size int64) (tree.Hash, int64, error)
	PutBytes(b []byte) (tree.Hash, error)
}

// CollectOptions say where contents go.
type CollectOptions struct {
	ChangeOptions
	Writer Writer
}

// A Touched is a path with what it was when the run began and what the run made of it; the
// contents of both are stored.
type Touched struct {
	tree.Change
	// NoBase: what it was is not known, as it was changed since, or cannot be read. Old is
	// what the root had when it was looked at, which nobody may overwrite unasked.
	NoBase bool
}

// Collected is all that the layer's run did, in byte order of the paths.
type Collected struct {
	Touched []Touched
	Unread  []tree.Path // files of the layer that could not be read, or are deleted in it and cannot be read in the root; of directories, see Tally
	Tally   Tally
	NoRoom  bool // Tally.Large are those that the caller's disk has no room for
	// Unflushed is why what the run has done in .git, which nothing but the layer has, is not durable.
	Unflushed error
}

// Changes are the changes of all paths, and the paths without a base. What the root has by
// now as the run made it is none.
func (out *Collected) Changes() (all []tree.Change, noBase []tree.Path) {
	for _, t := range out.Touched {
		if tree.SameEntry(t.Old, t.New) {
			continue
		}
		all = append(all, t.Change)
		if t.NoBase {
			noBase = append(noBase, t.Path)
		}
	}
	return all, noBase
}

// Unrecorded are the paths of which it is not known what the run did, and those of what it wrote in a .decree, in byte order.
func (out *Collected) Unrecorded() []tree.Path {
	paths := slices.Concat(out.Unread, out.Tally.Unread, out.Tally.Large, out.Tally.Wrote)
	slices.Sort(paths)
	return paths
}

// Collect reads and stores what the layer has changed, and what that was before. What was
// written and is as it was when the run began is left out. No process may work in the layer:
// what the kernel has left of the mount goes, as its owner may not even look into it.
//
// Somebody may move what is in the root out from under the walk, which is then made again.
func (l *Layer) Collect(ctx context.Context, o CollectOptions) (*Collected, error) {
	_ = disk.RemoveTree(l.dir, workName)
	for tries := 1; ; tries++ {
		out, err := l.collect(ctx, o)
		raced := errors.Is(err, fs.ErrNotExist) || disk.OtherKind(err)
		if raced && tries < maxCollects {
			continue
		}
		if err == nil && out.Tally.Git > 0 {
			out.Unflushed = l.flushGit(ctx)
		}
		return out, err
	}
}

// maxCollects is how often a walk is made while the root changes under each.
const maxCollects = 20

func (l *Layer) collect(ctx context.Context, o CollectOptions) (*Collected, error) {
	out := &Collected{}
	var err error
	out.Tally, err = l.Changes(ctx, o.ChangeOptions, func(c *Change) error { return out.add(c, o) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out.Touched, func(a, b Touched) int { return a.Path.Compare(b.Path) })
	slices.Sort(out.Unread)
	return out, nil
}

func (out *Collected) add(c *Change, o CollectOptions) error {
	after, err := read(o.Writer, c.To(), c.Name(), c.After)
	if unreadable(err) {
		out.Unread = append(out.Unread, c.Path)
		return nil
	}
	if err != nil {
		return err
	}
	t := Touched{Change: tree.Change{Path: c.Path, New: after}}
	t.Old, err = read(o.Writer, c.From(), c.Name(), c.Before)
	if err != nil && !unreadable(err) {
		return err
	}
	if c.Equal && t.Old != nil && t.Old.SHA256 == t.New.SHA256 {
		t.New = t.Old // a clone may lack set-user-ID
	}
	ok, serr := c.Settled()
	if serr != nil {
		return serr
	}
	if !ok || err != nil {
		if err := t.assume(c); err != nil {
			return err
		}
	}
	if err != nil && t.New == nil { // nobody can tell what was deleted
		out.Unread = append(out.Unread, c.Path)
		return nil
	}
	if !t.NoBase && tree.SameEntry(t.Old, t.New) {
		return nil
	}
	out.Touched = append(out.Touched, t)
	return nil
}

// assume gives a path that is not settled the base that is known from elsewhere. A file that
// was written since, and is as it was, has none all the same: the run may have seen what it
// was in between.
func (t *Touched) assume(c *Change) error {
	if c.w.neverHad(c.l.seen, c.Path) {
		t.Old = nil
		return nil
	}
	t.NoBase = true
	if ok, err := c.sameRules(); !ok || err != nil {
		return err
	}
	was, ok := c.was()
	if !ok || was != nil && was.Type != tree.Dir && t.Old != nil && t.Old.Same(*was) && !c.aged() {
		return nil
	}
	t.Old, t.NoBase = was, false
	return nil
}

// unreadable says that one path cannot be read, or is another thing by now; all else is
// the machine's trouble.
func unreadable(err error) bool {
	for _, e := range []error{fs.ErrPermission, fs.ErrNotExist, disk.ErrNotRegular, syscall.ELOOP, syscall.ENOTDIR, syscall.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// beingWritten says whether somebody has the file name open for writing, or mapped so: a mapping
// that was first written to before the run can have changed it since, at its old change time.
func beingWritten(d disk.Dir, name string, in *disk.Info) (bool, error) {
	if in == nil || in.Kind != disk.Regular {
		return false, nil
	}
	f, err := d.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return f.BeingWritten(), nil
}

// read stores what in says name is, and returns its facts; nil for nothing.
func read(w Writer, d disk.Dir, name string, in *disk.Info) (*tree.Entry, error) {
	if in == nil {
		return nil, nil
	}
	e := &tree.Entry{Mode: in.Mode}
	switch in.Kind {
	case disk.Directory:
		e.Type = tree.Dir
		return e, nil
	case disk.Symlink:
		target, err := d.Readlink(name)
		if err != nil {
			return nil, err
		}
		e.Type, e.Mode, e.Target, e.Size = tree.Symlink, 0o777, target, int64(len(target))
		e.SHA256, err = w.PutBytes([]byte(target))
		return e, err
	}
	gid, usual, err := disk.GroupOf(d, name, *in)
	if e.Special() || !usual {
		e.Owner = tree.Owner{UID: in.UID, GID: gid, Known: true}
	}
	if err != nil {
		return nil, err
	}
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e.SHA256, e.Size, err = w.PutFile(f, in.Size)
	return e, err
}
