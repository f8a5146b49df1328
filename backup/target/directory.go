package target

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/tree"
)

const (
	privateDir  = 0o700
	privateFile = 0o600
)

// Directory is a target in the file system. Links below it are never followed.
type Directory struct {
	disk disk.Disk
	name string
	dir  disk.Dir
	heir bool // see Options.ForOwner
}

// OpenDirectory opens the directory at path, absolute. With create a missing one is made, private;
// without, and where something on the way is missing that create may not make up for, it is ErrGone.
func OpenDirectory(d disk.Disk, path string, create bool) (*Directory, error) {
	dir, err := d.OpenRoot(path)
	if isMissing(err) && create {
		dir, err = d.MkdirAll(path, privateDir)
	}
	if isMissing(err) {
		return nil, fmt.Errorf("%s: %w: there is no such directory", path, ErrGone)
	}
	if err != nil {
		return nil, err
	}
	return &Directory{disk: d, name: path, dir: dir}, nil
}

func openDirectory(d disk.Disk, o Options) (Target, error) {
	t, err := OpenDirectory(d, o.To, o.Create)
	if err != nil || !o.ForOwner {
		return t, err
	}
	t.heir = true
	return t, disk.ForItsOwner(t.dir)
}

func (t *Directory) String() string { return t.name }

// Close releases the directory.
func (t *Directory) Close() error { return t.dir.Close() }

// Place is where the directory is.
func (t *Directory) Place() (path string, dev, ino uint64, err error) {
	self, err := t.dir.Self()
	return t.dir.Path(), self.Dev, self.Ino, err
}

// absent says what becomes of a directory that is missing on the way to a name.
type absent int

const (
	isError   absent = iota
	isMade           // for what need not be durable
	isFlushed        // it is made, and its name flushed
)

// parent opens the directory that name lies in, and returns the last component.
func (t *Directory) parent(name string, missing absent) (disk.Dir, string, error) {
	if err := CheckName(name); err != nil {
		return nil, "", err
	}
	dir, err := t.open(path.Dir(name), missing)
	return dir, path.Base(name), err
}

// open opens a directory below the target's; "." and "" are the target's own.
func (t *Directory) open(name string, missing absent) (disk.Dir, error) {
	at := t.dir
	if name == "." || name == "" {
		dir, err := t.disk.OpenRoot(t.name)
		if err == nil && t.heir {
			err = disk.ForItsOwner(dir)
		}
		return dir, err
	}
	for part := range strings.SplitSeq(name, "/") {
		next, err := at.OpenDir(part)
		if missing != isError && isMissing(err) {
			next, err = makeDir(at, part, missing == isFlushed)
		}
		if at != t.dir {
			at.Close()
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func makeDir(in disk.Dir, name string, flush bool) (disk.Dir, error) {
	if err := in.Mkdir(name, privateDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	is, err := in.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := in.Chmod(name, is, privateDir); err != nil {
		return nil, err
	}
	if flush {
		if err := in.Sync(); err != nil {
			return nil, err
		}
	}
	return in.OpenDir(name)
}

// Top lists the directory itself.
func (t *Directory) Top(context.Context) (names []string, err error) {
	dir, err := t.open("", isError)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.List()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if CheckName(e.Name) != nil {
			continue
		}
		if st, err := dir.Stat(e.Name); err == nil && st.Kind == disk.Directory { // else it is gone
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// List walks what lies below the last directory that prefix names whole.
func (t *Directory) List(ctx context.Context, prefix string, each func(Object) error) error {
	at := strings.TrimSuffix(prefix[:strings.LastIndexByte(prefix, '/')+1], "/")
	dir, err := t.open(at, isError)
	if err != nil {
		return disk.UnlessMissingOrOther(err)
	}
	defer dir.Close()
	return list(ctx, dir, at, prefix, each)
}

func list(ctx context.Context, dir disk.Dir, at, prefix string, each func(Object) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := dir.List()
	if isMissing(err) { // it was removed since it was opened
		return nil
	}
	if err != nil {
		return err
	}
	infos := make(map[string]disk.Info, len(entries))
	var names []string // a directory's with the '/' that its names go on with, so that all come in byte order
	for _, e := range entries {
		st, err := dir.Stat(e.Name)
		if isMissing(err) || strings.HasPrefix(e.Name, Unfinished) {
			continue
		}
		if err != nil {
			return err
		}
		key := e.Name
		if st.Kind == disk.Directory {
			key += "/"
		} else if st.Kind != disk.Regular {
			continue
		}
		infos[key] = st
		names = append(names, key)
	}
	slices.Sort(names)
	for _, key := range names {
		full := path.Join(at, key)
		if err := listOne(ctx, dir, key, full, prefix, infos[key], each); err != nil {
			return err
		}
	}
	return nil
}

func listOne(ctx context.Context, dir disk.Dir, key, full, prefix string, st disk.Info, each func(Object) error) error {
	name, below := strings.CutSuffix(key, "/")
	switch {
	case below && (strings.HasPrefix(full+"/", prefix) || strings.HasPrefix(prefix, full+"/")):
		sub, err := dir.OpenDir(name)
		if isMissing(err) { // another backup, of whichever project, has removed or exchanged it
			return nil
		}
		if err != nil {
			return err
		}
		defer sub.Close()
		return list(ctx, sub, full, prefix, each)
	case !below && strings.HasPrefix(full, prefix):
		return each(Object{full, st.Size})
	}
	return nil
}

// Open opens a file.
func (t *Directory) Open(_ context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	dir, base, err := t.parent(name, isError)
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	f, err := dir.Open(base)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && offset > 0 {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	if length < 0 {
		return f, st.Size, nil
	}
	return &limited{io.LimitReader(f, length), f}, st.Size, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// Create begins a file.
func (t *Directory) Create(_ context.Context, near string) (Upload, error) {
	dir, _, err := t.parent(near, isFlushed)
	if err != nil {
		return nil, err
	}
	u := &fileUpload{dir: dir, at: path.Dir(near), temp: Unfinished + rand.Text()}
	if u.File, err = disk.CreateFile(dir, u.temp, privateFile); err != nil {
		dir.Close()
		return nil, err
	}
	return u, nil
}

// fileUpload is a file that has no name of its own yet.
type fileUpload struct {
	disk.File // nil once it has ended
	dir       disk.Dir
	at, temp  string
}

func (u *fileUpload) Commit(_ context.Context, name string) error {
	err := CheckName(name)
	if err == nil && path.Dir(name) != u.at {
		err = &nameError{name, "not beside the name that it was begun for"}
	}
	if err == nil {
		err = u.Sync()
	}
	err = cmp.Or(err, u.File.Close())
	u.File = nil
	if err == nil {
		err = u.dir.RenameNew(u.temp, u.dir, path.Base(name))
	}
	if err != nil {
		_ = u.dir.Remove(u.temp)
	} else {
		err = u.dir.Sync()
	}
	u.dir.Close()
	return err
}

func (u *fileUpload) Abort() error {
	if u.File == nil {
		return nil
	}
	u.File.Close()
	u.File = nil
	defer u.dir.Close()
	return u.dir.Remove(u.temp)
}

// Read reads a file.
func (t *Directory) Read(ctx context.Context, name string, limit int64) ([]byte, Version, error) {
	r, size, err := t.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, "", disk.UnlessMissing(err)
	}
	defer r.Close()
	data, err := readSmall(r, size, name, limit)
	if err != nil {
		return nil, "", err
	}
	return data, versionOf(data), nil
}

func versionOf(data []byte) Version { return Version(tree.Sum(data).String()) }

// Swap replaces a file while it holds a lock on its directory, which all who use Swap take.
func (t *Directory) Swap(ctx context.Context, name string, data []byte, was Version) (Version, error) {
	dir, base, err := t.parent(name, isFlushed)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	unlock, err := disk.LockWithin(ctx, dir, 5*time.Millisecond, disk.NoLimit) // it is held for moments alone
	if err != nil {
		return "", err
	}
	defer func() { _ = unlock() }()
	_, now, err := t.Read(ctx, name, 1<<40)
	if err != nil {
		return "", err
	}
	want := versionOf(data)
	if now == want {
		return want, nil
	}
	if now != was {
		return "", fmt.Errorf("%s: %w", name, ErrConflict)
	}
	err = disk.Replace(dir, base, disk.Replacement{Perm: privateFile, Flush: true, Temp: Unfinished + base}, disk.Content(data))
	return want, err
}

// Lock locks the directory of unfinished uploads that prefix has for that.
func (t *Directory) Lock(_ context.Context, prefix string) (func() error, error) {
	dir, err := t.open(path.Join(prefix, lockName), isFlushed)
	if err != nil {
		return nil, err
	}
	unlock, err := dir.TryLock()
	if err != nil {
		dir.Close()
		if errors.Is(err, disk.ErrLocked) {
			err = fmt.Errorf("%s: %w", t.name, ErrLocked)
		}
		return nil, err
	}
	return func() error { return errors.Join(unlock(), dir.Close()) }, nil
}

// lockName is the directory that is locked. Like all that is unfinished it is in no list.
const lockName = Unfinished + "lock"

// Delete removes a file.
func (t *Directory) Delete(_ context.Context, name string) error {
	dir, base, err := t.parent(name, isError)
	if err == nil {
		defer dir.Close()
		err = dir.Remove(base)
	}
	return disk.UnlessMissing(err)
}

// Tidy removes unfinished files. The caller has the lock of prefix, so that nobody works on them.
func (t *Directory) Tidy(ctx context.Context, prefix string) error {
	dir, err := t.open(strings.TrimSuffix(prefix, "/"), isError)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer dir.Close()
	return tidy(ctx, dir)
}

func tidy(ctx context.Context, dir disk.Dir) error {
	entries, err := dir.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		st, err := dir.Stat(e.Name)
		switch {
		case isMissing(err), err == nil && e.Name == lockName:
			continue
		case err != nil:
			return err
		case strings.HasPrefix(e.Name, Unfinished):
			err = disk.RemoveTree(dir, e.Name)
		case st.Kind == disk.Directory:
			var sub disk.Dir
			if sub, err = dir.OpenDir(e.Name); err == nil {
				err = tidy(ctx, sub)
				sub.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Clear removes a directory.
func (t *Directory) Clear(_ context.Context, name string) error {
	dir, base, err := t.parent(name, isError)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer dir.Close()
	return disk.RemoveTree(dir, base)
}

// Write writes a file without flushing it.
func (t *Directory) Write(_ context.Context, name string, r io.Reader) error {
	dir, base, err := t.parent(name, isMade)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := disk.CreateFile(dir, base, privateFile)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return cmp.Or(err, f.Close())
}

// Link makes a hard link.
func (t *Directory) Link(_ context.Context, old, name string) error {
	from, was, err := t.parent(old, isError)
	if err != nil {
		return err
	}
	defer from.Close()
	to, base, err := t.parent(name, isMade)
	if err != nil {
		return err
	}
	defer to.Close()
	return from.Link(was, to, base)
}

// Exchange exchanges two directories, or renames the first where the second is missing.
func (t *Directory) Exchange(_ context.Context, name, with string) error {
	from, a, err := t.parent(name, isError)
	if err != nil {
		return err
	}
	defer from.Close()
	to, b, err := t.parent(with, isFlushed)
	if err != nil {
		return err
	}
	defer to.Close()
	err = from.RenameNew(a, to, b)
	if errors.Is(err, fs.ErrExist) {
		err = from.Exchange(a, to, b)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = t.turn(from, a, to, b)
	}
	if err == nil {
		err = to.Sync()
	}
	return err
}

// turn exchanges by three renames where the system cannot do it in one.
func (t *Directory) turn(from disk.Dir, a string, to disk.Dir, b string) error {
	away := Unfinished + b
	if err := disk.RemoveTree(to, away); err != nil {
		return err
	}
	if err := to.RenameNew(b, to, away); err != nil {
		return err
	}
	if err := from.RenameNew(a, to, b); err != nil {
		return err
	}
	return to.RenameNew(away, from, a)
}
