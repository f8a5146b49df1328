//go:build unix

package capture

import (
	"path"
	"sync"
	"syscall"

	"decree/disk"
)

// fakeDisk stands between a capture and the disk, so that a test can refuse steps, lie
// about what is there, and act between two steps. Hooks get paths from the root.
type fakeDisk struct {
	mu      sync.Mutex
	refuse  map[string]error // opening and listing; with "?" behind the path, looking at it
	stat    func(path string, in *disk.Info)
	listed  func(dir string, ents []disk.Entry) []disk.Entry
	opened  func(path string)
	reading func(path string) error
	got     func(path string, n int) // read so many bytes
	steady  bool                     // what the file system tells of holes and directories is trusted
	fat     bool                     // the file system has no change times of its own
	fuse    bool                     // whether it has some is to be tried
}

func (f *fakeDisk) wrap(d disk.Dir) disk.Dir { return &fakeDir{d, f, ""} }

func (f *fakeDisk) refused(at string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refuse[at]
}

func (d *fakeDir) FileSystem() disk.FileSystem {
	return disk.FileSystem{ChangeTimes: !d.f.fat && !d.f.fuse, TryTimes: d.f.fuse, Steady: d.f.steady}
}

type fakeDir struct {
	disk.Dir
	f  *fakeDisk
	at string
}

func (d *fakeDir) Self() (disk.Info, error) {
	in, err := d.Dir.Self()
	if d.f.stat != nil {
		d.f.stat(d.at, &in)
	}
	return in, err
}

func (d *fakeDir) Stat(name string) (disk.Info, error) {
	if err := d.f.refused(path.Join(d.at, name) + "?"); err != nil {
		return disk.Info{}, err
	}
	in, err := d.Dir.Stat(name)
	if err == nil && d.f.stat != nil {
		d.f.stat(path.Join(d.at, name), &in)
	}
	return in, err
}

func (d *fakeDir) List() ([]disk.Entry, error) {
	if err := d.f.refused(d.at + "/"); err != nil {
		return nil, err
	}
	ents, err := d.Dir.List()
	if d.f.listed != nil {
		ents = d.f.listed(d.at, ents)
	}
	return ents, err
}

func (d *fakeDir) OpenDir(name string) (disk.Dir, error) {
	at := path.Join(d.at, name)
	if err := d.f.refused(at); err != nil {
		return nil, err
	}
	c, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &fakeDir{c, d.f, at}, nil
}

func (d *fakeDir) Open(name string) (disk.File, error) {
	at := path.Join(d.at, name)
	if err := d.f.refused(at); err != nil {
		return nil, err
	}
	if d.f.opened != nil {
		d.f.opened(at)
	}
	f, err := d.Dir.Open(name)
	if err != nil {
		return nil, err
	}
	return &fakeFile{f, d.f, at}, nil
}

type fakeFile struct {
	disk.File
	f  *fakeDisk
	at string
}

func (f *fakeFile) Stat() (disk.Info, error) {
	in, err := f.File.Stat()
	if err == nil && f.f.stat != nil {
		f.f.stat(f.at, &in)
	}
	return in, err
}

func (f *fakeFile) Read(p []byte) (int, error) {
	if f.f.reading != nil {
		if err := f.f.reading(f.at); err != nil {
			return 0, err
		}
	}
	n, err := f.File.Read(p)
	if f.f.got != nil {
		f.f.got(f.at, n)
	}
	return n, err
}

const eacces = syscall.EACCES
