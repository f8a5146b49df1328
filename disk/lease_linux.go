package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// beingWritten says whether anybody has the open file fd open for writing, or
// mapped so. A read lease is refused then; it is given back at once, so that a
// writer who comes meanwhile waits no longer than one system call. The system
// tells it to a file's owner and to root alone. Where it cannot be told the answer is false.
func beingWritten(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return false
	}
	return errors.Is(err, unix.EAGAIN) && !refusesLeases(fd)
}

// refusesLeases says whether fd lies on a file system that refuses leases for reasons of its own: one of a network
// gives none as long as its server has not delegated the file.
func refusesLeases(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return true
	}
	kind := int64(st.Type)
	return kind != unix.FUSE_SUPER_MAGIC && kindRemembersFacts(kind)
}

// isLocal says whether the file system of fd is known to be this machine's own: it tells
// of every writer and of every change.
func isLocal(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}
