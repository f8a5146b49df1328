package disk

import (
	"encoding/hex"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileSystem knows the local file systems by their numbers. Others, network and overlay
// ones above all, count as unsteady.
func fileSystem(fd int) FileSystem {
	out := FileSystem{ChangeTimes: true}
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return out
	}
	out.Spent = st.Bavail*uint64(st.Bsize) < Scant
	if st.Type == unix.BTRFS_SUPER_MAGIC {
		out.ID = btrfsID(fd)
	}
	out.ofKind(int64(st.Type))
	return out
}

// ofKind fills in what the number of a file system tells.
func (out *FileSystem) ofKind(kind int64) {
	switch kind {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC:
		out.Steady = true
		out.MoveTimes = kind != unix.XFS_SUPER_MAGIC && kind != unix.F2FS_SUPER_MAGIC // of F2FS it is not known
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		out.ChangeTimes = false
	case unix.FUSE_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		out.ChangeTimes, out.TryTimes = false, true
	}
}

// remembersFacts says whether a directory is on a file system that may answer a stat from memory while another
// machine, or the program behind a FUSE, has changed the file: for up to a minute, as a rule.
func remembersFacts(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && kindRemembersFacts(int64(st.Type))
}

func kindRemembersFacts(kind int64) bool {
	switch kind {
	case unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC:
		return true
	}
	return false
}

// askAnew is a stat of a name, of the directory itself for "", for which the file system asks whoever has the
// file. ErrUnsupported is of a system, or of a container's filter, that has no such call.
func askAnew(dirfd int, name string) (Info, error) {
	var st unix.Statx_t
	err := unix.Statx(dirfd, name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &st)
	if err = unsupported(err); errors.Is(err, unix.EPERM) {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return Info{}, err
	}
	mode := uint32(st.Mode)
	return Info{
		Kind: kindOf(mode), Mode: mode & 0o7777, Size: int64(st.Size),
		Mtime: st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec), Ctime: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec),
		Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino, Nlink: uint64(st.Nlink), UID: st.Uid, GID: st.Gid,
		Whiteout: mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev_major == 0 && st.Rdev_minor == 0,
	}, nil
}

// btrfsID is the id that a btrfs has from its mkfs, "" where it does not tell.
func btrfsID(fd int) string {
	const fsInfo = 0x8400941f // BTRFS_IOC_FS_INFO; elsewhere than on most processors it has another number, and fails
	var args struct {
		maxID, devices uint64
		id             [16]byte
		_              [992]byte
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), fsInfo, uintptr(unsafe.Pointer(&args))); errno != 0 {
		return ""
	}
	return hex.EncodeToString(args.id[:])
}
