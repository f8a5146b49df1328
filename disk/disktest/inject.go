// Package disktest has disks for tests: one that fails or ends the "process" at
// the n-th step, and one in memory that forgets what was not flushed.
package disktest

import (
	"errors"
	"sync"

	"decree/disk"
)

// ErrDead is what every step answers from the one on which the process died.
var ErrDead = errors.New("the process is dead")

// Step is one step on a disk, before it is made.
type Step struct {
	N     int    // from 0, in the order of the steps
	Op    string // the method: "Rename", "Sync", "Write", ...
	Path  string
	Write bool // changes the disk, or flushes it
	Size  int  // of a Write, in bytes
}

// Action is what becomes of a step; the zero Action lets it happen.
type Action struct {
	Err error // the step is not made and returns Err
	// Die ends the process: the step is not made, and it and all later ones
	// return ErrDead. Of a Write the first Torn bytes are still written.
	Die  bool
	Torn int
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

type counter struct {
	mu   sync.Mutex
	n    int
	dead bool
	hook func(Step) Action
}

// step asks the hook about the next step. torn is how much of a write happens
// although err says that the process died in it.
func (c *counter) step(op, path string, write bool, size int) (torn int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return 0, ErrDead
	}
	a := c.hook(Step{N: c.n, Op: op, Path: path, Write: write, Size: size})
	c.n++
	if a.Die {
		c.dead = true
		return min(a.Torn, size), ErrDead
	}
	return 0, a.Err
}

func (c *counter) read(op, path string) error  { _, err := c.step(op, path, false, 0); return err }
func (c *counter) write(op, path string) error { _, err := c.step(op, path, true, 0); return err }

type injected struct {
	d disk.Disk
	c *counter
}

func (i *injected) OpenRoot(path string) (disk.Dir, error) {
	if err := i.c.read("OpenRoot", path); err != nil {
		return nil, err
	}
	return i.c.dir(i.d.OpenRoot(path))
}

func (i *injected) OpenSearch(path string) (disk.Dir, error) {
	if err := i.c.read("OpenSearch", path); err != nil {
		return nil, err
	}
	return i.c.dir(i.d.OpenSearch(path))
}

func (i *injected) MkdirAll(path string, perm uint32) (disk.Dir, error) {
	if err := i.c.write("MkdirAll", path); err != nil {
		return nil, err
	}
	return i.c.dir(i.d.MkdirAll(path, perm))
}

func (c *counter) dir(d disk.Dir, err error) (disk.Dir, error) {
	if err != nil {
		return nil, err
	}
	return &dir{d, c}, nil
}

func (c *counter) file(path string, f disk.File, err error) (disk.File, error) {
	if err != nil {
		return nil, err
	}
	return &file{f, c, path}, nil
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

func (d *dir) Self() (disk.Info, error) {
	if err := d.c.read("Self", d.Path()); err != nil {
		return disk.Info{}, err
	}
	return d.Dir.Self()
}

func (d *dir) Origin() (disk.Origin, error) {
	if err := d.c.read("Origin", d.Path()); err != nil {
		return disk.Origin{}, err
	}
	return d.Dir.Origin()
}

func (d *dir) Stat(name string) (disk.Info, error) {
	if err := d.c.read("Stat", d.at(name)); err != nil {
		return disk.Info{}, err
	}
	return d.Dir.Stat(name)
}

func (d *dir) List() ([]disk.Entry, error) {
	if err := d.c.read("List", d.Path()); err != nil {
		return nil, err
	}
	return d.Dir.List()
}

func (d *dir) Open(name string) (disk.File, error) {
	if err := d.c.read("Open", d.at(name)); err != nil {
		return nil, err
	}
	f, err := d.Dir.Open(name)
	return d.c.file(d.at(name), f, err)
}

func (d *dir) OpenDir(name string) (disk.Dir, error) {
	if err := d.c.read("OpenDir", d.at(name)); err != nil {
		return nil, err
	}
	return d.c.dir(d.Dir.OpenDir(name))
}

func (d *dir) Create(name string, perm uint32) (disk.File, error) {
	if err := d.c.write("Create", d.at(name)); err != nil {
		return nil, err
	}
	f, err := d.Dir.Create(name, perm)
	return d.c.file(d.at(name), f, err)
}

func (d *dir) OpenWrite(name string, perm uint32) (disk.File, error) {
	if err := d.c.write("OpenWrite", d.at(name)); err != nil {
		return nil, err
	}
	f, err := d.Dir.OpenWrite(name, perm)
	return d.c.file(d.at(name), f, err)
}

func (d *dir) Mkdir(name string, perm uint32) error {
	if err := d.c.write("Mkdir", d.at(name)); err != nil {
		return err
	}
	return d.Dir.Mkdir(name, perm)
}

func (d *dir) Remove(name string) error {
	if err := d.c.write("Remove", d.at(name)); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

func (d *dir) Rmdir(name string) error {
	if err := d.c.write("Rmdir", d.at(name)); err != nil {
		return err
	}
	return d.Dir.Rmdir(name)
}

func (d *dir) Rename(old string, to disk.Dir, new string) error {
	if err := d.c.write("Rename", d.at(old)); err != nil {
		return err
	}
	return d.Dir.Rename(old, inner(to), new)
}

func (d *dir) RenameNew(old string, to disk.Dir, new string) error {
	if err := d.c.write("RenameNew", d.at(old)); err != nil {
		return err
	}
	return d.Dir.RenameNew(old, inner(to), new)
}

func (d *dir) Exchange(a string, to disk.Dir, b string) error {
	if err := d.c.write("Exchange", to.Path()+"/"+b); err != nil {
		return err
	}
	return d.Dir.Exchange(a, inner(to), b)
}

func (d *dir) Link(old string, to disk.Dir, new string) error {
	if err := d.c.write("Link", d.at(old)); err != nil {
		return err
	}
	return d.Dir.Link(old, inner(to), new)
}

func (d *dir) Symlink(target, name string) error {
	if err := d.c.write("Symlink", d.at(name)); err != nil {
		return err
	}
	return d.Dir.Symlink(target, name)
}

func (d *dir) Readlink(name string) (string, error) {
	if err := d.c.read("Readlink", d.at(name)); err != nil {
		return "", err
	}
	return d.Dir.Readlink(name)
}

func (d *dir) Chmod(name string, mode uint32) error {
	if err := d.c.write("Chmod", d.at(name)); err != nil {
		return err
	}
	return d.Dir.Chmod(name, mode)
}

func (d *dir) Chown(name string, uid, gid uint32) error {
	if err := d.c.write("Chown", d.at(name)); err != nil {
		return err
	}
	return d.Dir.Chown(name, uid, gid)
}

func (d *dir) SetMtime(name string, mtime int64) error {
	if err := d.c.write("SetMtime", d.at(name)); err != nil {
		return err
	}
	return d.Dir.SetMtime(name, mtime)
}

func (d *dir) Xattrs(name string) ([]disk.Xattr, error) {
	if err := d.c.read("Xattrs", d.at(name)); err != nil {
		return nil, err
	}
	return d.Dir.Xattrs(name)
}

func (d *dir) SetXattr(name string, x disk.Xattr) error {
	if err := d.c.write("SetXattr", d.at(name)); err != nil {
		return err
	}
	return d.Dir.SetXattr(name, x)
}

func (d *dir) Sync() error {
	if err := d.c.write("Sync", d.Path()); err != nil {
		return err
	}
	return d.Dir.Sync()
}

func (d *dir) TryLock() (func() error, error) {
	if err := d.c.read("TryLock", d.Path()); err != nil {
		return nil, err
	}
	return d.Dir.TryLock()
}

func (d *dir) Locked() (bool, error) {
	if err := d.c.read("Locked", d.Path()); err != nil {
		return false, err
	}
	return d.Dir.Locked()
}

// file is an injected file.
type file struct {
	disk.File
	c    *counter
	path string
}

func (f *file) Read(p []byte) (int, error) {
	if err := f.c.read("Read", f.path); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.c.read("ReadAt", f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *file) Write(p []byte) (int, error) {
	torn, err := f.c.step("Write", f.path, true, len(p))
	if err != nil {
		n := 0
		if torn > 0 {
			n, _ = f.File.Write(p[:torn])
		}
		return n, err
	}
	return f.File.Write(p)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	torn, err := f.c.step("WriteAt", f.path, true, len(p))
	if err != nil {
		n := 0
		if torn > 0 {
			n, _ = f.File.WriteAt(p[:torn], off)
		}
		return n, err
	}
	return f.File.WriteAt(p, off)
}

func (f *file) Stat() (disk.Info, error) {
	if err := f.c.read("FileStat", f.path); err != nil {
		return disk.Info{}, err
	}
	return f.File.Stat()
}

func (f *file) Truncate(size int64) error {
	if err := f.c.write("Truncate", f.path); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *file) Sync() error {
	if err := f.c.write("FileSync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *file) Chmod(mode uint32) error {
	if err := f.c.write("FileChmod", f.path); err != nil {
		return err
	}
	return f.File.Chmod(mode)
}

func (f *file) Map() ([]byte, func() error, error) {
	if err := f.c.read("Map", f.path); err != nil {
		return nil, nil, err
	}
	return f.File.Map()
}
