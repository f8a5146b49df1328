package layer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"decree/disk"
	"decree/tree"
)

// CloneOptions say how a clone is made. An overlay has no use for them.
type CloneOptions struct {
	Context context.Context // nil: none ends it
	// Copy: what cannot be shared is copied in full. The caller has asked.
	Copy bool
	// Share are paths that the clone has as links to the root's own: what the run writes
	// there, it writes in the root.
	Share   []string
	Exclude []disk.Info // directories that are not cloned, by device and inode
	// Progress is called now and then with what is done, in entries.
	Progress func(entries int)
}

// A Survey is what a clone would have to take.
type Survey struct {
	Entries int
	Bytes   int64
	// Absolute are links whose text is a path in the root: in a clone they lead into the root
	// itself, and what is written through them is written there.
	Absolute []tree.Path
	Shared   []tree.Path // what of CloneOptions.Share is there
}

// Survey walks the root and counts.
func (p *Place) Survey(ctx context.Context, o CloneOptions) (Survey, error) {
	var s Survey
	real, err := filepath.EvalSymlinks(p.Root.Path())
	if err != nil {
		return s, err
	}
	err = o.survey(ctx, p.Root, "", []string{p.Root.Path(), real}, &s)
	slices.Sort(s.Absolute)
	slices.Sort(s.Shared)
	return s, err
}

// survey counts what is in a directory into s. roots are the paths that lead to the root.
func (o *CloneOptions) survey(ctx context.Context, d disk.Dir, path tree.Path, roots []string, s *Survey) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	list, err := d.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		at := path.Join(e.Name)
		in, err := look(d, e.Name)
		if err != nil {
			return err
		}
		if in == nil {
			continue
		}
		if slices.Contains(o.Share, string(at)) {
			s.Shared = append(s.Shared, at)
		}
		if o.leaves(at, in) {
			continue
		}
		s.Entries++
		switch in.Kind {
		case disk.Regular:
			s.Bytes += in.Size
		case disk.Symlink:
			target, err := d.Readlink(e.Name)
			if err == nil && slices.ContainsFunc(roots, func(r string) bool { return target == r || strings.HasPrefix(target, r+"/") }) {
				s.Absolute = append(s.Absolute, at)
			}
		case disk.Directory:
			sub, err := d.OpenDir(e.Name)
			if err != nil {
				if disk.UnlessMissingOrOther(err) == nil {
					continue
				}
				return err
			}
			err = o.survey(ctx, sub, at, roots, s)
			sub.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leaves says whether a clone leaves an entry out, or only links to it.
func (o *CloneOptions) leaves(path tree.Path, in *disk.Info) bool {
	return in.Kind == disk.Special || slices.Contains(o.Share, string(path)) || slices.ContainsFunc(o.Exclude, in.SameFile)
}

// cloning is the making of a clone.
type cloning struct {
	CloneOptions
	root  string
	mu    sync.Mutex // of what follows
	names *bufio.Writer
	done  int
	whole func(from, to string) error // clones a directory with all in it; nil: the system cannot
}

// tree clones the directory from as treeName of to: whole where the system can and nothing is
// left out, else file by file.
func (c *cloning) tree(from, to disk.Dir) error {
	self, err := from.Self()
	if err != nil {
		return err
	}
	if c.whole == nil || len(c.Share)+len(c.Exclude) > 0 {
		return c.dir(from, to, treeName, "", &self)
	}
	err = c.whole(from.Path(), filepath.Join(to.Path(), treeName))
	if errors.Is(err, errors.ErrUnsupported) {
		return c.dir(from, to, treeName, "", &self)
	}
	if err != nil {
		return err
	}
	made, err := to.OpenDir(treeName)
	if err != nil {
		return err
	}
	defer made.Close()
	return c.list(made, "")
}

// list notes what a clone of a whole directory has.
func (c *cloning) list(d disk.Dir, path tree.Path) error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	list, err := d.List()
	if err != nil {
		return err
	}
	for _, e := range list {
		at := path.Join(e.Name)
		if err := c.note(d, e.Name, at, ""); err != nil {
			return err
		}
		if e.Kind != disk.Directory {
			continue
		}
		sub, err := d.OpenDir(e.Name)
		if err != nil {
			return err
		}
		err = c.list(sub, at)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// clone makes tree and names, and reads the clock behind them.
func (l *Layer) clone(o CloneOptions) error {
	if o.Context == nil {
		o.Context = context.Background()
	}
	f, err := l.dir.Create(namesName, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	c := &cloning{CloneOptions: o, whole: cloneWhole, root: l.place.Root.Path(), names: bufio.NewWriter(f)}
	if err := l.dir.Mkdir(cloneName, 0o700); err != nil {
		return err
	}
	to, err := l.dir.OpenDir(cloneName)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := c.tree(l.place.Root, to); err != nil {
		return err
	}
	if err := c.names.Flush(); err != nil {
		return err
	}
	l.facts.Cloned, err = l.passTick()
	return err
}

// passTick waits until the clock of the layer's file system has moved on: what is written
// from now on has a later change time than the one that is returned.
func (l *Layer) passTick() (int64, error) {
	first, err := disk.Stamp(l.dir)
	for in := first; err == nil; in, err = disk.Stamp(l.dir) {
		if in.Ctime > first.Ctime {
			return first.Ctime, nil
		}
	}
	return 0, err
}

// dir clones a directory as name of to. Its files are cloned side by side.
func (c *cloning) dir(from, to disk.Dir, name string, path tree.Path, in *disk.Info) error {
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	if path != "" {
		if err := c.note(to, name, path, ""); err != nil {
			return err
		}
	}
	own, err := to.OpenDir(name)
	if err != nil {
		return err
	}
	defer own.Close()
	list, err := from.List()
	if err != nil {
		return err
	}
	dirs, err := c.files(from, own, path, list)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		sub, err := from.OpenDir(d)
		if err != nil {
			if disk.UnlessMissingOrOther(err) == nil {
				continue
			}
			return err
		}
		sin, err := sub.Self()
		if err == nil {
			err = c.dir(sub, own, d, path.Join(d), &sin)
		}
		sub.Close()
		if err != nil {
			return err
		}
	}
	if err := copyAttributes(from, own); err != nil {
		return err
	}
	made, err := to.Stat(name)
	if err == nil {
		err = to.Chmod(name, made, in.Mode)
	}
	if err != nil {
		return err
	}
	return to.SetMtime(name, made, in.Mtime)
}

// files clones all of a directory's entries but its directories, which it returns.
func (c *cloning) files(from, to disk.Dir, path tree.Path, list []disk.Entry) (dirs []string, err error) {
	group, ctx := errgroup.WithContext(c.Context)
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for _, e := range list {
		if ctx.Err() != nil {
			break
		}
		at := path.Join(e.Name)
		in, err := look(from, e.Name)
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		if in == nil {
			continue
		}
		if slices.Contains(c.Share, string(at)) {
			err := to.Symlink(filepath.Join(c.root, string(at)), e.Name)
			if err == nil {
				err = c.note(to, e.Name, at, sharedMark)
			}
			if err != nil {
				return nil, errors.Join(err, group.Wait())
			}
			continue
		}
		if c.leaves(at, in) {
			continue
		}
		if in.Kind == disk.Directory {
			dirs = append(dirs, e.Name)
			continue
		}
		group.Go(func() error {
			made, err := c.file(from, to, e.Name, at, in)
			if made && err == nil {
				err = c.note(to, e.Name, at, "")
			}
			return err
		})
	}
	return dirs, errors.Join(group.Wait(), c.Context.Err())
}

// sharedMark stands in names before the path of a link to the root's own. No path begins so.
const sharedMark = "/"

// note writes what was made as name of d into names: its inode, a blank, its path. An error
// of names is Flush's.
func (c *cloning) note(d disk.Dir, name string, path tree.Path, mark string) error {
	in, err := d.Stat(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.names, "%d %s%s\x00", in.Ino, mark, path)
	if c.done++; c.Progress != nil && c.done%1000 == 0 {
		c.Progress(c.done)
	}
	return nil
}

// file clones a regular file or a link. What is gone by now is not made.
func (c *cloning) file(from, to disk.Dir, name string, path tree.Path, in *disk.Info) (made bool, err error) {
	if in.Kind == disk.Symlink {
		target, err := from.Readlink(name)
		if err != nil {
			return false, disk.UnlessMissingOrOther(err)
		}
		if err := to.Symlink(target, name); err != nil {
			return false, err
		}
		is, err := to.Stat(name)
		if err != nil {
			return false, err
		}
		return true, to.SetMtime(name, is, in.Mtime)
	}
	r, err := from.Open(name)
	if err != nil {
		return false, disk.UnlessMissingOrOther(err)
	}
	defer r.Close()
	is, err := share(r, to, name)
	if errors.Is(err, errors.ErrUnsupported) {
		if !c.Copy {
			return false, fmt.Errorf("%s: its content cannot be shared with the layer, and --copy was not given", tree.Quote(path))
		}
		is, err = copyFile(r, to, name)
	}
	if err != nil {
		return false, err
	}
	return true, rights(from, r, to, name, &is, in.Mtime)
}

// rights gives a clone, which is name of to, what is not its content: attributes, mode and mtime. The owner is
// whoever makes the clone.
func rights(from disk.Dir, r disk.File, to disk.Dir, name string, is *disk.Info, mtime int64) error {
	was, err := r.Stat() // of the file that was read, and after that: a write takes set-user-ID away
	if err != nil {
		return err
	}
	xattrs, err := from.Xattrs(name)
	if disk.UnlessMissingOrOther(err) != nil {
		return err
	}
	now, err := look(from, name)
	if err != nil {
		return err
	}
	for _, x := range xattrs {
		if x.Name == disk.Capability && (now == nil || *now != was) {
			continue // it may be that of another file, which stood there for a moment
		}
		_ = to.SetXattr(name, *is, x) // some are the system's alone
	}
	if err := to.Chmod(name, *is, clonedMode(&was, is)); err != nil {
		return err
	}
	return to.SetMtime(name, *is, mtime)
}

// clonedMode is the mode of a file's clone: without set-user-ID where it has another owner, and without
// set-group-ID where it has another group. They would give the rights of whoever makes the clone.
func clonedMode(was, is *disk.Info) uint32 {
	mode := was.Mode
	if was.UID != is.UID {
		mode &^= 0o4000
	}
	if was.GID != is.GID {
		mode &^= 0o2000
	}
	return mode
}

// copyFile copies a content in full; the system does it itself where it can.
func copyFile(r disk.File, to disk.Dir, name string) (made disk.Info, err error) {
	if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a sharing that was refused
		return made, err
	}
	w, err := to.Create(name, 0o600)
	if err != nil {
		return made, err
	}
	if err = disk.Copy(w, r); err == nil {
		made, err = w.Stat()
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return made, err
}

// cloned tells what of a clone the run may have touched.
type cloned struct {
	layer *Layer
	// steady is disk.FileSystem's. On a union of directories as mergerfs a directory shows the times of one of them alone.
	steady bool
	at     int64                // the last moment of the cloning
	failed error                // of neverHad; the walk ends with it
	names  map[tree.Path]uint64 // the inode of each path that was made, with sharedMark before links; nil until it is needed
}

// touched says whether the run may have changed an entry of the clone. Either its change time is
// later than the cloning, or it is not what was cloned to this path, which the inodes tell: a thing
// in a directory that was moved here keeps its old change time, and on some file systems so
// does what was moved itself. Where no name of a directory was made or taken away since the
// cloning, which its change time tells on a steady file system, the inodes need not be compared.
func (c *cloned) touched(l *level, e *entry) (bool, error) {
	if e.has == nil {
		e.new = true
		if e.had == nil || l.kept {
			return false, nil
		}
		ino, err := c.made(e.path)
		return ino != 0, err
	}
	e.new = e.has.Ctime > c.at
	if !e.new && !l.kept {
		ino, err := c.made(e.path)
		if err == nil && ino == 0 {
			ino, err = c.made(sharedMark + e.path)
		}
		if err != nil {
			return false, err
		}
		e.new = ino != e.has.Ino
	}
	return e.new || e.has.Kind == disk.Directory, nil
}

// neverHad says whether the clone was made with nothing at a path. dirThere: the root has the directory above it; where that was cloned
// and is gone, somebody has changed the place since.
func (c *cloned) neverHad(path tree.Path, dirThere bool) bool {
	if c == nil {
		return false
	}
	ino, err := c.made(path)
	if err == nil && ino == 0 && !dirThere {
		ino, err = c.made(path.Parent())
	}
	if err != nil {
		c.failed = err
	}
	return err == nil && ino == 0
}

// keeps says of a directory of the clone whether it is known that no name in it was made or taken away since the cloning.
func (c *cloned) keeps(e *entry) bool { return c != nil && c.steady && !e.new }

// gone counts what was cloned below a path, and is there no more: the directory that has the name in above is at that path.
func (c *cloned) gone(above disk.Dir, name string, at tree.Path) (n int, err error) {
	if _, err := c.made(at); err != nil {
		return 0, err
	}
	there := map[tree.Path]bool{}
	var unseen []tree.Path // nobody knows what is below
	var list func(above disk.Dir, name string, at tree.Path) error
	list = func(above disk.Dir, name string, at tree.Path) error {
		there[at] = true
		dir, err := above.OpenDir(name)
		if err != nil {
			unseen = append(unseen, at)
			return nil //nolint:nilerr // it is only counted
		}
		defer dir.Close()
		entries, err := dir.List()
		if errors.Is(err, fs.ErrPermission) {
			unseen = append(unseen, at)
			return nil
		}
		for _, e := range entries {
			if there[at.Join(e.Name)] = true; e.Kind == disk.Directory && err == nil {
				err = list(dir, e.Name, at.Join(e.Name))
			}
		}
		return err
	}
	err = list(above, name, at)
	for path := range c.names {
		if path.Within(at) && !there[path] && (len(unseen) == 0 || !path.Within(unseen...)) {
			n++
		}
	}
	return n, err
}

// made is the inode of the path as it was cloned, 0 for none.
func (c *cloned) made(path tree.Path) (uint64, error) {
	if c.names != nil {
		return c.names[path], nil
	}
	f, err := c.layer.dir.Open(namesName)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	c.names = map[tree.Path]uint64{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(b), "\x00"), "\x00") {
		text, name, _ := strings.Cut(line, " ")
		ino, err := strconv.ParseUint(text, 10, 64)
		if err != nil && line != "" {
			return 0, fmt.Errorf("%s/%s: %q: not what was written there", c.layer.Path(), namesName, line)
		}
		c.names[tree.Path(name)] = ino
	}
	return c.names[path], nil
}
