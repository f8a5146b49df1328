package disktest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"decree/disk"
)

// memDir is an open directory of a Mem.
type memDir struct {
	m    *Mem
	n    *inode
	path string
}

func (d *memDir) Path() string { return d.path }
func (d *memDir) Close() error { return nil }

// do runs call under the lock and gives its error the child's path.
func (d *memDir) do(op, name string, call func() error) error {
	err := disk.CheckName(name)
	if err == nil && len(name) > 255 {
		err = syscall.ENAMETOOLONG
	}
	if err == nil {
		d.m.mu.Lock()
		defer d.m.mu.Unlock()
		err = call()
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: d.path + "/" + name, Err: err}
	}
	return nil
}

// name returns how the entry is spelled that the name leads to.
func (d *memDir) name(name string) string {
	if d.m.FoldCase && d.n.entries[name] == nil {
		for has := range d.n.entries {
			if disk.Folded(has) == disk.Folded(name) {
				return has
			}
		}
	}
	return name
}

func (d *memDir) child(name string) *inode { return d.n.entries[d.name(name)] }

// on runs call on the child that is there.
func (d *memDir) on(op, name string, call func(n *inode) error) error {
	return d.do(op, name, func() error {
		n := d.child(name)
		if n == nil {
			return syscall.ENOENT
		}
		return call(n)
	})
}

func (d *memDir) Self() (disk.Info, error) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.info(d.n), nil
}

func (d *memDir) FileSystem() disk.FileSystem { return disk.FileSystem{ChangeTimes: true} }

func (d *memDir) Origin() (disk.Origin, error) { return disk.Origin{}, nil }
func (d *memDir) Born(string) int64            { return 0 }

func (d *memDir) Stat(name string) (st disk.Info, err error) {
	err = d.on("stat", name, func(n *inode) error { st = d.m.info(n); return nil })
	return st, err
}

func (d *memDir) List() ([]disk.Entry, error) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	var out []disk.Entry
	for _, name := range slices.Sorted(maps.Keys(d.n.entries)) {
		out = append(out, disk.Entry{Name: name, Kind: d.n.entries[name].kind})
	}
	return out, nil
}

func (d *memDir) Open(name string) (f disk.File, err error) {
	err = d.on("open", name, func(n *inode) error {
		switch n.kind {
		case disk.Symlink:
			return syscall.ELOOP
		case disk.Regular:
			f = &memFile{m: d.m, n: n, path: d.path + "/" + name}
			return nil
		}
		return disk.ErrNotRegular
	})
	return f, err
}

func (d *memDir) OpenDir(name string) (out disk.Dir, err error) {
	err = d.on("open", name, func(n *inode) error {
		if n.kind != disk.Directory {
			return syscall.ENOTDIR
		}
		out = &memDir{d.m, n, d.path + "/" + name}
		return nil
	})
	return out, err
}

// add makes a new entry; it fails in a directory that was removed.
func (d *memDir) add(name string, n *inode) error {
	if d.child(name) != nil {
		return syscall.EEXIST
	}
	if d.n.names == 0 && d.n != d.m.root {
		return syscall.ENOENT
	}
	d.m.set(change{{d.n, name, n}})
	return nil
}

func (d *memDir) Create(name string, perm uint32) (f disk.File, err error) {
	err = d.do("create", name, func() error {
		n := d.m.inode(disk.Regular, perm)
		f = &memFile{m: d.m, n: n, path: d.path + "/" + name, write: true}
		return d.add(name, n)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *memDir) OpenWrite(name string, perm uint32) (f disk.File, err error) {
	err = d.do("open", name, func() error {
		n := d.child(name)
		switch {
		case n == nil:
			n = d.m.inode(disk.Regular, perm)
			if err := d.add(name, n); err != nil {
				return err
			}
		case n.kind == disk.Symlink:
			return syscall.ELOOP
		case n.kind == disk.Directory:
			return syscall.EISDIR
		case n.names > 1:
			own := d.m.inode(disk.Regular, n.now.mode)
			own.now.data, own.now.uid, own.now.gid = slices.Clone(n.now.data), n.now.uid, n.now.gid
			d.m.set(change{{d.n, name, own}})
			n = own
		}
		f = &memFile{m: d.m, n: n, path: d.path + "/" + name, write: true}
		return nil
	})
	return f, err
}

func (d *memDir) Mkdir(name string, perm uint32) error {
	return d.do("mkdir", name, func() error { return d.add(name, d.m.inode(disk.Directory, perm)) })
}

func (d *memDir) Symlink(target, name string) error {
	return d.do("symlink", name, func() error {
		n := d.m.inode(disk.Symlink, 0o777)
		n.target = target
		return d.add(name, n)
	})
}

func (d *memDir) Remove(name string) error {
	return d.on("remove", name, func(n *inode) error {
		if n.kind == disk.Directory {
			return syscall.EISDIR
		}
		d.m.set(change{{d.n, d.name(name), nil}})
		return nil
	})
}

func (d *memDir) Rmdir(name string) error {
	return d.on("rmdir", name, func(n *inode) error {
		switch {
		case n.kind != disk.Directory:
			return syscall.ENOTDIR
		case len(n.entries) > 0:
			return syscall.ENOTEMPTY
		}
		d.m.set(change{{d.n, d.name(name), nil}})
		return nil
	})
}

// target is the other directory of a change of two names.
func (d *memDir) target(to disk.Dir, name string) (*memDir, error) {
	t, ok := to.(*memDir)
	if !ok || t.m != d.m {
		return nil, errors.New("handles of two disks")
	}
	return t, disk.CheckName(name)
}

func (d *memDir) Rename(old string, to disk.Dir, new string) error {
	return d.on("rename", old, func(n *inode) error {
		t, err := d.target(to, new)
		if err != nil {
			return err
		}
		over := t.child(new)
		switch {
		case over == n:
			return nil
		case over == nil:
		case n.kind == disk.Directory && over.kind != disk.Directory:
			return syscall.ENOTDIR
		case n.kind != disk.Directory && over.kind == disk.Directory:
			return syscall.EISDIR
		case len(over.entries) > 0:
			return syscall.ENOTEMPTY
		}
		return d.move(n, old, t, new)
	})
}

func (d *memDir) RenameNew(old string, to disk.Dir, new string) error {
	return d.on("rename", old, func(n *inode) error {
		t, err := d.target(to, new)
		if err != nil {
			return err
		}
		if t.child(new) != nil {
			return syscall.EEXIST
		}
		return d.move(n, old, t, new)
	})
}

func (d *memDir) move(n *inode, old string, t *memDir, new string) error {
	if t.n.names == 0 && t.n != d.m.root {
		return syscall.ENOENT
	}
	c := change{{d.n, d.name(old), nil}}
	if t.child(new) != nil {
		c = append(c, change{{t.n, t.name(new), nil}}...)
	}
	d.m.set(append(c, change{{t.n, new, n}}...))
	return nil
}

func (d *memDir) Exchange(a string, to disk.Dir, b string) error {
	return d.on("exchange", a, func(n *inode) error {
		t, err := d.target(to, b)
		if err != nil {
			return err
		}
		if d.m.NoExchange {
			return errors.ErrUnsupported
		}
		o := t.child(b)
		if o == nil {
			return syscall.ENOENT
		}
		d.m.set(change{{d.n, d.name(a), o}, {t.n, t.name(b), n}})
		return nil
	})
}

func (d *memDir) Link(old string, to disk.Dir, new string) error {
	return d.on("link", old, func(n *inode) error {
		t, err := d.target(to, new)
		switch {
		case err != nil:
			return err
		case d.m.NoLinks:
			return errors.ErrUnsupported
		case n.kind == disk.Directory && t.child(new) == nil:
			return syscall.EPERM
		}
		return t.add(new, n)
	})
}

func (d *memDir) Readlink(name string) (target string, err error) {
	err = d.on("readlink", name, func(n *inode) error {
		if n.kind != disk.Symlink {
			return syscall.EINVAL
		}
		target = n.target
		return nil
	})
	return target, err
}

func (d *memDir) Chmod(name string, is disk.Info, mode uint32) error {
	return d.on("chmod", name, func(n *inode) error {
		if d.m.info(n).Ino != is.Ino || n.kind != is.Kind {
			return disk.ErrReplaced
		}
		if n.kind == disk.Symlink {
			return syscall.ELOOP
		}
		n.now.mode, n.ctime = mode&0o7777, d.m.tick()
		return nil
	})
}

func (d *memDir) Chown(name string, is disk.Info, uid, gid uint32) error {
	return d.on("chown", name, func(n *inode) error {
		if d.m.info(n).Ino != is.Ino || n.kind != is.Kind || n.kind == disk.Regular {
			return disk.ErrReplaced
		}
		n.now.uid, n.now.gid, n.ctime = uid, gid, d.m.tick()
		return nil
	})
}

func (d *memDir) SetMtime(name string, is disk.Info, mtime int64) error {
	return d.on("utimensat", name, func(n *inode) error {
		if d.m.info(n).Ino != is.Ino || n.kind != is.Kind {
			return disk.ErrReplaced
		}
		n.mtime, n.ctime = mtime, d.m.tick()
		return nil
	})
}

func (d *memDir) Xattrs(name string) (out []disk.Xattr, err error) {
	err = d.on("listxattr", name, func(n *inode) error {
		for _, key := range slices.Sorted(maps.Keys(n.now.xattrs)) {
			out = append(out, disk.Xattr{Name: key, Value: bytes.Clone(n.now.xattrs[key])})
		}
		return nil
	})
	return out, err
}

func (d *memDir) SetXattr(name string, is disk.Info, x disk.Xattr) error {
	return d.on("setxattr", name, func(n *inode) error {
		if d.m.info(n).Ino != is.Ino || n.kind != is.Kind {
			return disk.ErrReplaced
		}
		if n.now.xattrs == nil {
			n.now.xattrs = map[string][]byte{}
		}
		n.now.xattrs[x.Name], n.ctime = bytes.Clone(x.Value), d.m.tick()
		return nil
	})
}

func (d *memDir) Sync() error {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	d.n.durable = d.n.now.clone()
	d.m.flush(d.n)
	return nil
}

func (d *memDir) SyncAll() func() error {
	if d.m.NoSyncAll {
		return nil
	}
	return func() error {
		d.m.mu.Lock()
		defer d.m.mu.Unlock()
		d.m.flushAll()
		return nil
	}
}

func (d *memDir) TryLock() (func() error, error) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	if d.n.locked {
		return nil, disk.ErrLocked
	}
	d.n.locked = true
	held := true
	return func() error {
		d.m.mu.Lock()
		defer d.m.mu.Unlock()
		if held {
			held, d.n.locked = false, false
		}
		return nil
	}, nil
}

func (d *memDir) Locked() (bool, error) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.n.locked, nil
}
