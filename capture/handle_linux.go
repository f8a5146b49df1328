//go:build amd64 || arm64

package capture

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// direct is a directory's descriptor, used by system calls without a copy or a string
// between: names go in as they came out of the listing or the cache.
type direct struct {
	fd   int
	root bool // it belongs to the caller
}

// fastHandle returns the descriptor below d, or nil if d has none.
func fastHandle(d disk.Dir) handle {
	fd, ok := disk.FD(d)
	if !ok {
		return nil
	}
	return &direct{fd: fd, root: true}
}

func infoOf(st *unix.Stat_t, in *disk.Info) {
	*in = disk.Info{
		Kind: kindOf(st.Mode), Mode: st.Mode & 0o7777, Size: st.Size,
		Mtime: st.Mtim.Sec*1e9 + st.Mtim.Nsec, Ctime: st.Ctim.Sec*1e9 + st.Ctim.Nsec,
		Dev: st.Dev, Ino: st.Ino, Nlink: uint64(st.Nlink), UID: st.Uid, GID: st.Gid,
	}
}

func kindOf(mode uint32) disk.Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return disk.Regular
	case unix.S_IFDIR:
		return disk.Directory
	case unix.S_IFLNK:
		return disk.Symlink
	}
	return disk.Special
}

func (d *direct) self() (in disk.Info, err error) {
	var st unix.Stat_t
	if err = unix.Fstat(d.fd, &st); err == nil {
		infoOf(&st, &in)
	}
	return in, err
}

func (d *direct) stat(cname []byte, in *disk.Info) error {
	var st unix.Stat_t
	for {
		_, _, e := unix.Syscall6(sysFstatat, uintptr(d.fd), uintptr(unsafe.Pointer(&cname[0])),
			uintptr(unsafe.Pointer(&st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		if e == 0 {
			infoOf(&st, in)
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}

func (d *direct) openat(cname []byte, flags int) (int, error) {
	for {
		fd, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(d.fd), uintptr(unsafe.Pointer(&cname[0])),
			uintptr(flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC), 0, 0, 0)
		if e == 0 {
			return int(fd), nil
		}
		if e != unix.EINTR {
			return -1, e
		}
	}
}

func (d *direct) openDir(cname []byte) (handle, error) {
	fd, err := d.openat(cname, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &direct{fd: fd}, nil
}

func (d *direct) readlink(cname []byte) (string, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, _, e := unix.Syscall6(unix.SYS_READLINKAT, uintptr(d.fd), uintptr(unsafe.Pointer(&cname[0])),
			uintptr(unsafe.Pointer(&buf[0])), uintptr(size), 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return "", e
		}
		if int(n) < size {
			return string(buf[:n]), nil
		}
	}
}

func (d *direct) close() { unix.Close(d.fd) }

// list asks for large pieces: the system call costs more than the copying.
func (d *direct) list(l *listing) error {
	l.reset()
	if l.raw == nil {
		l.raw = make([]byte, 64<<10)
	}
	fd := d.fd
	if d.root {
		// A position that is the caller's must not be moved.
		own, err := d.openat([]byte(".\x00"), unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer unix.Close(own)
		fd = own
	}
	for {
		n, err := unix.Getdents(fd, l.raw)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		if err := l.parse(l.raw[:n]); err != nil {
			return err
		}
	}
}

// parse takes what getdents64 gives: inode and offset, 8 bytes each, length of the
// record in 2, kind in 1, then the name up to a zero byte.
func (l *listing) parse(b []byte) error {
	for len(b) > 0 {
		if len(b) < 20 {
			return io.ErrUnexpectedEOF
		}
		size := int(le.Uint16(b[16:]))
		if size < 20 || size > len(b) {
			return io.ErrUnexpectedEOF
		}
		name := b[19:size]
		n := 0
		for n < len(name) && name[n] != 0 {
			n++
		}
		name = name[:n]
		if s := string(name); s != "." && s != ".." && le.Uint64(b) != 0 {
			l.add(name, listedKind(b[18]))
		}
		b = b[size:]
	}
	return nil
}

func listedKind(t byte) disk.Kind {
	switch t {
	case unix.DT_REG:
		return disk.Regular
	case unix.DT_DIR:
		return disk.Directory
	case unix.DT_LNK:
		return disk.Symlink
	case unix.DT_UNKNOWN:
		return disk.Unknown
	}
	return disk.Special
}

// steady is true for local file systems that are known to keep a directory's times.
// Others, network and overlay ones above all, are always listed.
func (d *direct) steady() bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(d.fd, &st); err != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}

func (d *direct) changeTimes() bool { return disk.ChangeTimes(d.fd) }

// open asks for O_NONBLOCK so that a pipe put in a file's place cannot hang the walk.
func (d *direct) open(cname []byte, in *disk.Info) (disk.File, error) {
	fd, err := d.openat(cname, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, errNotRegular
	}
	infoOf(&st, in)
	return &directFile{fd: fd}, nil
}

// directFile reads an open regular file without the poller and finalizer of os.File.
type directFile struct {
	fd     int
	pos    int64
	closed bool
}

// Read is one call: who knows the size need not be told of the end.
func (f *directFile) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := unix.Pread(f.fd, p, f.pos)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		f.pos += int64(n)
		return n, nil
	}
}

// ReadAt returns short only at the end or with an error.
func (f *directFile) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(f.fd, p[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}

func (f *directFile) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += f.pos
	case io.SeekEnd:
		st, err := f.Stat()
		if err != nil {
			return 0, err
		}
		off += st.Size
	}
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	f.pos = off
	return off, nil
}

// extent asks for data and holes. A hole that is not worth it counts as data.
func (f *directFile) extent(at int64) (until int64, hole bool, err error) {
	data, err := unix.Seek(f.fd, at, unix.SEEK_DATA)
	if err == unix.ENXIO { // no more data
		return math.MaxInt64, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	if data-at >= sparseFrom {
		return data, true, nil
	}
	until, err = unix.Seek(f.fd, data, unix.SEEK_HOLE)
	return max(until, at+sparseFrom), false, err
}

func (f *directFile) Stat() (in disk.Info, err error) {
	var st unix.Stat_t
	if err = unix.Fstat(f.fd, &st); err == nil {
		infoOf(&st, &in)
	}
	return in, err
}

func (f *directFile) Close() error {
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	return unix.Close(f.fd)
}

// A file of the tree is never mapped (it may shrink any moment), and never written.
func (f *directFile) Map() ([]byte, func() error, error) { return nil, nil, errors.ErrUnsupported }
func (f *directFile) Write([]byte) (int, error)          { return 0, errors.ErrUnsupported }
func (f *directFile) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (f *directFile) Truncate(int64) error               { return errors.ErrUnsupported }
func (f *directFile) Sync() error                        { return errors.ErrUnsupported }
func (f *directFile) StartSync()                         {}
func (f *directFile) BeingWritten() bool                 { return disk.BeingWritten(f.fd) }
func (f *directFile) Chmod(uint32) error                 { return errors.ErrUnsupported }
