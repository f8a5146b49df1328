package disk

import "golang.org/x/sys/unix"

// ChangeTimes says whether the file system below fd keeps a change time of its own. FAT
// gives the time of the last write in its place, which anybody can set back.
func ChangeTimes(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return true
	}
	switch int64(st.Type) {
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		return false
	}
	return true
}
