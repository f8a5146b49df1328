package disk

import "golang.org/x/sys/unix"

// fileSystem knows the local file systems by their numbers. Others, network and overlay
// ones above all, count as unsteady.
func fileSystem(fd int) FileSystem {
	out := FileSystem{ChangeTimes: true}
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return out
	}
	out.Spent = st.Bavail*uint64(st.Bsize) < Scant
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC:
		out.Steady = true
		out.MoveTimes = st.Type != unix.XFS_SUPER_MAGIC && st.Type != unix.F2FS_SUPER_MAGIC // of F2FS it is not known
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		out.ChangeTimes = false
	}
	return out
}
