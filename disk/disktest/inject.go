// Package disktest has disks for tests: one that fails or ends the "process" at
// the n-th step, and one in memory that forgets what was not flushed.
package disktest

import (
	"errors"
	"io/fs"
	"sync"
	"syscall"

	"decree/disk"
)

// ErrDead is what every step answers from the one on which the process died.
var ErrDead = errors.New("the process is dead")

// Step is one step on a disk, before it is made.
type Step struct {
	N     int    // from 0, in the order of the steps
	Op    string // the method: "Rename", "Sync", "Write", ...
	Path  string
	To    string // of a Rename, a RenameNew or a Link: where to
	Write bool   // changes the disk, or flushes it
	Size  int    // of a Write or a ReadAt, in bytes
	Off   int64  // of a ReadAt
}

// Action is what becomes of a step; the zero Action lets it happen.
type Action struct {
	Err error // the step is not made and returns Err
	// Die ends the process: the step is not made, and it and all later ones
	// return ErrDead. Of a Write the first Torn bytes are still written, of a
	// ReadAt that fails they are still read.
	Die  bool
	Torn int
}

// Unreadable is what becomes of a step on a disk that cannot read the sector around at of a file.
func Unreadable(s Step, path string, at int64) Action {
	const sector = 4 << 10
	from := at / sector * sector
	if s.Op != "ReadAt" || s.Path != path || s.Off+int64(s.Size) <= from || s.Off >= from+sector {
		return Action{}
	}
	return Action{Err: &fs.PathError{Op: "read", Path: path, Err: syscall.EIO}, Torn: int(max(0, from-s.Off))}
}

// Inject returns d with hook called before every step but Close and unlock,
// which a dying process does too, and StartSync, which nobody can rely on. Steps of several goroutines come one by one.
func Inject(d disk.Disk, hook func(Step) Action) disk.Disk {
	return &injected{d, &counter{hook: hook}}
}

// InjectDir does the same for a directory that is open already.
func InjectDir(d disk.Dir, hook func(Step) Action) disk.Dir {
	return &dir{d, &counter{hook: hook}}
}

// InjectDirs does it for several, with one count: the first step of any is 0.
func InjectDirs(hook func(Step) Action, dirs ...disk.Dir) []disk.Dir {
	c := &counter{hook: hook}
	out := make([]disk.Dir, len(dirs))
	for i, d := range dirs {
		out[i] = &dir{d, c}
	}
	return out
}

// Stamped returns d as a disk with another clock: a file's times are what stamp makes of them. Where
// that is nil no change time is kept but the one of the last write, as on FAT.
func Stamped(d disk.Disk, stamp func(int64) int64) disk.Disk {
	see := func(in *disk.Info) { in.Ctime = in.Mtime }
	if stamp != nil {
		see = func(in *disk.Info) { in.Mtime, in.Ctime = stamp(in.Mtime), stamp(in.Ctime) }
	}
	return &injected{d, &counter{hook: func(Step) Action { return Action{} }, see: see, bare: stamp == nil}}
}

type counter struct {
	mu   sync.Mutex
	n    int
	dead bool
	hook func(Step) Action
	see  func(*disk.Info) // what becomes of a file's facts; nil: nothing
	bare bool             // the file system keeps no change times
}

// seen has facts looked at.
func (c *counter) seen(in disk.Info, err error) (disk.Info, error) {
	if err == nil && c.see != nil {
		c.see(&in)
	}
	return in, err
}

// step asks the hook about the next step. torn is how much of a write happens
// although err says that the process died in it.
func (c *counter) step(op, path, to string, write bool, size int) (torn int, err error) {
	return c.take(Step{Op: op, Path: path, To: to, Write: write, Size: size})
}

func (c *counter) take(s Step) (torn int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return 0, ErrDead
	}
	s.N = c.n
	a := c.hook(s)
	c.n++
	switch {
	case a.Die:
		c.dead = true
		return min(a.Torn, s.Size), ErrDead
	case s.Op == "ReadAt" && a.Err != nil:
		return min(a.Torn, s.Size), a.Err
	}
	return 0, a.Err
}

// made makes a step that gives something, unless the hook refuses it.
func made[T any](c *counter, op, path string, write bool, step func() (T, error)) (out T, err error) {
	if _, err := c.step(op, path, "", write, 0); err != nil {
		return out, err
	}
	return step()
}

// done makes a step that changes the disk or flushes it.
func (c *counter) done(op, path string, step func() error) error { return c.moved(op, path, "", step) }

// moved makes a step that gives a file another name, or one more.
func (c *counter) moved(op, path, to string, step func() error) error {
	if _, err := c.step(op, path, to, true, 0); err != nil {
		return err
	}
	return step()
}

// torn makes a write, of which a dying process may write a part.
func (c *counter) torn(op, path string, p []byte, step func([]byte) (int, error)) (n int, err error) {
	torn, err := c.step(op, path, "", true, len(p))
	if err == nil {
		return step(p)
	}
	if torn > 0 {
		n, _ = step(p[:torn])
	}
	return n, err
}

func (c *counter) opened(op, path string, write bool, open func() (disk.Dir, error)) (disk.Dir, error) {
	d, err := made(c, op, path, write, open)
	if err != nil {
		return nil, err
	}
	return &dir{d, c}, nil
}

type injected struct {
	d disk.Disk
	c *counter
}

func (i *injected) OpenRoot(path string) (disk.Dir, error) {
	return i.c.opened("OpenRoot", path, false, func() (disk.Dir, error) { return i.d.OpenRoot(path) })
}

func (i *injected) OpenSearch(path string) (disk.Dir, error) {
	return i.c.opened("OpenSearch", path, false, func() (disk.Dir, error) { return i.d.OpenSearch(path) })
}

func (i *injected) MkdirAll(path string, perm uint32) (disk.Dir, error) {
	return i.c.opened("MkdirAll", path, true, func() (disk.Dir, error) { return i.d.MkdirAll(path, perm) })
}

// dir is an injected directory; what it does not override passes through.
type dir struct {
	disk.Dir
	c *counter
}

func (d *dir) at(name string) string { return d.Path() + "/" + name }

// inner is the directory below the wrapping, which the other disk knows.
func inner(d disk.Dir) disk.Dir {
	if w, ok := d.(*dir); ok {
		return w.Dir
	}
	return d
}

// named makes a step on a child that gives something.
func named[T any](d *dir, op, name string, step func(string) (T, error)) (T, error) {
	return made(d.c, op, d.at(name), false, func() (T, error) { return step(name) })
}

func (d *dir) Self() (disk.Info, error) {
	return d.c.seen(made(d.c, "Self", d.Path(), false, d.Dir.Self))
}

func (d *dir) FileSystem() disk.FileSystem {
	fs := d.Dir.FileSystem()
	fs.ChangeTimes, fs.Steady = fs.ChangeTimes && !d.c.bare, fs.Steady && !d.c.bare
	return fs
}
func (d *dir) Origin() (disk.Origin, error) {
	return made(d.c, "Origin", d.Path(), false, d.Dir.Origin)
}
func (d *dir) List() ([]disk.Entry, error) { return made(d.c, "List", d.Path(), false, d.Dir.List) }
func (d *dir) TryLock() (func() error, error) {
	return made(d.c, "TryLock", d.Path(), false, d.Dir.TryLock)
}
func (d *dir) Locked() (bool, error) { return made(d.c, "Locked", d.Path(), false, d.Dir.Locked) }
func (d *dir) Stat(name string) (disk.Info, error) {
	return d.c.seen(named(d, "Stat", name, d.Dir.Stat))
}
func (d *dir) Readlink(name string) (string, error) {
	return named(d, "Readlink", name, d.Dir.Readlink)
}
func (d *dir) Xattrs(name string) ([]disk.Xattr, error) {
	return named(d, "Xattrs", name, d.Dir.Xattrs)
}

func (d *dir) OpenDir(name string) (disk.Dir, error) {
	return d.c.opened("OpenDir", d.at(name), false, func() (disk.Dir, error) { return d.Dir.OpenDir(name) })
}

func (d *dir) file(op, name string, write bool, open func() (disk.File, error)) (disk.File, error) {
	f, err := made(d.c, op, d.at(name), write, open)
	if err != nil {
		return nil, err
	}
	return &file{f, d.c, d.at(name)}, nil
}

func (d *dir) Open(name string) (disk.File, error) {
	return d.file("Open", name, false, func() (disk.File, error) { return d.Dir.Open(name) })
}

func (d *dir) Create(name string, perm uint32) (disk.File, error) {
	return d.file("Create", name, true, func() (disk.File, error) { return d.Dir.Create(name, perm) })
}

func (d *dir) OpenWrite(name string, perm uint32) (disk.File, error) {
	return d.file("OpenWrite", name, true, func() (disk.File, error) { return d.Dir.OpenWrite(name, perm) })
}

func (d *dir) Mkdir(name string, perm uint32) error {
	return d.c.done("Mkdir", d.at(name), func() error { return d.Dir.Mkdir(name, perm) })
}

func (d *dir) Remove(name string) error {
	return d.c.done("Remove", d.at(name), func() error { return d.Dir.Remove(name) })
}

func (d *dir) Rmdir(name string) error {
	return d.c.done("Rmdir", d.at(name), func() error { return d.Dir.Rmdir(name) })
}

func (d *dir) Rename(old string, to disk.Dir, new string) error {
	return d.c.moved("Rename", d.at(old), to.Path()+"/"+new, func() error { return d.Dir.Rename(old, inner(to), new) })
}

func (d *dir) RenameNew(old string, to disk.Dir, new string) error {
	return d.c.moved("RenameNew", d.at(old), to.Path()+"/"+new, func() error { return d.Dir.RenameNew(old, inner(to), new) })
}

func (d *dir) Exchange(a string, to disk.Dir, b string) error {
	return d.c.done("Exchange", to.Path()+"/"+b, func() error { return d.Dir.Exchange(a, inner(to), b) })
}

func (d *dir) Link(old string, to disk.Dir, new string) error {
	return d.c.moved("Link", d.at(old), to.Path()+"/"+new, func() error { return d.Dir.Link(old, inner(to), new) })
}

func (d *dir) Symlink(target, name string) error {
	return d.c.done("Symlink", d.at(name), func() error { return d.Dir.Symlink(target, name) })
}

func (d *dir) Chmod(name string, is disk.Info, mode uint32) error {
	return d.c.done("Chmod", d.at(name), func() error { return d.Dir.Chmod(name, is, mode) })
}

func (d *dir) Chown(name string, is disk.Info, uid, gid uint32) error {
	return d.c.done("Chown", d.at(name), func() error { return d.Dir.Chown(name, is, uid, gid) })
}

func (d *dir) SetMtime(name string, is disk.Info, mtime int64) error {
	return d.c.done("SetMtime", d.at(name), func() error { return d.Dir.SetMtime(name, is, mtime) })
}

func (d *dir) SetXattr(name string, is disk.Info, x disk.Xattr) error {
	return d.c.done("SetXattr", d.at(name), func() error { return d.Dir.SetXattr(name, is, x) })
}

func (d *dir) Sync() error { return d.c.done("Sync", d.Path(), d.Dir.Sync) }

func (d *dir) SyncAll() func() error {
	all := d.Dir.SyncAll()
	if all == nil {
		return nil
	}
	return func() error { return d.c.done("SyncAll", d.Path(), all) }
}

// file is an injected file.
type file struct {
	disk.File
	c    *counter
	path string
}

func (f *file) Read(p []byte) (int, error) {
	return made(f.c, "Read", f.path, false, func() (int, error) { return f.File.Read(p) })
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	torn, err := f.c.take(Step{Op: "ReadAt", Path: f.path, Size: len(p), Off: off})
	if err == nil {
		return f.File.ReadAt(p, off)
	}
	if torn > 0 {
		n, _ = f.File.ReadAt(p[:torn], off)
	}
	return n, err
}

func (f *file) Write(p []byte) (int, error) { return f.c.torn("Write", f.path, p, f.File.Write) }

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return f.c.torn("WriteAt", f.path, p, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

func (f *file) Stat() (disk.Info, error) {
	return f.c.seen(made(f.c, "FileStat", f.path, false, f.File.Stat))
}

func (f *file) Truncate(size int64) error {
	return f.c.done("Truncate", f.path, func() error { return f.File.Truncate(size) })
}

func (f *file) Sync() error { return f.c.done("FileSync", f.path, f.File.Sync) }

func (f *file) Chmod(mode uint32) error {
	return f.c.done("FileChmod", f.path, func() error { return f.File.Chmod(mode) })
}

func (f *file) Chown(uid, gid uint32) error {
	return f.c.done("FileChown", f.path, func() error { return f.File.Chown(uid, gid) })
}

func (f *file) Map() (data []byte, release func() error, err error) {
	if _, err := f.c.step("Map", f.path, "", false, 0); err != nil {
		return nil, nil, err
	}
	return f.File.Map()
}
