package disk

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

func syncFD(fd int) error { return unix.Fsync(fd) }

// startSync hands the file's dirty pages to the device. sync_file_range(2) neither
// waits for them nor writes the inode: by itself it makes nothing durable.
func startSync(fd int) { _ = unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE) }

func syncAll(fd int) error { return unix.Syncfs(fd) }

// syncsAll says whether syncfs(2) can stand in for fsync(2) of each file. Two
// things must hold. The file system's own sync waits until data and metadata are
// on the medium: ext4 commits its journal, or writes all buffers where it has
// none, xfs forces its log, btrfs commits its transaction. Others may leave it out: FUSE
// does not tell its server, network file systems differ, f2fs keeps an error of its checkpoint
// to itself. And it must tell of what could not be written: of pages it does since Linux 5.8, where
// a descriptor remembers the file system's errors from its opening on, of the file system's own
// sync since 5.17. A file system that gave up before answers 0 all the same, and ext4 without a
// journal may flush the device's cache too early: an fsync of the directory follows, which does both.
func syncsAll(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return tellsAll()
	}
	return false
}

// tellsAll says whether the kernel is 5.17 or newer.
var tellsAll = sync.OnceValue(func() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	major, minor, err := release(unix.ByteSliceToString(name.Release[:]))
	return err == nil && (major > 5 || major == 5 && minor >= 17)
})

// release reads the numbers that "6.1.0-18-amd64" begins with.
func release(s string) (major, minor int, err error) {
	number := func() (n int) {
		i := 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9' && i < 6; i++ {
			n = 10*n + int(s[i]-'0')
		}
		if i == 0 {
			err = errors.New("no release of Linux")
		}
		s = s[i:]
		return n
	}
	major = number()
	if s != "" && s[0] == '.' {
		s = s[1:]
	}
	return major, number(), err
}
