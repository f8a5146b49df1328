//go:build unix

package disk

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// OS is the system's disk.
var OS Disk = osDisk{}

type osDisk struct{}

func (osDisk) OpenRoot(path string) (Dir, error) { return openRoot(path, unix.O_RDONLY) }

func (d osDisk) OpenSearch(path string) (Dir, error) {
	dir, err := d.OpenRoot(path)
	if errors.Is(err, unix.EACCES) && searchOnly != 0 {
		return openRoot(path, searchOnly)
	}
	return dir, err
}

func openRoot(path string, how int) (Dir, error) {
	fd, err := retryFD(func() (int, error) {
		return unix.Open(path, how|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &osDir{path: path, f: fd, search: how != unix.O_RDONLY, remembered: remembersFacts(fd)}, nil
}

func (d osDisk) MkdirAll(path string, perm uint32) (Dir, error) {
	if err := d.makeAll(path, perm); err != nil {
		return nil, err
	}
	return d.OpenRoot(path)
}

// makeAll makes a directory and those above it that are missing. Those that are there need not be
// readable.
func (d osDisk) makeAll(path string, perm uint32) error {
	dir, err := d.OpenSearch(path)
	if err == nil {
		return dir.Close()
	}
	above := filepath.Dir(path)
	if !errors.Is(err, fs.ErrNotExist) || path == above {
		return err
	}
	if err := d.makeAll(above, perm); err != nil {
		return err
	}
	parent, err := d.OpenSearch(above)
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := ForItsOwner(parent); err != nil {
		return err
	}
	if err := parent.Mkdir(filepath.Base(path), perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

type osDir struct {
	path   string
	f      int
	search bool   // opened by OpenSearch, and not readable
	heir   *owner // of what is made here and below; nil: whoever makes it
	// remembered: the file system may answer a stat from memory while the files have changed elsewhere.
	remembered bool
	close      sync.Once
}

// owner is a user and a group.
type owner struct{ uid, gid uint32 }

// ForItsOwner makes what root makes through d, and through the directories opened from
// it, belong to d's owner: a command under sudo must not leave files among a user's own
// that the user cannot read. For all other users, and other disks, it changes nothing.
func ForItsOwner(d Dir) error {
	o, ok := d.(*osDir)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	self, err := o.Self()
	if err == nil && self.UID != 0 {
		o.heir = &owner{self.UID, self.GID}
	}
	return err
}

func (d *osDir) fd() int      { return d.f }
func (d *osDir) Path() string { return d.path }

// join does not clean: both parts are clean, and in a deep tree that would be the
// greater part of opening it.
func (d *osDir) join(name string) string {
	switch {
	case name == "":
		return d.path
	case strings.HasSuffix(d.path, "/"):
		return d.path + name
	}
	return d.path + "/" + name
}

// do runs one system call on a child, again while it is interrupted, and
// gives its error the child's whole path.
func (d *osDir) do(op, name string, call func() error) error {
	if err := CheckName(name); err != nil {
		return &fs.PathError{Op: op, Path: d.path + "/" + name, Err: err}
	}
	for {
		err := call()
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: op, Path: d.join(name), Err: err}
		}
	}
}

func retryFD(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func (d *osDir) Self() (Info, error) {
	if d.remembered {
		if in, err := askAnew(d.f, ""); !errors.Is(err, errors.ErrUnsupported) {
			if err != nil {
				err = &fs.PathError{Op: "stat", Path: d.path, Err: err}
			}
			return in, err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(d.f, &st); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	return infoOf(&st), nil
}

func (d *osDir) Stat(name string) (Info, error) {
	if d.remembered {
		var in Info
		err := d.do("stat", name, func() (err error) { in, err = askAnew(d.f, name); return err })
		if !errors.Is(err, errors.ErrUnsupported) {
			return in, err
		}
	}
	var st unix.Stat_t
	err := d.do("stat", name, func() error { return unix.Fstatat(d.f, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Info{}, err
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) Info {
	mt, ct := statTimes(st)
	return Info{
		Kind: kindOf(uint32(st.Mode)), Mode: uint32(st.Mode) & 0o7777, Size: st.Size,
		Mtime: mt, Ctime: ct, Dev: uint64(st.Dev), Ino: st.Ino, Nlink: uint64(st.Nlink), UID: st.Uid, GID: st.Gid,
		Whiteout: uint32(st.Mode)&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0,
	}
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Symlink
	}
	return Special
}

// List reads through a descriptor of its own: a shared one has one position.
func (d *osDir) List() ([]Entry, error) {
	fd, err := retryFD(func() (int, error) {
		return unix.Openat(d.f, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	list, err := f.ReadDir(-1)
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		out = append(out, Entry{Name: e.Name(), Kind: kindOfMode(e.Type())})
	}
	return out, err
}

func kindOfMode(m fs.FileMode) Kind {
	switch m.Type() {
	case 0:
		return Regular
	case fs.ModeDir:
		return Directory
	case fs.ModeSymlink:
		return Symlink
	}
	return Special
}

// openFile opens a child with more flags, as a file that check, if there is one, lets pass. O_NONBLOCK is
// for a pipe put in a file's place, which must not hang decree.
func (d *osDir) openFile(op, name string, flags int, perm uint32, check func(*unix.Stat_t) error) (*osFile, error) {
	var fd int
	err := d.do(op, name, func() (err error) {
		fd, err = unix.Openat(d.f, name, flags|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && kindOf(uint32(st.Mode)) != Regular {
		err = ErrNotRegular
	}
	if err == nil && check != nil {
		err = check(&st)
	}
	if err == nil {
		// Regular files ignore it, but os.NewFile would hand such a descriptor to the poller.
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: op, Path: d.join(name), Err: err}
	}
	return &osFile{File: os.NewFile(uintptr(fd), d.join(name))}, nil
}

func (d *osDir) Open(name string) (File, error) {
	f, err := d.openFile("open", name, unix.O_RDONLY, 0, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *osDir) OpenDir(name string) (Dir, error) {
	var fd int
	err := d.do("open", name, func() (err error) {
		fd, err = unix.Openat(d.f, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &osDir{path: d.join(name), f: fd, heir: d.heir, remembered: d.remembered}, nil
}

func (d *osDir) Create(name string, perm uint32) (File, error) {
	f, err := d.openFile("create", name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, perm, nil)
	if err != nil {
		return nil, err
	}
	if d.heir != nil {
		if err := f.Chown(d.heir.uid, d.heir.gid); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// OpenWrite does not open and make in one step: only of what it has made itself it is
// known that it may be given away.
func (d *osDir) OpenWrite(name string, perm uint32) (File, error) {
	for try := 0; ; try++ {
		f, err := d.openFile("open", name, unix.O_RDWR, 0, d.ours)
		if err == nil {
			return d.alone(f, name)
		}
		if errors.Is(err, ErrOwner) && d.leftover(name) {
			err = d.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made, err := CreateFile(d, name, perm)
		const tries = 3
		if !errors.Is(err, fs.ErrExist) || try == tries {
			return made, err
		}
	}
}

// leftover says whether the file name is one that root made for the heir, and died before it
// was given away.
func (d *osDir) leftover(name string) bool {
	st, err := d.Stat(name)
	return err == nil && d.heir != nil && st.UID == 0 && st.Size == 0 && st.Nlink == 1
}

// alone returns f, opened as name, or where f has other names a copy in its place.
func (d *osDir) alone(f *osFile, name string) (File, error) {
	st, err := f.Stat()
	if err == nil && st.Nlink <= 1 {
		return f, nil
	}
	defer f.Close()
	if err == nil {
		err = Replace(d, name, Replacement{Perm: st.Mode, Flush: true}, func(to File) error { return Copy(to, f) })
	}
	if err != nil {
		return nil, err
	}
	own, err := d.openFile("open", name, unix.O_RDWR, 0, d.ours)
	if err != nil {
		return nil, err
	}
	return own, nil
}

// ours refuses a file that is not the directory's owner's.
func (d *osDir) ours(st *unix.Stat_t) error {
	self, err := d.Self()
	if err != nil {
		return err
	}
	owner := self.UID
	if d.heir != nil {
		owner = d.heir.uid
	}
	if st.Uid != owner {
		return ErrOwner
	}
	return nil
}

func (d *osDir) Mkdir(name string, perm uint32) error {
	err := d.do("mkdir", name, func() error { return unix.Mkdirat(d.f, name, perm) })
	if err != nil || d.heir == nil {
		return err
	}
	st, err := d.Stat(name)
	if err != nil {
		return err
	}
	return d.Chown(name, st, d.heir.uid, d.heir.gid)
}

func (d *osDir) Remove(name string) error {
	return d.do("remove", name, func() error { return unix.Unlinkat(d.f, name, 0) })
}

func (d *osDir) Rmdir(name string) error {
	return d.do("rmdir", name, func() error { return unix.Unlinkat(d.f, name, unix.AT_REMOVEDIR) })
}

// pair runs a two-name call after checking both names and the other handle.
func (d *osDir) pair(op, old string, to Dir, new string, call func(tofd int) error) error {
	t, ok := to.(*osDir)
	if !ok {
		return &fs.PathError{Op: op, Path: d.join(old), Err: errors.New("handles of two disks")}
	}
	if err := CheckName(new); err != nil {
		return &fs.PathError{Op: op, Path: to.Path() + "/" + new, Err: err}
	}
	return d.do(op, old, func() error { return call(t.f) })
}

func (d *osDir) Rename(old string, to Dir, new string) error {
	return d.pair("rename", old, to, new, func(t int) error { return unix.Renameat(d.f, old, t, new) })
}

func (d *osDir) RenameNew(old string, to Dir, new string) error {
	return d.pair("rename", old, to, new, func(t int) error { return renameNew(d.f, old, t, new) })
}

func (d *osDir) Exchange(a string, to Dir, b string) error {
	return d.pair("exchange", a, to, b, func(t int) error { return exchange(d.f, a, t, b) })
}

func (d *osDir) Link(old string, to Dir, new string) error {
	return d.pair("link", old, to, new, func(t int) error { return unix.Linkat(d.f, old, t, new, 0) })
}

func (d *osDir) Symlink(target, name string) error {
	return d.do("symlink", name, func() error { return unix.Symlinkat(target, d.f, name) })
}

func (d *osDir) Readlink(name string) (string, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		var n int
		err := d.do("readlink", name, func() (err error) { n, err = unix.Readlinkat(d.f, name, buf); return err })
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

func (d *osDir) Chmod(name string, is Info, mode uint32) error {
	return d.do("chmod", name, func() error { return chmodAt(d.f, name, is, mode) })
}

// Chown looks at the handle through which it works. A directory that holds something was
// not made just now, and is nothing that root may give away.
func (d *osDir) Chown(name string, is Info, uid, gid uint32) error {
	return d.do("chown", name, func() error {
		if is.Kind != Directory && is.Kind != Symlink {
			return ErrReplaced
		}
		fd, err := openItself(d.f, name, is.Kind)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), d.join(name))
		defer f.Close()
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if now := infoOf(&st); !now.SameFile(is) || now.Kind != is.Kind {
			return ErrReplaced
		}
		if is.Kind == Directory && os.Geteuid() == 0 {
			if _, err := f.Readdirnames(1); !errors.Is(err, io.EOF) {
				return cmp.Or(err, error(unix.ENOTEMPTY))
			}
		}
		return chownItself(fd, int(uid), int(gid))
	})
}

func (d *osDir) SetMtime(name string, is Info, mtime int64) error {
	at := unix.NsecToTimespec(mtime)
	return d.do("utimensat", name, func() error { return timesAt(d.f, name, is, []unix.Timespec{at, at}) })
}

// Sync goes on where the file system has no way to flush a directory, as some in user space and over a
// network have none: then nothing better can be done there. Unflushed tells.
func (d *osDir) Sync() error {
	if d.search {
		return &fs.PathError{Op: "sync", Path: d.path, Err: unix.EACCES}
	}
	for {
		err := syncFD(d.f)
		if err == nil {
			return nil
		}
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
			unflushed.CompareAndSwap(nil, &d.path)
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: "sync", Path: d.path, Err: err}
		}
	}
}

func (d *osDir) SyncAll() func() error {
	if !syncsAll(d.f) {
		return nil
	}
	return func() error {
		for {
			err := syncAll(d.f)
			if err == nil {
				err = syncFD(d.f) // which tells, too, that the file system has given up, and flushes the device's cache behind all
			}
			if err == nil {
				return nil
			}
			if !errors.Is(err, unix.EINTR) {
				return &fs.PathError{Op: "sync", Path: d.path, Err: err}
			}
		}
	}
}

// TryLock locks through a descriptor of its own, so that the lock lives and
// dies with the returned function and excludes other handles of this process too.
func (d *osDir) TryLock() (func() error, error) {
	fd, err := retryFD(func() (int, error) {
		return unix.Openat(d.f, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, &fs.PathError{Op: "lock", Path: d.path, Err: err}
	}
	return func() error { return unix.Close(fd) }, nil
}

// Locked asks with a shared lock, which any number of processes can have at once.
func (d *osDir) Locked() (bool, error) {
	fd, err := retryFD(func() (int, error) {
		return unix.Openat(d.f, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	defer unix.Close(fd)
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lock", Path: d.path, Err: err}
	}
	return false, nil
}

func (d *osDir) FileSystem() FileSystem { return fileSystem(d.f) }

func (d *osDir) Close() error {
	err := error(nil)
	d.close.Do(func() { err = unix.Close(d.f) })
	return err
}

type osFile struct {
	*os.File
	mapped bool // what Map has returned; else it is in memory of its own
}

func (f *osFile) Stat() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return infoOf(&st), nil
}

func (f *osFile) Chmod(mode uint32) error {
	if err := unix.Fchmod(int(f.Fd()), mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: f.Name(), Err: err}
	}
	return nil
}

func (f *osFile) Chown(uid, gid uint32) error {
	if err := unix.Fchown(int(f.Fd()), int(uid), int(gid)); err != nil {
		return &fs.PathError{Op: "chown", Path: f.Name(), Err: err}
	}
	return nil
}

func (f *osFile) BeingWritten() bool { return beingWritten(int(f.Fd())) }

func (f *osFile) StartSync() { startSync(int(f.Fd())) }

func (f *osFile) Map() ([]byte, func() error, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if st.Size == 0 {
		return nil, func() error { return nil }, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(st.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return readWhole(f, st.Size)
	}
	f.mapped = true
	return data, func() error { return unix.Munmap(data) }, nil
}

func (f *osFile) Unload(data []byte) {
	if f.mapped && len(data) > 0 {
		_ = unix.Madvise(data, unix.MADV_DONTNEED) // of memory of its own it would be the content
	}
}

// readWhole stands in for a mapping where the file system has none.
func readWhole(f *osFile, size int64) ([]byte, func() error, error) {
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}
