package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// OS is the system's disk. On Windows it reads; every writing step answers
// errors.ErrUnsupported.
var OS Disk = osDisk{}

type osDisk struct{}

func (osDisk) OpenRoot(path string) (Dir, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a directory")}
	}
	return &osDir{path}, nil
}

func (d osDisk) OpenSearch(path string) (Dir, error) { return d.OpenRoot(path) }

// ForItsOwner changes nothing here.
func ForItsOwner(Dir) error { return nil }

func (osDisk) MkdirAll(path string, perm uint32) (Dir, error) { return nil, refuse("mkdir", path) }

func refuse(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: errors.ErrUnsupported}
}

type osDir struct{ path string }

func (d *osDir) Path() string                { return d.path }
func (d *osDir) at(name string) string       { return filepath.Join(d.path, name) }
func (d *osDir) no(op, name string) error    { return refuse(op, d.at(name)) }
func (d *osDir) Self() (Info, error)         { return lstat(d.path) }
func (d *osDir) Stat(n string) (Info, error) { return lstat(d.at(n)) }

func lstat(path string) (Info, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return Info{}, err
	}
	return Info{Kind: kindOfMode(st.Mode()), Mode: uint32(st.Mode().Perm()), Size: st.Size(), Mtime: st.ModTime().UnixNano(), Nlink: 1}, nil
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

func (d *osDir) List() ([]Entry, error) {
	list, err := os.ReadDir(d.path)
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		out = append(out, Entry{Name: e.Name(), Kind: kindOfMode(e.Type())})
	}
	return out, err
}

func (d *osDir) Open(name string) (File, error) {
	st, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if st.Kind != Regular {
		return nil, &fs.PathError{Op: "open", Path: d.at(name), Err: ErrNotRegular}
	}
	f, err := os.Open(d.at(name))
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

func (d *osDir) OpenDir(name string) (Dir, error) {
	st, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if st.Kind != Directory {
		return nil, &fs.PathError{Op: "open", Path: d.at(name), Err: errors.New("not a directory")}
	}
	return &osDir{d.at(name)}, nil
}

func (d *osDir) Readlink(n string) (string, error)           { return os.Readlink(d.at(n)) }
func (d *osDir) Create(n string, _ uint32) (File, error)     { return nil, d.no("create", n) }
func (d *osDir) OpenWrite(n string, _ uint32) (File, error)  { return nil, d.no("open", n) }
func (d *osDir) Mkdir(n string, _ uint32) error              { return d.no("mkdir", n) }
func (d *osDir) Remove(n string) error                       { return d.no("remove", n) }
func (d *osDir) Rmdir(n string) error                        { return d.no("rmdir", n) }
func (d *osDir) Rename(old string, _ Dir, _ string) error    { return d.no("rename", old) }
func (d *osDir) RenameNew(old string, _ Dir, _ string) error { return d.no("rename", old) }
func (d *osDir) Exchange(a string, _ Dir, _ string) error    { return d.no("exchange", a) }
func (d *osDir) Link(old string, _ Dir, _ string) error      { return d.no("link", old) }
func (d *osDir) Symlink(_, n string) error                   { return d.no("symlink", n) }
func (d *osDir) Chmod(n string, _ Info, _ uint32) error      { return d.no("chmod", n) }
func (d *osDir) Chown(n string, _ Info, _, _ uint32) error   { return d.no("chown", n) }
func (d *osDir) SetMtime(n string, _ Info, _ int64) error    { return d.no("utimes", n) }
func (d *osDir) Xattrs(string) ([]Xattr, error)              { return nil, nil }
func (d *osDir) SetXattr(n string, _ Info, _ Xattr) error    { return d.no("setxattr", n) }
func (d *osDir) FileSystem() FileSystem                      { return FileSystem{ChangeTimes: true} }
func (d *osDir) Sync() error                                 { return refuse("sync", d.path) }
func (d *osDir) SyncAll() func() error                       { return nil }
func (d *osDir) TryLock() (unlock func() error, err error)   { return nil, refuse("lock", d.path) }
func (d *osDir) Locked() (bool, error)                       { return false, refuse("lock", d.path) }
func (d *osDir) Close() error                                { return nil }

type osFile struct{ *os.File }

func (f *osFile) Stat() (Info, error)     { return lstat(f.Name()) }
func (f *osFile) Chown(_, _ uint32) error { return errors.ErrUnsupported }

func (f *osFile) Chmod(mode uint32) error { return refuse("chmod", f.Name()) }
func (f *osFile) StartSync()              {}
func (f *osFile) BeingWritten() bool      { return false }
func (f *osFile) Unload([]byte)           {}
func (f *osFile) Map() ([]byte, func() error, error) {
	data, err := os.ReadFile(f.Name())
	return data, func() error { return nil }, err
}
