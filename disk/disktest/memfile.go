package disktest

import (
	"bytes"
	"io"
	"io/fs"
	"syscall"

	"decree/disk"
)

// memFile is an open file of a Mem.
type memFile struct {
	m     *Mem
	n     *inode
	path  string
	pos   int64
	write bool
}

func (f *memFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}

// BeingWritten is false: nobody else is on this disk.
func (f *memFile) BeingWritten() bool { return false }

func (f *memFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off < 0 {
		return 0, f.fail("read", syscall.EINVAL)
	}
	if off >= int64(len(f.n.now.data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, f.n.now.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.pos)
	f.pos += int64(n)
	return n, err
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.writable("write", off); err != nil {
		return 0, err
	}
	if end := off + int64(len(p)); end > int64(len(f.n.now.data)) {
		f.resize(end)
	}
	copy(f.n.now.data[off:], p)
	f.touch()
	return len(p), nil
}

func (f *memFile) writable(op string, n int64) error {
	if !f.write {
		return f.fail(op, syscall.EBADF)
	}
	if n < 0 {
		return f.fail(op, syscall.EINVAL)
	}
	return nil
}

func (f *memFile) resize(size int64) {
	data := f.n.now.data
	if size <= int64(len(data)) {
		f.n.now.data = data[:size:size] // what lies beyond is gone, also for a later growth
		return
	}
	f.n.now.data = append(data, make([]byte, size-int64(len(data)))...)
}

func (f *memFile) touch() {
	f.n.mtime = f.m.tick()
	f.n.ctime = f.n.mtime
}

func (f *memFile) Seek(offset int64, whence int) (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.pos
	case io.SeekEnd:
		offset += int64(len(f.n.now.data))
	}
	if offset < 0 {
		return 0, f.fail("seek", syscall.EINVAL)
	}
	f.pos = offset
	return offset, nil
}

func (f *memFile) Close() error { return nil }

func (f *memFile) Stat() (disk.Info, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.info(f.n), nil
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.writable("truncate", size); err != nil {
		return err
	}
	f.resize(size)
	f.touch()
	return nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.durable = f.n.now.clone()
	return nil
}

func (f *memFile) StartSync() {}

func (f *memFile) Chmod(mode uint32) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.now.mode, f.n.ctime = mode&0o7777, f.m.tick()
	return nil
}

func (f *memFile) Chown(uid, gid uint32) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.now.uid, f.n.now.gid, f.n.ctime = uid, gid, f.m.tick()
	f.n.now.mode &^= 0o6000
	return nil
}

// Unload does nothing: the copy is memory of its own.
func (f *memFile) Unload([]byte) {}

// Map returns a copy: the bytes of now.
func (f *memFile) Map() ([]byte, func() error, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return bytes.Clone(f.n.now.data), func() error { return nil }, nil
}
