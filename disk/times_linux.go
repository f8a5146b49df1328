package disk

import (
	"encoding/hex"
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
